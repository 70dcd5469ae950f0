/* SPDX-License-Identifier: Apache-2.0 */
/* holt exec: runs a command in a session. The command gets the caller's files and pipes.
 * If one of them is a terminal, the command gets its own terminal, and holt copies the data between
 * the two (exec-attend.c). */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/paths.h"
#include "base/time.h"
#include "cli/exec-explain.h"
#include "cli/exec-internal.h"
#include "cli/exec-result.h"
#include "cli/fail.h"
#include "cli/interrupt.h"
#include "cli/logs.h"
#include "cli/operands.h"
#include "cli/report.h"
#include "cli/verbs.h"
#include "keeper/connect.h"
#include "outcome/network-words.h"
#include "streams/stdio.h"

/* --- the request --- */

static void write_terminal(const Exec *exec, JsonWriter *w) {
        char mode[2 * 60 + 1] = "";
        const unsigned char *bytes = (const unsigned char *)&exec->plan.mode;

        json_write_uint(w, "terminal", exec->plan.fds);
        if (!exec->plan.fds)
                return;
        json_write_bool(w, "background", exec->plan.background);
        /* The kernel's struct termios is a prefix of libc's. */
        for (size_t i = 0; i < 60; i++)
                (void)snprintf(mode + 2 * i, 3, "%02x", i < sizeof(exec->plan.mode) ? bytes[i] : 0);
        json_write_string(w, "mode", mode);
        json_write_uint(w, "rows", exec->plan.size.ws_row);
        json_write_uint(w, "columns", exec->plan.size.ws_col);
        json_write_bool(w, "master", true);
}

static void write_argv(const Exec *exec, JsonWriter *w) {
        json_write_array(w, "argv");
        for (const char *const *word = exec->line.command; *word; word++)
                json_write_string(w, NULL, *word);
        json_write_end(w);
}

static void exec_write_request(const Exec *exec, unsigned given, JsonWriter *w) {
        json_write_object(w, NULL);
        if (exec->line.options.shell)
                json_write_string(w, "shell", exec->line.options.shell);
        else
                write_argv(exec, w);
        if (exec->line.options.cwd)
                json_write_string(w, "cwd", exec->line.options.cwd);
        ask_write_env(&exec->line.env, w);
        tool_specs_write(&exec->line.options.tools, w);
        json_write_uint(w, "timeout_ms", exec->line.timeout / 1000);
        json_write_uint(w, "fds", given);
        if (exec->line.options.output)
                json_write_uint(w, "output_max", exec->line.output);
        if (exec->line.options.keep != KEEP_UNSAID)
                json_write_string(w, "keep", exec_keep_names[exec->line.options.keep]);
        else if (exec->line.options.detach) /* a server's last output matters most */
                json_write_string(w, "keep", exec_keep_names[KEEP_TAIL]);
        if (!exec->line.options.detach) {
                json_write_bool(w, "owned", true);
                write_terminal(exec, w);
        }
        json_write_end(w);
}

/* Returns the mask of the fds passed to the command. The caller's terminal is never passed. */
static unsigned given_fds(const Exec *exec) {
        if (exec->line.options.detach)
                return 0;
        if (exec->line.captured)
                return isatty(STDIN_FILENO) ? 0 : 1;
        return 7 & ~exec->plan.fds;
}

/* Before the command has started, it cannot get signals, and other commands of the session may
 * delay it. So signals end holt itself meanwhile, and the keeper then kills the command. */
static void let_signals_end(bool let) {
        sigset_t ends;

        (void)sigemptyset(&ends);
        (void)sigaddset(&ends, SIGINT);
        (void)sigaddset(&ends, SIGTERM);
        (void)sigaddset(&ends, SIGHUP);
        (void)sigaddset(&ends, SIGQUIT);
        (void)sigprocmask(let ? SIG_UNBLOCK : SIG_BLOCK, &ends, NULL);
}

