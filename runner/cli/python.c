/* SPDX-License-Identifier: Apache-2.0 */
/* holt python: runs code in the interpreter of a session, and prints its output as it comes. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/code-call.h"
#include "cli/exec-result.h"
#include "cli/interrupt.h"
#include "cli/python-code.h"
#include "cli/python-told.h"
#include "cli/verbs.h"
#include "outcome/outcome.h"

typedef struct PythonOptions {
        CodeOptions run; /* must be first: python_options has its offsets */
        bool variables, save, load;
} PythonOptions;

static const Option python_options[] = {
        { "-c", "CODE", "run this code", OPTION_STRING, offsetof(PythonOptions, run.code), NULL },
        { "--cwd", "DIR", "run the code in this directory, relative to the workspace",
          OPTION_STRING, offsetof(PythonOptions, run.cwd), NULL },
        { "--env", "NAME[=VALUE]", "set an environment variable for this run, or pass one of yours",
          OPTION_LIST, offsetof(PythonOptions, run.env), NULL },
        { "--env-file", "FILE", "set the environment variables of this file (NAME=VALUE lines)",
          OPTION_LIST, offsetof(PythonOptions, run.env_files), NULL },
        { "--tool", "NAME[=COMMAND]",
          "tool for the code: a command on the host, or another client's tool", OPTION_LIST,
          offsetof(PythonOptions, run.tools), NULL },
        { "--timeout", "TIME", "interrupt the code after this time, then kill the interpreter",
          OPTION_STRING, offsetof(PythonOptions, run.timeout), NULL },
        { "--fresh", NULL, "run the code in an interpreter of its own, which ends with the run",
          OPTION_BOOL, offsetof(PythonOptions, run.fresh), NULL },
        { "--output", "SIZE", "with --json: size limit of stdout, and of stderr, in the result",
          OPTION_STRING, offsetof(PythonOptions, run.output), NULL },
        { "--variables", NULL, "list the variables", OPTION_BOOL,
          offsetof(PythonOptions, variables), NULL },
        { "--interrupt", NULL, "interrupt the code that is running", OPTION_BOOL,
          offsetof(PythonOptions, run.interrupt), NULL },
        { "--restart", NULL, "kill the interpreter; the next run gets a new one", OPTION_BOOL,
          offsetof(PythonOptions, run.restart), NULL },
        { "--save", NULL, "save the variables to a file of the session", OPTION_BOOL,
          offsetof(PythonOptions, save), NULL },
        { "--load", NULL, "load the variables from that file", OPTION_BOOL,
          offsetof(PythonOptions, load), NULL },
        { "--json", NULL, "print the result as JSON", OPTION_BOOL,
          offsetof(PythonOptions, run.json), NULL },
};

/* --- the end of a run --- */

/* Returns whether message is the number that gives this exit code. */
static bool is_number_of(const char *message, uint64_t exit_code) {
        char *end;
        const long long number = strtoll(message, &end, 10);

        return end > message && *end == '\0' && ((uint64_t)number & 255) == exit_code;
}

/* Works as python3 does: an argument of sys.exit() that is not a number is printed as a message. */
static void print_error(CodeCall *run, const JsonValue *error, uint64_t exit_code) {
        const char *message = json_member_text(error, "message"),
                   *traceback = json_member_text(error, "traceback");

        if (!streq(json_member_text(error, "name"), "SystemExit"))
                code_call_print_bytes(run, stderr, traceback, strlen(traceback));
        else if (!is_number_of(message, exit_code)) {
                code_call_print_bytes(run, stderr, message, strlen(message));
                code_call_print_bytes(run, stderr, "\n", 1);
        }
}

/* Whether Ctrl-C, or a SIGINT to holt, has ended the code. python3 then dies of SIGINT. */
static bool ended_by_ctrl_c;

