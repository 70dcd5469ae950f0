/* SPDX-License-Identifier: Apache-2.0 */
/* holt bwrap: runs a command as bubblewrap would, from bubblewrap's arguments.
 *
 * Exit codes and descriptors are bubblewrap's, because its callers read them. Errors of holt bwrap
 * itself begin with "bwrap: " and end with 1, not with 125. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/strings.h"
#include "bwrap/monitor.h"
#include "bwrap/options.h"
#include "cli/bwrap-policy.h"
#include "cli/bwrap.h"
#include "cli/full.h"
#include "cli/verbs.h"
#include "policy/plan.h"

extern char **environ;

#ifdef HOLT_FULL
enum { HOLT_IS_LIGHT = 0 };
#else
enum { HOLT_IS_LIGHT = 1 };
#endif

enum { BWRAP_ERROR = 1 };

/* --- messages --- */

static void bwrap_print(const BwrapWords *words, const char *line) {
        (void)fprintf(stderr, "%sbwrap: %s\n", words->level_prefix ? "<3>" : "", line);
}

static int bwrap_fail(const BwrapWords *words, const Error *error) {
        char text[sizeof(error->text) * 4], visible[sizeof(text) + 256];

        (void)str_visible(error->text, text, sizeof(text));
        (void)snprintf(visible, sizeof(visible), error->errnum ? "%s: %s" : "%s", text,
                       strerror(error->errnum));
        bwrap_print(words, visible);
        for (const char *line = error->cure; *line;) {
                const size_t length = strcspn(line, "\n");

                (void)snprintf(visible, sizeof(visible), "%.*s", (int)length, line);
                bwrap_print(words, visible);
                line += length + (line[length] != '\0');
        }
        return BWRAP_ERROR;
}

static int bwrap_usage(FILE *out, int code) {
        bwrap_help(out);
        return code;
}

/* --- the request --- */

/* A copy that is set-user-ID root would give any user what only root may do. */
static int bwrap_check_ids(Error *reterr) {
        int r;

        if (getuid() == geteuid() && getgid() == getegid())
                return 0;
        r = error_set(reterr, ERROR_SETUP, 0,
                      "holt bwrap does not run as a set-user-ID program: it uses user namespaces");
        return error_cure(reterr, r, "Remove the bit: chmod u-s,g-s FILE");
}

static const char *env_value(const StrList *env, const char *name) {
        const size_t length = strlen(name);

        for (size_t i = 0; i < env->count; i++)
                if (strncmp(env->items[i], name, length) == 0 && env->items[i][length] == '=')
                        return env->items[i] + length + 1;
        return NULL;
}

/* Finds the directories in which the command may start, and keeps a place for PWD. */
static int bwrap_find_cwd(BwrapWords *words, Error *reterr) {
        static char cwd[PATH_MAX];
        Assembly *a = &words->assembly;
        const char *home = env_value(&words->env, "HOME");

        a->homes[0] = getcwd(cwd, sizeof(cwd)) && cwd[0] == '/' ? cwd : NULL;
        a->homes[1] = home ? home : getenv("HOME");
        a->homes[2] = "/";
        for (size_t i = 0; i < words->env.count; i++)
                if (str_starts(words->env.items[i], "PWD="))
                        a->pwd = &words->env.items[i];
        if (!a->pwd) {
                if (strlist_add(&words->env, "PWD=") < 0)
                        return error_oom(reterr);
                a->pwd = &words->env.items[words->env.count - 1];
        }
        a->former_pwd = *a->pwd;
        for (size_t i = 0; i < ELEMENTSOF(a->homes); i++) {
                const char *path = a->cwd ? a->cwd : a->homes[i];

                if (path && !(a->pwds[i] = str_format("PWD=%s", path)))
                        return error_oom(reterr);
        }
        return 0;
}

static int bwrap_make_plan(BwrapWords *words, LaunchPlan *plan, Error *reterr) {
        Assembly *a = &words->assembly;
        int r = bwrap_find_cwd(words, reterr);

        if (r < 0)
                return r;
        a->console = isatty(STDOUT_FILENO) ? ttyname(STDOUT_FILENO) : NULL;
        a->user_try = words->user_try_asked && !words->user_asked;
        if (words->user_asked)
                a->namespaces |= CLONE_NEWUSER;
        strlist_clear(&plan->env);
        plan->env = words->env;
        plan->assembly = a;
        return 0;
}

/* --- one run --- */

static void bwrap_tell_end(const Assembly *a, const BwrapEnd *end) {
        if (a->status_fd >= 0 && end->started)
                (void)dprintf(a->status_fd, "{ \"exit-code\": %d }\n", end->outcome.exit_code);
}

static int bwrap_start_and_wait(Launch *launch, BwrapEnd *end, Error *reterr) {
        BwrapSandbox sandbox;
        int r;

        if (launch->plan->assembly->die_with_parent)
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGCHLD, SIG_DFL); /* a caller may ignore it, and wait(2) then finds nothing */
        r = bwrap_start(launch, &sandbox, reterr);
        return r < 0 ? r : bwrap_monitor(launch->plan, &sandbox, end, reterr);
}

static int bwrap_run(BwrapWords *words, BwrapPolicy *policy, Error *reterr) {
        static LaunchPlan plan;
        static Launch launch = LAUNCH_NONE;
        static BwrapEnd end;
        int r;

        words->assembly.confined = policy->name;
        launch.plan = &plan;
        end.outcome = (Outcome){ .cause = CAUSE_ERROR, .exit_code = BWRAP_ERROR };
        r = bwrap_policy_apply(policy, words, &plan, &launch, reterr);
        if (r == 0)
                r = bwrap_make_plan(words, &plan, reterr);
        plan.report_fd = policy->report_fd;
        if (r == 0)
                r = bwrap_start_and_wait(&launch, &end, reterr);
        bwrap_tell_end(&words->assembly, &end);
        bwrap_policy_tell(policy, words, &launch, &end, r < 0 ? reterr : NULL);
        return r < 0 ? r : end.outcome.exit_code;
}

int bwrap_main(int argc, char **argv, char *const *whole) {
        static BwrapPolicy policy;
        static BwrapWords words;
        static Error error;
        int r = bwrap_check_ids(&error);

        if (r == 0 && bwrap_policy_find(&policy) && HOLT_IS_LIGHT)
                return full_execute(whole);
        if (r == 0)
                r = bwrap_parse(argc, argv, environ, &words, &error);
        if (r < 0)
                return bwrap_fail(&words, &error);
        if (words.help)
                return bwrap_usage(stdout, 0);
        if (words.version) {
                (void)puts("bubblewrap " BWRAP_VERSION);
                return 0;
        }
        if (!words.assembly.argv || !words.assembly.argv[0])
                return bwrap_usage(stderr, BWRAP_ERROR);
        r = bwrap_run(&words, &policy, &error);
        return r < 0 ? bwrap_fail(&words, &error) : r;
}

int cmd_bwrap(int argc, char **argv) {
        return bwrap_main(argc, argv, argv - 1);
}