static int exec_spawn(Exec *exec, RpcMessage *ret, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const unsigned given = given_fds(exec);
        const uint64_t asked_at = time_now_usec();
        int fds[3];
        size_t count = 0;
        uint64_t timeout;
        int r;

        for (int fd = 0; fd <= 2; fd++)
                if (given & (1U << fd))
                        fds[count++] = fd;
        exec_write_request(exec, given, &w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        let_signals_end(true);
        r = rpc_client_call(exec->client, "process.spawn", &w, fds, count, ret, reterr);
        let_signals_end(false);
        if (r < 0)
                return r;
        (void)snprintf(exec->id, sizeof(exec->id), "%s",
                       json_string(json_member(ret->result, "id")));
        timeout = json_member_uint(ret->result, "timeout_us");
        exec->deadline = timeout ? asked_at + timeout : 0;
        return 0;
}

/* --- the result --- */

static int exec_open_report(Exec *exec, Error *reterr) {
        _cleanup_(strlist_clear) StrList writable = { 0 };
        char cwd[PATH_MAX];
        int r;

        if (!exec->line.options.report)
                return 0;
        r = report_check_name(exec->line.options.report, reterr);
        if (r < 0)
                return r;
        if (!getcwd(cwd, sizeof(cwd)))
                return error_set(reterr, ERROR_SETUP, errno, "cannot find the working directory");
        exec->report_path = path_join(cwd, exec->line.options.report);
        if (!exec->report_path || ask_writable(exec->show.result, &writable) < 0)
                return error_oom(reterr);
        return report_open("--report", exec->report_path, &writable, &exec->report_fd, reterr);
}

/* If a document is to be written, asks for the session's facts and opens the file. */
static int prepare_document(Exec *exec, Error *reterr) {
        int r;

        if (!exec->line.options.report && !exec->line.options.json)
                return 0;
        r = ask_client(exec->client, "session.show", NULL, &exec->show, reterr);
        return r < 0 ? r : exec_open_report(exec, reterr);
}

/* Prints the kept output after the command has ended. */
static int print_captured(const Exec *exec, Error *reterr) {
        return exec->line.captured && !exec->ended ? logs_print(exec->client, exec->id, reterr) : 0;
}

static int write_report(const Exec *exec, const ExecResult *result, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };

        if (exec->report_fd < 0)
                return 0;
        (void)exec_result_write(result, &w);
        return report_replace(exec->report_fd, exec->report_path, &w, reterr);
}

static void print_result(const Exec *exec, const ExecResult *result) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (!exec->line.options.json) {
                exec_result_tell(result);
                return;
        }
        (void)exec_result_write(result, &w);
        report_print_document(&w, stderr);
}

int exec_tell(const Exec *exec, Error *error) {
        ExecResult result = { .session = exec->line.name,
                              .id = exec->id,
                              .command = exec->line.command,
                              .result = exec->settled.result,
                              .refused = exec->refused.result,
                              .show = exec->show.result,
                              .printed = &exec->printed,
                              .error = exec->lost ? NULL : error,
                              .lost = exec->lost,
                              .timeout = exec->line.timeout,
                              .captured = exec->line.captured };
        Error failed;

        if (error)
                operands_name_session(exec->line.name, error);
        if (write_report(exec, &result, &failed) < 0)
                result.error = &failed;
        print_result(exec, &result);
        return exec_result_code(&result);
}

/* --- one command --- */

static void print_detached(const Exec *exec, const RpcMessage *started) {
        Error ignored;

        if (exec->line.options.json)
                (void)ask_print_json(started->result, &ignored);
        else
                (void)printf("%s\n", exec->id);
}

static int exec_start(Exec *exec, RpcMessage *ret_started, Error *reterr) {
        int fd, r = keeper_connect(exec->line.name, &fd, reterr);

        exec->asking = exec_asking_free(exec->asking);
        exec->tools = tool_host_free(exec->tools);
        exec->client = rpc_client_free(exec->client);
        if (r < 0)
                return r;
        r = rpc_client_new(fd, &exec->client, reterr);
        if (r < 0)
                return r;
        r = exec->line.options.detach || exec->show.result ? 0 : prepare_document(exec, reterr);
        if (r < 0)
                return r;
        r = tool_host_new(exec->line.name, exec->client, &exec->line.options.tools, &exec->tools,
                          reterr);
        if (r < 0)
                return r;
        if (exec->line.options.ask)
                r = exec_asking_new(exec->client, &exec->asking, reterr);
        if (r < 0)
                return r;
        r = exec->signal_fd < 0 ? exec_open_signals(exec, reterr) : 0;
        return r < 0 ? r : exec_spawn(exec, ret_started, reterr);
}

