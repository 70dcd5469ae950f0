/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the least cost of a sandbox with holt's namespaces: one clone3 with all of them, and
 * exec. bare COMMAND... */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
        struct clone_args args = {
                .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                         CLONE_NEWUTS | CLONE_NEWCGROUP,
                .exit_signal = SIGCHLD,
        };
        int status = 1;
        long pid;

        if (argc < 2)
                return 2;
        pid = syscall(SYS_clone3, &args, sizeof(args));
        if (pid == 0) {
                execv(argv[1], argv + 1);
                _exit(127);
        }
        if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0) {
                perror("bare");
                return 1;
        }
        return WEXITSTATUS(status);
}
