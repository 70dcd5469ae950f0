/* SPDX-License-Identifier: Apache-2.0 */
/* "holdup": stops every process that starts after it in its pid namespace, at once and repeatedly.
 * So programs that others start are stopped before they execute. Prints "ready" first. */
#include <signal.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

enum { AHEAD = 8 };

int main(void) {
        pid_t last = getpid();

        (void)puts("ready");
        (void)fflush(stdout);
        for (;;)
                for (pid_t pid = last + 1; pid <= last + AHEAD; pid++)
                        if (kill(pid, SIGSTOP) == 0)
                                last = pid;
}
