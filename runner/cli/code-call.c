/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/code-call.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "cli/env-file.h"
#include "cli/exec-result.h"
#include "cli/shown.h"
#include "keeper/connect.h"

#define RUN_NAME "1" /* this connection's only run */

enum { PATIENCE = 1000 }; /* msec to wait for a slow reader, once holt is to end */

static void code_call_tell(const CodeCall *run, const char *method, uint64_t *ret_id) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;

        json_write_object(&w, NULL);
        json_write_string(&w, "run", RUN_NAME);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                (void)rpc_client_send(run->client, method, &w, NULL, 0, ret_id, &ignored);
}

/* Ctrl-C interrupts the code. The second signal that asks for an end makes holt itself end. */
static void code_call_on_signal(CodeCall *run) {
        struct signalfd_siginfo info;
        bool interrupts;

        if (read(run->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
                return;
        interrupts = info.ssi_signo == SIGINT;
        if (!interrupts || run->interrupted)
                run->told_by = (int)info.ssi_signo;
        run->interrupted |= interrupts;
        code_call_tell(run, interrupts ? run->verb->interrupt : run->verb->restart, &run->told_id);
}

/* Waits until a pipe has room for a page, or until holt is to end and nobody has read for a
 * while. */
static void code_call_wait_for_room(CodeCall *run, int fd) {
        struct pollfd fds[] = { { .fd = fd, .events = POLLOUT },
                                { .fd = run->signal_fd, .events = POLLIN } };

        while (!fds[0].revents && !run->ends_by) {
                int n = poll(fds, ELEMENTSOF(fds), run->told_by ? PATIENCE : -1);

                if (n == 0)
                        run->ends_by = run->told_by;
                else if (n < 0 && errno != EINTR)
                        return;
                else if (fds[1].revents)
                        code_call_on_signal(run);
        }
}

/* Prints output, and does not wait forever for a reader. If the reader has left, the code gets a
 * signal, as it would get SIGPIPE. */
void code_call_print_bytes(CodeCall *run, FILE *out, const char *bytes, size_t length) {
        _cleanup_free_ char *owned = NULL;

        if (shown_bytes(fileno(out), &bytes, &length, &owned) < 0)
                return;
        for (size_t at = 0, n; at < length; at += n) {
                n = length - at < PIPE_BUF ? length - at : PIPE_BUF;
                code_call_wait_for_room(run, fileno(out));
                if (run->ends_by)
                        return;
                (void)fwrite(bytes + at, 1, n, out);
                if (fflush(out) != 0 && errno == EPIPE) {
                        run->ends_by = SIGPIPE;
                        return code_call_tell(run, run->verb->interrupt, &run->told_id);
                }
        }
}

static void code_call_print_output(CodeCall *run, const JsonValue *params) {
        const char *encoded = json_member_text(params, "base64");
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;

        if (base64_decode(encoded, &bytes, &length) < 0)
                return;
        code_call_print_bytes(run,
                              streq(json_member_text(params, "stream"), "stderr") ? stderr : stdout,
                              bytes, length);
        run->printed += length;
}

/* Returns 1 if the run has ended, 0 if not, or a negative errno. */
static int code_call_read(CodeCall *run, Error *reterr) {
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
                        code_call_print_output(run, message.params);
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

static int code_call_wait(CodeCall *run, Error *reterr) {
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

                r = code_call_read(run, reterr);
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
                        code_call_on_signal(run);
        }
        return r < 0 ? r : 0;
}

void code_call_let_signals(const CodeCall *run) {
        if (run->ends_by) {
                (void)signal(run->ends_by, SIG_DFL);
                (void)raise(run->ends_by);
        }
        (void)sigprocmask(SIG_UNBLOCK, &run->blocked, NULL);
}

static int code_call_write(CodeCall *run, Error *reterr) {
        const CodeOptions *options = run->options;
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
        if (options->fresh)
                json_write_bool(w, "fresh", true);
        json_write_string(w, "run", RUN_NAME);
        json_write_bool(w, "watch", !options->json);
        json_write_bool(w, "base64", !options->json);
        json_write_end(w);
        return json_write_finish(w) < 0 ? error_oom(reterr) : 0;
}

void code_call_tell_refused(const CodeCall *run) {
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

/* --- all steps --- */

static int code_call_connect(CodeCall *run, Error *reterr) {
        int fd, r = keeper_connect(run->name, &fd, reterr);

        return r == 0 ? rpc_client_new(fd, &run->client, reterr) : r;
}

static int code_call_lend_tools(CodeCall *run, Error *reterr) {
        return tool_host_new(run->name, run->client, &run->options->tools, &run->tools, reterr);
}

static int code_call_send(CodeCall *run, Error *reterr) {
        return rpc_client_send(run->client, run->verb->method, &run->request, NULL, 0, &run->id,
                               reterr);
}

static int (*const code_call_steps[])(CodeCall *run, Error *reterr) = {
        code_call_write, code_call_connect, code_call_lend_tools, code_call_send, code_call_wait,
};

int code_call(const CodeVerb *verb, const char *name, const CodeOptions *options, const char *path,
              const char *code, Error *reterr) {
        const bool has_name = path && !streq(path, "-") && utf8_valid(path);
        CodeCall run = { .verb = verb,
                         .name = name,
                         .code = code,
                         .options = options,
                         .file = has_name ? path : NULL,
                         .signal_fd = FD_NONE,
                         .answer = ANSWER_NONE };
        int r = RUN_STEPS(code_call_steps, &run, reterr);

        if (r == 0 && !run.ends_by)
                r = verb->print_end(&run, reterr);
        if (run.ends_by) {
                code_call_let_signals(&run);
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