static int python_print_end(CodeCall *run, Error *reterr) {
        const JsonValue *result = run->answer.result, *error = json_member(result, "error");
        const char *text = json_string(json_member(result, "result"));
        const uint64_t exit_code = json_member_uint(result, "exit_code");
        int r = 0;

        if (run->options->json) {
                code_call_let_signals(run);
                r = ask_print_json(result, reterr);
        } else if (text) {
                code_call_print_bytes(run, stdout, text, strlen(text));
                code_call_print_bytes(run, stdout, "\n", 1);
        }
        if (r < 0)
                return r;
        if (!run->options->json && error && json_type(error) == JSON_OBJECT)
                print_error(run, error, exit_code);
        if (!run->options->json) {
                python_tell_displays(result);
                python_tell_missed(result, run->printed);
        }
        python_tell_end(result, run->timeout, run->options->fresh);
        if (!run->options->json)
                code_call_tell_refused(run);
        ended_by_ctrl_c = run->interrupted &&
                          streq(json_member_text(error, "name"), "KeyboardInterrupt");
        return r < 0 ? r : (int)exit_code;
}

static const CodeVerb python_verb = {
        .method = "python.run",
        .interrupt = "python.interrupt",
        .restart = "python.restart",
        .print_end = python_print_end,
};

/* --- without a run --- */

static void print_variables(const JsonValue *result) {
        const JsonValue *list = json_member(result, "variables");

        for (const JsonValue *v = json_first(list); v; v = json_next(v)) {
                char name[256], type[256], size[256], text[1024];

                (void)printf("%s: %s", str_visible(json_member_text(v, "name"), name, sizeof(name)),
                             str_visible(json_member_text(v, "type"), type, sizeof(type)));
                if (json_member_text(v, "size")[0])
                        (void)printf(" [%s]",
                                     str_visible(json_member_text(v, "size"), size, sizeof(size)));
                (void)printf(" = %s\n",
                             str_visible(json_member_text(v, "repr"), text, sizeof(text)));
        }
}

static void print_names(const char *what, const JsonValue *list, const char *why_not) {
        for (const JsonValue *v = json_first(list); v; v = json_next(v)) {
                const char *said = json_string(v) ? json_string(v) : "";
                char name[256], text[1024];

                (void)str_visible(said, text, sizeof(text));
                if (why_not)
                        (void)fprintf(stderr, "holt: %s %s: %s\n",
                                      str_visible(json_key(v), name, sizeof(name)), why_not, text);
                else
                        (void)printf("%s %s\n", what, text);
        }
}

static void python_print_state(const JsonValue *result) {
        print_names("saved", json_member(result, "saved"), NULL);
        print_names("loaded", json_member(result, "loaded"), NULL);
        print_names(NULL, json_member(result, "left_out"), "is left out");
        print_names(NULL, json_member(result, "failed"), "cannot be loaded");
}

static void print_done(const JsonValue *result) {
        bool done = false;

        (void)json_bool(json_first(result), &done);
        if (!done)
                (void)fputs("holt: no code is running\n", stderr);
}

static const struct {
        size_t offset;
        const char *option, *method;
        void (*print)(const JsonValue *result);
} actions[] = {
        { offsetof(PythonOptions, variables), "--variables", "python.variables", print_variables },
        { offsetof(PythonOptions, run.interrupt), "--interrupt", "python.interrupt", print_done },
        { offsetof(PythonOptions, run.restart), "--restart", "python.restart", print_done },
        { offsetof(PythonOptions, save), "--save", "python.save", python_print_state },
        { offsetof(PythonOptions, load), "--load", "python.load", python_print_state },
};

static int python_act(const char *name, size_t which, const PythonOptions *options, Error *reterr) {
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        int r = ask_keeper(name, actions[which].method, NULL, &answer, reterr);

        if (r < 0 && streq(actions[which].option, "--load") && reterr->cure[0] == '\0')
                return error_cure(reterr, r, "Save the variables first: holt python NAME --save");
        if (r < 0)
                return r;
        if (options->run.json)
                return ask_print_json(answer.result, reterr);
        actions[which].print(answer.result);
        return 0;
}

