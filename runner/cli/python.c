/* SPDX-License-Identifier: Apache-2.0 */
/* holt python: runs code in the interpreter of a session, and prints its output as it comes. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "cli/ask.h"
#include "cli/env-file.h"
#include "cli/exec-result.h"
#include "cli/interrupt.h"
#include "cli/python-code.h"
#include "cli/python-told.h"
#include "cli/shown.h"
#include "cli/tools.h"
#include "cli/verbs.h"
#include "keeper/connect.h"
#include "outcome/outcome.h"

#define RUN_NAME "1" /* this connection's only run */

enum { PATIENCE = 1000 }; /* msec to wait for a slow reader, once holt is to end */

typedef struct PythonOptions {
        const char *code, *cwd, *timeout, *output;
        StrList env, env_files, tools;
        bool fresh, restart, interrupt, variables, save, load, json;
} PythonOptions;

static const Option python_options[] = {
        { "-c", "CODE", "run this code", OPTION_STRING, offsetof(PythonOptions, code), NULL },
        { "--cwd", "DIR", "run the code in this directory, relative to the workspace",
          OPTION_STRING, offsetof(PythonOptions, cwd), NULL },
        { "--env", "NAME[=VALUE]", "set an environment variable for this run, or pass one of yours",
          OPTION_LIST, offsetof(PythonOptions, env), NULL },
        { "--env-file", "FILE", "set the environment variables of this file (NAME=VALUE lines)",
          OPTION_LIST, offsetof(PythonOptions, env_files), NULL },
        { "--tool", "NAME[=COMMAND]",
          "tool for the code: a command on the host, or another client's tool", OPTION_LIST,
          offsetof(PythonOptions, tools), NULL },
        { "--timeout", "TIME", "interrupt the code after this time, then kill the interpreter",
          OPTION_STRING, offsetof(PythonOptions, timeout), NULL },
        { "--fresh", NULL, "run the code in an interpreter of its own, which ends with the run",
          OPTION_BOOL, offsetof(PythonOptions, fresh), NULL },
        { "--output", "SIZE", "with --json: size limit of stdout, and of stderr, in the result",
          OPTION_STRING, offsetof(PythonOptions, output), NULL },
        { "--variables", NULL, "list the variables", OPTION_BOOL,
          offsetof(PythonOptions, variables), NULL },
        { "--interrupt", NULL, "interrupt the code that is running", OPTION_BOOL,
          offsetof(PythonOptions, interrupt), NULL },
        { "--restart", NULL, "kill the interpreter; the next run gets a new one", OPTION_BOOL,
          offsetof(PythonOptions, restart), NULL },
        { "--save", NULL, "save the variables to a file of the session", OPTION_BOOL,
          offsetof(PythonOptions, save), NULL },
        { "--load", NULL, "load the variables from that file", OPTION_BOOL,
          offsetof(PythonOptions, load), NULL },
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(PythonOptions, json),
          NULL },
};

/* --- a run --- */

typedef struct Run {
        const char *name, *code; /* borrowed: the session, and the code to run */
        const PythonOptions *options;
        const char *file; /* borrowed: path of the code's file, or NULL */
        JsonWriter request;
        RpcClient *client;
        ToolHost *tools;
        int signal_fd;
        sigset_t blocked;
        uint64_t id;
        uint64_t timeout; /* usec of --timeout, or 0 */
        uint64_t printed; /* number of bytes of output printed */
        bool interrupted; /* Ctrl-C has interrupted the code */
        int told_by;      /* the signal that asked holt to end, and was passed to the code; or 0 */
        int ends_by;      /* the signal by which holt ends once the code has been told; or 0 */
        uint64_t told_id; /* id of the request that passes told_by to the code */
        Answer answer;
} Run;

static void python_tell(const Run *run, const char *method, uint64_t *ret_id) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;

        json_write_object(&w, NULL);
        json_write_string(&w, "run", RUN_NAME);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                (void)rpc_client_send(run->client, method, &w, NULL, 0, ret_id, &ignored);
}

