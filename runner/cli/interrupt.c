/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/strings.h"

/* The key went to the command's terminal alone, because holt had set the caller's to raw mode.
 * Otherwise the kernel would have sent SIGINT to the whole job, for example to a script that calls
 * holt in a loop. So holt sends it now. If root runs holt, it has another uid by now, so the signal
 * reaches only holt itself. */
int interrupt_end(const char *cause, int exit_code, Interrupt by) {
        sigset_t set;

        if (by == INTERRUPT_NONE || exit_code != 128 + SIGINT ||
            (!streq(cause, cause_name(CAUSE_SIGNALED)) && !streq(cause, cause_name(CAUSE_KILLED))))
                return exit_code;
        (void)fflush(NULL);
        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGINT);
        (void)signal(SIGINT, SIG_DFL);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
        (void)kill(by == INTERRUPT_KEY ? 0 : getpid(), SIGINT);
        return exit_code;
}