static int count_actions(const PythonOptions *options) {
        int count = 0;

        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                count += *(const bool *)((const char *)options + actions[i].offset);
        return count;
}

/* Returns the index of the action that was asked for instead of code, or -1. */
static int find_action(const PythonOptions *options) {
        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                if (*(const bool *)((const char *)options + actions[i].offset))
                        return (int)i;
        return -1;
}

/* An action runs no code, so options of a run are errors. */
static int check_no_run(const PythonOptions *options, Error *reterr) {
        if (!options->run.cwd && !options->run.timeout && !options->run.output &&
            !options->run.fresh && options->run.env.count == 0 &&
            options->run.env_files.count == 0 && options->run.tools.count == 0)
                return 0;
        return error_set(reterr, ERROR_USAGE, 0,
                         "--cwd, --env, --env-file, --timeout, --output, --tool and --fresh need "
                         "code to run");
}

static int check_run(const PythonOptions *options, Error *reterr) {
        if (!options->run.output || options->run.json)
                return 0;
        (void)error_set(reterr, ERROR_USAGE, 0, "--output needs --json");
        return error_cure(reterr, -EINVAL, "Without --json, all output is printed.");
}

/* --timeout also limits reading the code from a pipe. */
static int read_code(const char *name, const PythonOptions *options, const char *path, char **ret,
                     Error *reterr) {
        uint64_t timeout = 0;
        int r = ask_timeout(options->run.timeout, &timeout, reterr);

        return r < 0 ? r : python_code_read(name, path, timeout, ret, reterr);
}

static int python_python(const OptionResult *words, const void *data, Error *reterr) {
        const PythonOptions *options = data;
        const char *name = words->operands[0];
        const char *path = words->operands_count > 1 ? words->operands[1] : NULL;
        const int action = find_action(options);
        _cleanup_free_ char *code = NULL;
        int r;

        if (!!options->run.code + !!path + count_actions(options) != 1) {
                r = error_set(reterr, ERROR_USAGE, 0,
                              "give exactly one of -c CODE, FILE, --variables, "
                              "--interrupt, --restart, --save and --load");
                return error_cure(reterr, r, "For example: holt python %s -c '1 + 1'", name);
        }
        if (action >= 0) {
                r = check_no_run(options, reterr);
                return r < 0 ? r : python_act(name, (size_t)action, options, reterr);
        }
        r = check_run(options, reterr);
        if (r == 0 && path)
                r = read_code(name, options, path, &code, reterr);
        if (r == -ETIMEDOUT)
                return EXIT_CODE_TIMEOUT;
        if (r == 0 && !utf8_valid(code ? code : options->run.code)) {
                r = error_set(reterr, ERROR_USAGE, 0, "%s: the code is not UTF-8",
                              path ? path : "-c");
                return error_cure(reterr, r,
                                  "Save the file as UTF-8, and remove a \"coding:\" line that "
                                  "names another encoding.");
        }
        return r < 0 ? r
                     : code_call(&python_verb, name, &options->run, path,
                                 code ? code : options->run.code, reterr);
}

static const AskVerb verb = {
        .syntax = { .verb = "python",
                    .usage = "NAME [OPTIONS] [-c CODE | FILE | -]",
                    .summary = "Runs code in the Python interpreter of session NAME. FILE is a "
                               "file on the host; \"-\" is stdin.\nIf the code ends with an "
                               "expression, prints its value.",
                    .options = python_options,
                    .options_count = ELEMENTSOF(python_options),
                    .operands = true },
        .least = 1,
        .most = 2,
        .run = python_python,
};

int cmd_python(int argc, char **argv) {
        PythonOptions options = { 0 };
        int r = ask_main(&verb, &options, argc, argv);

        strlist_clear(&options.run.env);
        strlist_clear(&options.run.env_files);
        strlist_clear(&options.run.tools);
        return ended_by_ctrl_c
                       ? interrupt_end(cause_name(CAUSE_SIGNALED), 128 + SIGINT, INTERRUPT_SIGNAL)
                       : r;
}
