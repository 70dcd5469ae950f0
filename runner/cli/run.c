/* SPDX-License-Identifier: Apache-2.0 */
/* holt run: runs one command in a sandbox of its own and reports how it ended. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/home.h"
#include "base/paths.h"
#include "base/prefault.h"
#include "cli/fail.h"
#include "cli/full.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/told.h"
#include "cli/verbs.h"
#include "git/identity.h"
#include "guards/guard.h"
#include "policy/plan.h"
#include "sandbox/asking.h"
#include "sandbox/launch.h"
#include "sandbox/supervise.h"
#include "sandbox/warnings.h"
#include "streams/stdio.h"
#ifdef HOLT_FULL
#include "cli/policy-words.h"
#include "session/helpers.h"
#include "session/policy-files.h"
#include "session/routes.h"
#endif

#ifdef HOLT_FULL
enum { HOLT_IS_LIGHT = 0 };
#else
enum { HOLT_IS_LIGHT = 1 };
#endif

extern char **environ;

typedef struct RunOptions {
        const char *cwd, *report;
        bool json;
        StrList allow_degraded;
} RunOptions;

static const Option run_options[] = {
        { "--cwd", "DIR", "start in this directory inside", OPTION_STRING,
          offsetof(RunOptions, cwd), NULL },
        { "--report", "FILE", "write the result to this file as JSON", OPTION_STRING,
          offsetof(RunOptions, report), NULL },
        { "--json", NULL, "print the result to stderr as one line of JSON", OPTION_BOOL,
          offsetof(RunOptions, json), NULL },
        { "--allow-degraded", "LAYER", "continue if this host refuses the layer", OPTION_LIST,
          offsetof(RunOptions, allow_degraded), NULL },
};

static const OptionSyntax run_syntax = {
        .verb = "run",
        .usage = "[OPTIONS] [--] [COMMAND [ARG...]]",
        .summary = "Runs COMMAND, or an interactive bash, in a sandbox. COMMAND can write to the "
                   "working directory and\nread the system. It has no network, except for the "
                   "hosts of --net.",
        .options = run_options,
        .options_count = ELEMENTSOF(run_options),
        .policy = true,
        .operand_ends = true,
        .help_epilog = "Exit codes: the command's own; 128+n after signal n; 124 after a timeout; "
                       "125 if holt itself\nfailed; 126 if COMMAND cannot be executed; 127 if "
                       "COMMAND does not exist.",
};

/* The state of the run. It is never freed: the process ends with it, and the kernel is faster. */
typedef struct Run {
        RunOptions options;
        OptionResult words;
        Policy policy;
        LaunchPlan plan;
        FdFacts stdio[3]; /* At the start. */
        Launch launch;
        Sandbox sandbox;
        StrList moved, warnings;
        char cwd[PATH_MAX];
        char *report_path; /* absolute, or NULL */
        int report_fd;
        RunResult result;
} Run;

/* --- the request --- */

static int find_cwd(Run *run, Error *reterr) {
        int r;

        if (getcwd(run->cwd, sizeof(run->cwd)) && run->cwd[0] == '/')
                return 0;
        r = error_set(reterr, ERROR_SETUP, errno, "cannot find the working directory");
        return error_cure(reterr, r, "Change to a directory that exists.");
}

#ifdef HOLT_FULL
static int resolve_policy(Run *run, Error *reterr) {
        return policy_words_resolve(&run->policy, &run->words, reterr);
}
#else
static int resolve_policy(Run *run, Error *reterr) {
        return options_policy(&run->words, &run->policy, reterr);
}
#endif

static int find_identity(Run *run, Error *reterr) {
        return git_identity_set(&run->policy, reterr);
}

/* Returns whether only holt-full can run this: it knows routes and helpers, and it can read the
 * project's policy file in the workspace. */