/* Whether the keeper reads stderr: it keeps the output, or reads it on its way to a pipe. */
static bool exec_is_overheard(const Exec *exec) {
        return exec->line.captured ||
               (!(exec->plan.fds & 4) && tail_can_pass(STDERR_FILENO, STDIN_FILENO));
}

/* If the command has failed, finds out why. If the keeper reads stderr, the result says so already,
 * and hints need only the text. */
static void find_refused(Exec *exec) {
        const ExecResult result = { .result = exec->settled.result };
        const char *const shell[] = { "bash", "-c", exec->line.options.shell, NULL };

        if (exec->ended || exec_result_code(&result) == 0)
                return;
        if (exec_is_overheard(exec))
                return exec_explain_read(exec->client, exec->id, &exec->printed);
        if (exec->began >= 0)
                tail_file_add(&exec->printed, STDERR_FILENO, exec->began);
        exec_explain(exec->client, exec->id, &exec->printed,
                     exec->line.options.shell ? shell : exec->line.command, &exec->refused);
}

static int exec_run(Exec *exec, const FdFacts stdio[3], Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage started = RPC_MESSAGE_NONE;
        unsigned tries = 0;
        Error ignored;
        int r;

        stdio_note(stdio);
        exec->began = tail_file_begin(STDERR_FILENO);
        do
                r = exec_start(exec, &started, reterr);
        while (keeper_may_retry(r, &tries));
        if (r == 0 && exec->line.options.detach)
                print_detached(exec, &started);
        else if (r == 0)
                r = exec_attend(exec, &started, reterr);
        if (r == 0 && !exec->line.options.detach)
                r = print_captured(exec, reterr);
        if (r == 0 && !exec->line.options.detach)
                find_refused(exec);
        /* Hints for git, and the commands that undo a move, need the workspace's host directory.
         * Hints for the network need its mode. If the sandbox was stopped, its keeper may be gone;
         * the result is complete without these hints. */
        if (r == 0 && !exec->show.result &&
            (exec_result_needs_show(exec->settled.result) ||
             json_member(exec->settled.result, "network_missed") ||
             json_member(exec->refused.result, "network_missed") ||
             network_words_own_port(exec->printed.data, exec->printed.length)))
                (void)ask_client(exec->client, "session.show", NULL, &exec->show, &ignored);
        exec->tools = tool_host_free(exec->tools);
        exec->client = rpc_client_free(exec->client);
        return r;
}

/* --- the command line --- */

/* Passes the caller's TERM, unless --env sets it, because the output reaches the caller's
 * terminal. */
static int pass_term(Exec *exec, Error *reterr) {
        if (exec->plan.fds == 0 || ask_env_has(&exec->line.env, "TERM"))
                return 0;
        return strlist_add(&exec->line.env, "TERM") < 0 ? error_oom(reterr) : 0;
}

int exec_main(Exec *exec, Error *error) {
        FdFacts stdio[3];
        int r, code;

        fd_facts_stdio(stdio);
        if (!exec->line.captured)
                terminal_plan(stdio, &exec->plan);
        r = pass_term(exec, error);
        if (r == 0)
                r = exec_run(exec, stdio, error);
        if (r == 0 && exec->line.options.detach)
                return 0;
        code = exec_tell(exec, r < 0 ? error : NULL);
        return r < 0 ? code
                     : interrupt_end(json_member_text(exec->settled.result, "cause"), code,
                                     exec->interrupt);
}

int cmd_exec(int argc, char **argv) {
        static Exec exec = EXEC_NONE;
        Error error;
        int r = stdio_open(NULL, &error);

        if (r == 0)
                r = exec_line_parse(&exec.line, argc, argv, &error);
        if (r == 0 && exec.line.words.help) {
                options_help(&exec_line_syntax, stdout);
                return 0;
        }
        if (r == 0)
                return exec_main(&exec, &error);
        exec.line.options.json |= fail_wants_json(argc, argv);
        return exec_tell(&exec, &error);
}
