/* SPDX-License-Identifier: Apache-2.0 */
/* holt shell: runs commands in the lasting bash of a session, and prints their output as it comes.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "base/utf8.h"
#include "cli/code-call.h"
#include "cli/interrupt.h"
#include "cli/python-code.h"
#include "cli/python-told.h"
#include "cli/verbs.h"
#include "outcome/outcome.h"

static const Option shell_options[] = {
        { "-c", "COMMANDS", "run these commands", OPTION_STRING, offsetof(CodeOptions, code),
          NULL },
        { "--cwd", "DIR", "change to this directory first, relative to the workspace",
          OPTION_STRING, offsetof(CodeOptions, cwd), NULL },
        { "--env", "NAME[=VALUE]", "export an environment variable first, or pass one of yours",
          OPTION_LIST, offsetof(CodeOptions, env), NULL },
        { "--env-file", "FILE", "export the environment variables of this file (NAME=VALUE lines)",
          OPTION_LIST, offsetof(CodeOptions, env_files), NULL },
        { "--tool", "NAME[=COMMAND]",
          "tool for the commands: a command on the host, or another client's tool", OPTION_LIST,
          offsetof(CodeOptions, tools), NULL },
        { "--timeout", "TIME", "interrupt the commands after this time, then kill the shell",
          OPTION_STRING, offsetof(CodeOptions, timeout), NULL },
        { "--output", "SIZE", "with --json: size limit of stdout, and of stderr, in the result",
          OPTION_STRING, offsetof(CodeOptions, output), NULL },
        { "--interrupt", NULL, "interrupt the commands that are running", OPTION_BOOL,
          offsetof(CodeOptions, interrupt), NULL },
        { "--restart", NULL, "kill the shell; the next call gets a new one", OPTION_BOOL,
          offsetof(CodeOptions, restart), NULL },
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(CodeOptions, json),
          NULL },
};

/* Whether Ctrl-C, or a SIGINT to holt, has interrupted the commands. bash -c then dies of SIGINT.
 */
static bool shell_ended_by_ctrl_c;

static int shell_print_end(CodeCall *call, Error *reterr) {
        const JsonValue *result = call->answer.result;
        const uint64_t exit_code = json_member_uint(result, "exit_code");
        int r = 0;

        if (call->options->json) {
                code_call_let_signals(call);
                r = ask_print_json(result, reterr);
        } else
                python_tell_missed(result, call->printed);
        if (r < 0)
                return r;
        shell_tell_end(result, call->timeout);
        if (!call->options->json)
                code_call_tell_refused(call);
        shell_ended_by_ctrl_c = call->interrupted && exit_code == 128 + SIGINT;
        return (int)exit_code;
}

static const CodeVerb shell_verb = {
        .method = "shell.run",
        .interrupt = "shell.interrupt",
        .restart = "shell.restart",
        .print_end = shell_print_end,
};

/* --- without a call --- */

static int shell_act(const char *name, const CodeOptions *options, Error *reterr) {
        const char *method = options->restart ? shell_verb.restart : shell_verb.interrupt;
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        bool done = false;
        int r = ask_keeper(name, method, NULL, &answer, reterr);

        if (r < 0)
                return r;
        if (options->json)
                return ask_print_json(answer.result, reterr);
        (void)json_bool(json_first(answer.result), &done);
        if (!done)
                (void)fputs(options->restart ? "holt: no shell is running\n"
                                             : "holt: no command is running\n",
                            stderr);
        return 0;
}

static int shell_check(const CodeOptions *options, const char *path, const char *name,
                       Error *reterr) {
        const bool acts = options->restart || options->interrupt;
        int r = 0;

        if (!!options->code + !!path + options->restart + options->interrupt != 1) {
                r = error_set(reterr, ERROR_USAGE, 0,
                              "give exactly one of -c COMMANDS, FILE, --interrupt and --restart");
                return error_cure(reterr, r, "For an interactive bash, run: holt sh %s", name);
        }
        if (acts && (options->cwd || options->timeout || options->output ||
                     options->env.count + options->env_files.count + options->tools.count > 0))
                r = error_set(reterr, ERROR_USAGE, 0,
                              "--cwd, --env, --env-file, --timeout, --output and --tool need "
                              "commands to run");
        else if (options->output && !options->json) {
                r = error_set(reterr, ERROR_USAGE, 0, "--output needs --json");
                r = error_cure(reterr, r, "Without --json, all output is printed.");
        }
        return r;
}

/* --timeout also limits reading the commands from a pipe. */
static int shell_read(const char *name, const CodeOptions *options, const char *path, char **ret,
                      Error *reterr) {
        uint64_t timeout = 0;
        int r = path ? ask_timeout(options->timeout, &timeout, reterr) : 0;

        return r == 0 && path ? python_code_read(name, path, timeout, ret, reterr) : r;
}

static int shell_shell(const OptionResult *words, const void *data, Error *reterr) {
        const CodeOptions *options = data;
        const char *name = words->operands[0];
        const char *path = words->operands_count > 1 ? words->operands[1] : NULL;
        _cleanup_free_ char *code = NULL;
        int r = shell_check(options, path, name, reterr);

        if (r < 0)
                return r;
        if (options->restart || options->interrupt)
                return shell_act(name, options, reterr);
        r = shell_read(name, options, path, &code, reterr);
        if (r == -ETIMEDOUT)
                return EXIT_CODE_TIMEOUT;
        if (r == 0 && !utf8_valid(code ? code : options->code))
                return error_set(reterr, ERROR_USAGE, 0, "%s: the commands are not UTF-8",
                                 path ? path : "-c");
        return r < 0 ? r
                     : code_call(&shell_verb, name, options, NULL, code ? code : options->code,
                                 reterr);
}

static const AskVerb shell_ask = {
        .syntax = { .verb = "shell",
                    .usage = "NAME [OPTIONS] [-c COMMANDS | FILE | -]",
                    .summary = "Runs commands in the lasting bash of session NAME. Its directory, "
                               "variables and functions\nlast until the next call. FILE is a file "
                               "on the host; \"-\" is stdin.",
                    .options = shell_options,
                    .options_count = ELEMENTSOF(shell_options),
                    .operands = true },
        .least = 1,
        .most = 2,
        .run = shell_shell,
};

int cmd_shell(int argc, char **argv) {
        CodeOptions options = { 0 };
        int r = ask_main(&shell_ask, &options, argc, argv);

        strlist_clear(&options.env);
        strlist_clear(&options.env_files);
        strlist_clear(&options.tools);
        return shell_ended_by_ctrl_c
                       ? interrupt_end(cause_name(CAUSE_SIGNALED), 128 + SIGINT, INTERRUPT_SIGNAL)
                       : r;
}