/* Ctrl-C interrupts the code. The second signal that asks for an end makes holt itself end. */
static void python_on_signal(Run *run) {
        struct signalfd_siginfo info;
        bool interrupts;

        if (read(run->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
                return;
        interrupts = info.ssi_signo == SIGINT;
        if (!interrupts || run->interrupted)
                run->told_by = (int)info.ssi_signo;
        run->interrupted |= interrupts;
        python_tell(run, interrupts ? "python.interrupt" : "python.restart", &run->told_id);
}

/* Waits until a pipe has room for a page, or until holt is to end and nobody has read for a
 * while. */
static void python_wait_for_room(Run *run, int fd) {
        struct pollfd fds[] = { { .fd = fd, .events = POLLOUT },
                                { .fd = run->signal_fd, .events = POLLIN } };

        while (!fds[0].revents && !run->ends_by) {
                int n = poll(fds, ELEMENTSOF(fds), run->told_by ? PATIENCE : -1);

                if (n == 0)
                        run->ends_by = run->told_by;
                else if (n < 0 && errno != EINTR)
                        return;
                else if (fds[1].revents)
                        python_on_signal(run);
        }
}

/* Prints output, and does not wait forever for a reader. If the reader has left, the code gets a
 * signal, as it would get SIGPIPE. */
static void python_print_bytes(Run *run, FILE *out, const char *bytes, size_t length) {
        _cleanup_free_ char *owned = NULL;

        if (shown_bytes(fileno(out), &bytes, &length, &owned) < 0)
                return;
        for (size_t at = 0, n; at < length; at += n) {
                n = length - at < PIPE_BUF ? length - at : PIPE_BUF;
                python_wait_for_room(run, fileno(out));
                if (run->ends_by)
                        return;
                (void)fwrite(bytes + at, 1, n, out);
                if (fflush(out) != 0 && errno == EPIPE) {
                        run->ends_by = SIGPIPE;
                        return python_tell(run, "python.interrupt", &run->told_id);
                }
        }
}

static void print_output(Run *run, const JsonValue *params) {
        const char *encoded = json_member_text(params, "base64");
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;

        if (base64_decode(encoded, &bytes, &length) < 0)
                return;
        python_print_bytes(run,
                           streq(json_member_text(params, "stream"), "stderr") ? stderr : stdout,
                           bytes, length);
        run->printed += length;
}

/* Returns 1 if the run has ended, 0 if not, or a negative errno. */
static int read_messages(Run *run, Error *reterr) {
        for (;;) {
                RpcMessage message = RPC_MESSAGE_NONE;
                Error error;
                int r = rpc_client_next(run->client, false, &message, &error);

                if (r == -EAGAIN)
                        return 0;
                if (r == 0 && run->ends_by && !message.method && message.id == run->told_id) {
                        rpc_message_clear(&message);
                        return 1;
                }
                if (r == 0 && tool_host_take(run->tools, &message)) {
                        rpc_message_clear(&message);
                        continue;
                }
                if (r == 0 && message.method && streq(message.method, "process.output") &&
                    !run->options->json)
                        print_output(run, message.params);
                if (r == 0 && message.id == run->id && message.result) {
                        run->answer.message = message;
                        run->answer.result = message.result;
                        return 1;
                }
                if (r < 0 || rpc_message_answers(&message, run->id)) {
                        rpc_message_clear(&message);
                        *reterr = error;
                        return r < 0 ? r : -EINVAL;
                }
                rpc_message_clear(&message);
        }
}

static int python_wait_for_end(Run *run, Error *reterr) {
        int r = 0;

        (void)sigemptyset(&run->blocked);
        (void)sigaddset(&run->blocked, SIGINT);
        (void)sigaddset(&run->blocked, SIGTERM);
        (void)sigaddset(&run->blocked, SIGHUP);
        run->signal_fd = signalfd(-1, &run->blocked, SFD_CLOEXEC | SFD_NONBLOCK);
        if (run->signal_fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot create a signalfd");
        (void)sigaddset(&run->blocked, SIGPIPE);
        (void)sigprocmask(SIG_BLOCK, &run->blocked, NULL);
        while (r == 0) {
                struct pollfd fds[] = { { .fd = rpc_client_fd(run->client), .events = POLLIN },
                                        { .fd = run->signal_fd, .events = POLLIN },
                                        { .fd = tool_host_fd(run->tools), .events = POLLIN } };

                r = read_messages(run, reterr);
                if (r != 0)
                        break;
                if (rpc_client_waits(run->client))
                        fds[0].events |= POLLOUT;
                if (poll(fds, ELEMENTSOF(fds), -1) < 0 && errno != EINTR)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot wait for the run");
                if (fds[0].revents & POLLOUT)
                        (void)rpc_client_flush(run->client);
                if (fds[2].revents)
                        tool_host_work(run->tools);
                if (fds[1].revents)
                        python_on_signal(run);
        }
        return r < 0 ? r : 0;
}

/* From now on, signals end holt. A signal that it has received before ends it now. */
static void let_signals(const Run *run) {
        if (run->ends_by) {
                (void)signal(run->ends_by, SIG_DFL);
                (void)raise(run->ends_by);
        }
        (void)sigprocmask(SIG_UNBLOCK, &run->blocked, NULL);
}

static int python_run_write(Run *run, Error *reterr) {
        const PythonOptions *options = run->options;
        JsonWriter *w = &run->request;
        _cleanup_(strlist_clear) StrList env = { 0 };
        uint64_t output = 0;
        int r = ask_timeout(options->timeout, &run->timeout, reterr);

        if (r == 0)
                r = ask_output(options->output, &output, reterr);
        if (r == 0)
                r = env_files_read(&options->env_files, &options->env, &env, reterr);
        if (r < 0)
                return r;
        json_write_object(w, NULL);
        json_write_string(w, "code", run->code);
        if (run->file)
                json_write_string(w, "file", run->file);
        if (options->cwd)
                json_write_string(w, "cwd", options->cwd);
        ask_write_env(&env, w);
        tool_specs_write(&options->tools, w);
        json_write_uint(w, "timeout_ms", (run->timeout + 999) / 1000);
        if (options->output)
                json_write_uint(w, "output_max", output);
        json_write_bool(w, "fresh", options->fresh);
        json_write_string(w, "run", RUN_NAME);
        json_write_bool(w, "watch", !options->json);
        json_write_bool(w, "base64", !options->json);
        json_write_end(w);
        return json_write_finish(w) < 0 ? error_oom(reterr) : 0;
}

/* Returns whether message is the number that gives this exit code. */
static bool is_number_of(const char *message, uint64_t exit_code) {
        char *end;
        const long long number = strtoll(message, &end, 10);

        return end > message && *end == '\0' && ((uint64_t)number & 255) == exit_code;
}

/* Works as python3 does: an argument of sys.exit() that is not a number is printed as a message. */
static void print_error(Run *run, const JsonValue *error, uint64_t exit_code) {
        const char *message = json_member_text(error, "message"),
                   *traceback = json_member_text(error, "traceback");

        if (!streq(json_member_text(error, "name"), "SystemExit"))
                python_print_bytes(run, stderr, traceback, strlen(traceback));
        else if (!is_number_of(message, exit_code)) {
                python_print_bytes(run, stderr, message, strlen(message));
                python_print_bytes(run, stderr, "\n", 1);
        }
}

/* Reports refused calls if the run has failed, and files that were set aside, as holt exec does. */
static void tell_refused(const Run *run) {
        const JsonValue *result = run->answer.result;
        _cleanup_(answer_clear) Answer show = ANSWER_NONE;
        const char *text = json_member_text(json_member(result, "error"), "traceback");
        Error ignored;

        exec_result_tell_replaced(result);
        /* If the sandbox was stopped, its keeper may be gone. */
        if (exec_result_needs_show(result) || json_member(result, "network_missed"))
                (void)ask_client(run->client, "session.show", NULL, &show, &ignored);
        if (json_member_uint(result, "exit_code") != 0) {
                exec_result_tell_refused(run->name, (const JsonValue *[]){ result, NULL });
                exec_result_tell_network(result, show.result, text, strlen(text));
        }
        exec_result_tell_lost(run->name, result);
        exec_result_tell_set_aside(result, show.result);
}

/* Whether Ctrl-C, or a SIGINT to holt, has ended the code. python3 then dies of SIGINT. */
static bool ended_by_ctrl_c;

static int print_end(Run *run, Error *reterr) {
        const JsonValue *result = run->answer.result, *error = json_member(result, "error");
        const char *text = json_string(json_member(result, "result"));
        const uint64_t exit_code = json_member_uint(result, "exit_code");
        int r = 0;

        if (run->options->json) {
                let_signals(run);
                r = ask_print_json(result, reterr);
        } else if (text) {
                python_print_bytes(run, stdout, text, strlen(text));
                python_print_bytes(run, stdout, "\n", 1);
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
                tell_refused(run);
        ended_by_ctrl_c = run->interrupted &&
                          streq(json_member_text(error, "name"), "KeyboardInterrupt");
        return r < 0 ? r : (int)exit_code;
}

/* --- all steps --- */

static int run_connect(Run *run, Error *reterr) {
        int fd, r = keeper_connect(run->name, &fd, reterr);

        return r == 0 ? rpc_client_new(fd, &run->client, reterr) : r;
}

static int run_lend_tools(Run *run, Error *reterr) {
        return tool_host_new(run->name, run->client, &run->options->tools, &run->tools, reterr);
}

static int run_send(Run *run, Error *reterr) {
        return rpc_client_send(run->client, "python.run", &run->request, NULL, 0, &run->id, reterr);
}

static int (*const run_steps[])(Run *run, Error *reterr) = {
        python_run_write, run_connect, run_lend_tools, run_send, python_wait_for_end,
};

/* path: file of the code, or NULL. */
static int python_run(const char *name, const PythonOptions *options, const char *path,
                      const char *code, Error *reterr) {
        const bool has_name = path && !streq(path, "-") && utf8_valid(path);
        Run run = { .name = name,
                    .code = code,
                    .options = options,
                    .file = has_name ? path : NULL,
                    .signal_fd = FD_NONE,
                    .answer = ANSWER_NONE };
        int r = RUN_STEPS(run_steps, &run, reterr);

        if (r == 0 && !run.ends_by)
                r = print_end(&run, reterr);
        if (run.ends_by) {
                let_signals(&run);
                /* The kernel ignores this signal for the first process of a PID namespace. */
                r = 128 + run.ends_by;
        }
        answer_clear(&run.answer);
        json_write_clear(&run.request);
        fd_close(run.signal_fd);
        run.tools = tool_host_free(run.tools);
        run.client = rpc_client_free(run.client);
        return r;
}

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
        { offsetof(PythonOptions, interrupt), "--interrupt", "python.interrupt", print_done },
        { offsetof(PythonOptions, restart), "--restart", "python.restart", print_done },
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
        if (options->json)
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
        if (!options->cwd && !options->timeout && !options->output && !options->fresh &&
            options->env.count == 0 && options->env_files.count == 0 && options->tools.count == 0)
                return 0;
        return error_set(reterr, ERROR_USAGE, 0,
                         "--cwd, --env, --env-file, --timeout, --output, --tool and --fresh need "
                         "code to run");
}

static int check_run(const PythonOptions *options, Error *reterr) {
        if (!options->output || options->json)
                return 0;
        (void)error_set(reterr, ERROR_USAGE, 0, "--output needs --json");
        return error_cure(reterr, -EINVAL, "Without --json, all output is printed.");
}

/* --timeout also limits reading the code from a pipe. */
static int read_code(const char *name, const PythonOptions *options, const char *path, char **ret,
                     Error *reterr) {
        uint64_t timeout = 0;
        int r = ask_timeout(options->timeout, &timeout, reterr);

        return r < 0 ? r : python_code_read(name, path, timeout, ret, reterr);
}

static int python_python(const OptionResult *words, const void *data, Error *reterr) {
        const PythonOptions *options = data;
        const char *name = words->operands[0];
        const char *path = words->operands_count > 1 ? words->operands[1] : NULL;
        const int action = find_action(options);
        _cleanup_free_ char *code = NULL;
        int r;

        if (!!options->code + !!path + count_actions(options) != 1) {
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
        if (r == 0 && !utf8_valid(code ? code : options->code)) {
                r = error_set(reterr, ERROR_USAGE, 0, "%s: the code is not UTF-8",
                              path ? path : "-c");
                return error_cure(reterr, r,
                                  "Save the file as UTF-8, and remove a \"coding:\" line that "
                                  "names another encoding.");
        }
        return r < 0 ? r : python_run(name, options, path, code ? code : options->code, reterr);
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

        strlist_clear(&options.env);
        strlist_clear(&options.env_files);
        strlist_clear(&options.tools);
        return ended_by_ctrl_c
                       ? interrupt_end(cause_name(CAUSE_SIGNALED), 128 + SIGINT, INTERRUPT_SIGNAL)
                       : r;
}