static bool needs_full(Run *run) {
        const char *workspace = run->policy.workspace_source ? run->policy.workspace_source : ".";
        char path[PATH_MAX];

        if (run->policy.routes.count > 0 || run->policy.helpers.count > 0)
                return true;
        if (snprintf(path, sizeof(path), "%s/.holt.json", workspace) >= (int)sizeof(path))
                return false;
        return run->policy.workspace_mode != WORKSPACE_NONE &&
               faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Returns whether the caller has settings that apply: a preset replaces them. */
static bool has_config(const Run *run) {
        bool must;
        const char *config = home_config(&must);

        return config && !run->words.no_config && run->words.policies_count == 0 &&
               (must || access(config, F_OK) == 0);
}

static bool names_policy_file(const Run *run) {
        for (size_t i = 0; i < run->words.policies_count; i++)
                if (policy_name_is_file(run->words.policies[i]))
                        return true;
        return false;
}

#ifdef HOLT_FULL
/* Adds the routes, the helpers, and the policy files that were read, because the command must not
 * write the ones that the next run obeys. */
static int add_full(Run *run, Error *reterr) {
        const PlanMount *workspace;
        int r = routes_prepare(&run->policy, &run->plan, true, reterr);

        if (r == 0)
                r = helpers_prepare(&run->policy, run->cwd, &run->plan, reterr);
        if (r == 0)
                r = policy_files_check_config(&run->plan, reterr);
        workspace = plan_workspace(&run->plan); /* after the mounts that the steps above add */
        return r < 0 ? r
                     : policy_files_inputs(workspace ? workspace->source : NULL, &run->plan.inputs,
                                           reterr);
}
#else
static int add_full(Run *run, Error *reterr) {
        (void)run;
        (void)reterr;
        return 0;
}
#endif

/* --- one run --- */

static int make_plan(Run *run, Error *reterr) {
        PlanContext context = {
                .cwd = run->cwd,
                .argv = run->words.operands,
                .env = (const char *const *)environ,
                .inside_cwd = run->options.cwd,
        };
        int r = layers_degraded(&run->options.allow_degraded, &context.degraded, reterr);

        if (r == 0)
                r = plan_make(&run->policy, &context, &run->plan, reterr);
        if (r < 0)
                return r;
        run->result.policy = &run->policy;
        run->result.plan = &run->plan;
        run->result.command = (const char *const *)run->plan.argv.items;
        return add_full(run, reterr);
}

static int run_open_report(Run *run, Error *reterr) {
        _cleanup_(strlist_clear) StrList writable = { 0 };
        int r;

        if (!run->options.report)
                return 0;
        r = report_check_name(run->options.report, reterr);
        if (r < 0)
                return r;
        run->report_path = path_join(run->cwd, run->options.report);
        if (!run->report_path || plan_writable(&run->plan, &writable) < 0)
                return error_oom(reterr);
        r = report_open("--report", run->report_path, &writable, &run->report_fd, reterr);
        run->plan.report_fd = run->report_fd;
        return r;
}

/* Finds a repository below the workspace, which is a warning for people. In a loop it is printed
 * once, but the report always has it. */
static int run_find_below(Run *run, bool *ret_print, Error *reterr) {
        const PlanMount *workspace = plan_workspace(&run->plan);
        const size_t before = run->warnings.count;
        _cleanup_free_ char *text = NULL;
        int r = warnings_find_below(&run->plan, &run->warnings, reterr);

        *ret_print = true;
        if (r < 0 || run->warnings.count == before || run->options.json)
                return r;
        text = str_format("%s: %s", workspace->real, run->warnings.items[before]);
        *ret_print = !text || !told_before(text);
        return 0;
}

/* Prints warnings before the command can print anything. */
static int run_warn(Run *run, Error *reterr) {
        StrList shown;
        Message message;
        bool below = false;
        int r = warnings_find(&run->policy, &run->plan, run->launch.layers.landlock_abi > 0,
                              &run->warnings, reterr);

        shown.count = run->warnings.count;
        if (r == 0)
                r = run_find_below(run, &below, reterr);
        if (r < 0)
                return r;
        run->result.warnings = &run->warnings;
        if (!run->options.json) {
                shown.items = run->warnings.items;
                shown.count = below ? run->warnings.count : shown.count;
                report_print_warnings(&shown, message_open(&message));
                message_send(&message);
        }
        return 0;
}

/* Prints the ports that the kernel has chosen, so that people and scripts can connect. */
static void run_tell_ports(const Run *run) {
        Message message;
        FILE *out;

        if (run->options.json)
                return;
        out = message_open(&message);
        report_print_published(&run->plan.net_publish, &run->sandbox.network.published, out);
        message_send(&message);
}

static int run_start(Run *run, Error *reterr) {
        int r;

        interrupt_prepare();
        r = launch_prepare(&run->plan, run->stdio, &run->launch, reterr);
        stdio_note(run->launch.stdio);
        if (r == 0)
                r = run_warn(run, reterr);
        run->plan.net_asked = run->plan.net_ask && asking_possible();
        if (r == 0)
                r = launch_start(&run->launch, &run->sandbox, reterr);
        if (r < 0)
                return r;
        run->result.started = true;
        run->result.published = &run->sandbox.network.published;
        if (run->sandbox.network.published.count > 0)
                run_tell_ports(run);
        run->result.identity = &run->launch.identity;
        run->result.layers = run->launch.layers;
        return 0;
}

/* Sets aside new files at protected paths, even if something else has failed. If that fails, the
 * cause of the end stays and the exit code is holt's own. */
static int run_started(Run *run, Error *reterr) {
        int r = supervise(&run->launch, &run->sandbox, &run->result.outcome, reterr);
        _cleanup_(strlist_clear) StrList restored = { 0 };
        int swept;

        stdio_restore(run->launch.terminal.fds);
        swept = guard_sweep(&run->plan, run->launch.workspace_fd, &run->moved, &restored,
                            r < 0 ? NULL : reterr);
        if (r < 0 || swept < 0)
                run->result.error = reterr;
        if (r == 0 && swept < 0)
                run->result.outcome.exit_code = error_exit_code(reterr);
        return r < 0 ? r : swept;
}

static int run_once(Run *run, Error *reterr) {
        int r = run_start(run, reterr);

        if (r == 0)
                return run_started(run, reterr);
        run->result.error = reterr;
        run->result.outcome.cause = CAUSE_ERROR;
        run->result.outcome.exit_code = error_exit_code(reterr);
        return r;
}

/* --- the result --- */

/* Reports that the report could not be written. The cause of the run's end stays. */
static void take_report_error(Run *run, const Error *error, FILE *out) {
        run->result.outcome.exit_code = error_exit_code(error);
        if (!run->options.json)
                error_print(error, out);
        else if (!run->result.error)
                run->result.error = error;
}

static int run_tell(Run *run) {
        static Error error; /* run's result may point to it */
        Message message;
        FILE *out;
        int r = 0;

        run->result.moved = &run->moved;
        if (run->report_fd >= 0)
                r = report_write(run->report_fd, run->report_path, &run->result, &error);
        out = message_open(&message);
        if (!run->options.json)
                report_print_text(&run->result, out);
        if (r < 0)
                take_report_error(run, &error, out);
        if (run->options.json)
                report_print_json(&run->result, out);
        message_send(&message);
        return run->result.outcome.exit_code;
}

/* Opens the report after an early error. It is not known yet which directories the command could
 * write, so no link is followed at all. If opening fails, the original error is reported. */
static void open_report_anyway(Run *run, int argc, char *const *argv) {
        _cleanup_(strlist_clear) StrList everything = { 0 };
        const char *next, *value = fail_find_option(argc, argv, "--report", &next);
        Error ignored;

        if (!value || run->report_fd >= 0)
                return;
        value = value[0] == '=' ? value + 1 : str_starts(next, "--") ? "" : next;
        if (value[0] == '\0' || streq(value, "-") || find_cwd(run, &ignored) < 0 ||
            strlist_add(&everything, "/") < 0)
                return;
        free(run->report_path);
        run->report_path = path_join(run->cwd, value);
        if (run->report_path)
                (void)report_open("--report", run->report_path, &everything, &run->report_fd,
                                  &ignored);
}

/* Reports an error before anything was started. */
static int run_fail(Run *run, int argc, char *const *argv, const Error *error) {
        run->result.error = error;
        run->result.outcome.cause = CAUSE_ERROR;
        run->result.outcome.exit_code = error_exit_code(error);
        run->options.json |= fail_wants_json(argc, argv);
        open_report_anyway(run, argc, argv);
        return run_tell(run);
}

static int (*const run_steps[])(Run *run, Error *reterr) = {
        find_identity,
        find_cwd,
        make_plan,
        run_open_report,
};

int cmd_run(int argc, char **argv) {
        static Run run = { .report_fd = FD_NONE, .sandbox = SANDBOX_NONE, .launch = LAUNCH_NONE };
        static Error error; /* run's result points to it */
        int r;

        if (HOLT_IS_LIGHT)
                prefault();
        r = stdio_open(run.stdio, &error);

        if (r == 0)
                r = options_parse(&run_syntax, argc, (const char *const *)argv, &run.options,
                                  &run.words, &error);
        if (r < 0)
                return run_fail(&run, argc, argv, &error);
        if (run.words.help) {
                options_help(&run_syntax, stdout);
                return 0;
        }
        if (HOLT_IS_LIGHT && (names_policy_file(&run) || has_config(&run)))
                return full_execute(argv - 1);
        r = resolve_policy(&run, &error);
        if (r < 0)
                return run_fail(&run, argc, argv, &error);
        if (HOLT_IS_LIGHT && needs_full(&run))
                return full_execute(argv - 1);
        r = RUN_STEPS(run_steps, &run, &error);
        if (r < 0)
                return run_fail(&run, argc, argv, &error);
        (void)run_once(&run, &error);
        r = run_tell(&run);
        return interrupt_end(cause_name(run.result.outcome.cause), r, run.result.outcome.interrupt);
}
