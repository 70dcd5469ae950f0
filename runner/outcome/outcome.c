/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/outcome.h"

#include <assert.h>
#include <signal.h>
#include <sys/wait.h>

static const char *const cause_names[] = {
        [CAUSE_EXITED] = "exited",   [CAUSE_SIGNALED] = "signaled",
        [CAUSE_TIMEOUT] = "timeout", [CAUSE_KILLED] = "killed",
        [CAUSE_OOM] = "oom",         [CAUSE_LOST] = "lost",
        [CAUSE_ERROR] = "error",     [CAUSE_OUTPUT_LIMIT] = "output_limit",
};
static_assert(ELEMENTSOF(cause_names) == CAUSE_MAX, "every cause has a name");

const char *cause_name(Cause cause) {
        return cause_names[cause];
}

void outcome_write_end(JsonWriter *w, const char *cause, int exit_code) {
        json_write_string(w, "cause", cause);
        json_write_int(w, "exit_code", exit_code);
}

int ending_signal(const Ending *ending) {
        if (!ending->reported)
                return SIGKILL;
        return WIFSIGNALED(ending->status) ? WTERMSIG(ending->status) : 0;
}

static Cause ending_cause(const Ending *ending, int signal) {
        if (ending->timed_out)
                return CAUSE_TIMEOUT;
        if (ending->output_passed)
                return CAUSE_OUTPUT_LIMIT;
        if (!signal)
                return ending->undelivered ? CAUSE_KILLED : CAUSE_EXITED;
        if (signal == SIGKILL && ending->oom)
                return CAUSE_OOM;
        if (ending->told_to_stop)
                return CAUSE_KILLED;
        return ending->reported ? CAUSE_SIGNALED : CAUSE_LOST;
}

static int ending_exit_code(const Ending *ending, Cause cause, int signal) {
        if (cause == CAUSE_TIMEOUT)
                return EXIT_CODE_TIMEOUT;
        if (signal)
                return 128 + signal;
        if (cause == CAUSE_OUTPUT_LIMIT)
                return 128 + SIGTERM;
        return ending->undelivered ? 128 + ending->undelivered : WEXITSTATUS(ending->status);
}

void outcome_conclude(Outcome *outcome, const Ending *ending) {
        outcome->signal = ending_signal(ending);
        outcome->cause = ending_cause(ending, outcome->signal);
        outcome->exit_code = ending_exit_code(ending, outcome->cause, outcome->signal);
}
