/* SPDX-License-Identifier: Apache-2.0 */
/* holt exec, holt sh: runs a command in a session. The command gets the caller's files and pipes.
 * If one of them is a terminal, the command gets its own terminal, and holt copies the data between
 * the two. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/paths.h"
#include "base/time.h"
#include "cli/ask.h"
#include "cli/exec-explain.h"
#include "cli/exec-line.h"
#include "cli/exec-result.h"
#include "cli/fail.h"
#include "cli/interrupt.h"
#include "cli/logs.h"
#include "cli/operands.h"
#include "cli/report.h"
#include "cli/tools.h"
#include "cli/verbs.h"
#include "keeper/connect.h"
#include "streams/stdio.h"
#include "streams/terminal.h"

static const OptionSyntax sh_syntax = {
        .verb = "sh",
        .usage = "NAME",
        .summary = "Runs an interactive bash in session NAME. Starts the session if it is at rest.",
        .operands = true,
};

typedef struct Exec {
        ExecLine line;
        bool lost;         /* the session ended, so the command's end is unknown */
        bool ended;        /* the command was ended before it had started */
        uint64_t resuming; /* id of the process.resume request that is not answered yet; or 0 */
        TerminalPlan plan;
        Terminal *terminal;
        Interrupt interrupt;
        RpcClient *client;
        ToolHost *tools;
        char id[32];
        int signal_fd;
        uint64_t deadline; /* usec of time_now_usec(); 0 is none */
        Waker waker;       /* set to deadline, if the command has a terminal */
        char *report_path; /* absolute, or NULL */
        int report_fd;
        Answer show;        /* reply to session.show, if a document is to be written */
        RpcMessage settled; /* the reply to process.wait */
        Tail printed;       /* the end of stderr, if it is a terminal or a file */
        off_t began;        /* where the command's stderr began in its file, or -1 */
        Answer refused;     /* reply to process.explain */
} Exec;
/* The versions of clang-format disagree about this macro. */
/* clang-format off */
#define EXEC_NONE                                                                                  \
        {                                                                                          \
                .line = EXEC_LINE_NONE, .plan = { .output_fd = FD_NONE },              \
                .signal_fd = FD_NONE, .report_fd = FD_NONE, .show = ANSWER_NONE, .refused = ANSWER_NONE,                   \
                .settled = RPC_MESSAGE_NONE                                                        \
        }
/* clang-format on */

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

/* --- while it runs --- */

/* Sends a request and returns its id, or 0 if it cannot be sent. The loop notices later that the
 * keeper has gone. */
static uint64_t exec_ask(const Exec *exec, const char *method, const char *signal, bool all) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        uint64_t id = 0;
        Error ignored;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", exec->id);
        if (signal)
                json_write_string(&w, "signal", signal);
        if (all)
                json_write_bool(&w, "all", true);
        json_write_end(&w);
        if (json_write_finish(&w) < 0 ||
            rpc_client_send(exec->client, method, &w, NULL, 0, &id, &ignored) < 0)
                return 0;
        return id;
}

/* Returns whether holt may stop now. After the deadline, the keeper ends the command and holt waits
 * for that. */
static bool exec_may_stop(const Exec *exec) {
        return !exec->deadline || time_now_usec() < exec->deadline;
}

/* Works as in a single run (sandbox/supervise.c). If the command wants the keys and holt has them,
 * the command gets them. Otherwise holt stops, with its whole job and everything that the command
 * has started, until the deadline. Reports of a stop that came before the last process.resume are
 * ignored, including those that holt caused. */
static void exec_command_stopped(Exec *exec, const RpcMessage *message) {
        const uint64_t signal = json_member_uint(message->params, "signal");
        const bool wants_keys = signal == SIGTTIN || signal == SIGTTOU;

        if (!exec->terminal || exec->resuming)
                return;
        if (!wants_keys || !terminal_in_foreground(exec->terminal)) {
                if (!exec_may_stop(exec))
                        return;
                (void)exec_ask(exec, "process.signal", "STOP", true);
                terminal_stop(exec->terminal, 0, wants_keys, &exec->waker);
        }
        if (wants_keys)
                terminal_enter(exec->terminal);
        exec->resuming = exec_ask(exec, "process.resume", NULL, false);
}

/* Handles a signal that concerns the terminal. Returns false if the command must get it instead. */
static bool act_on_signal(const Exec *exec, unsigned signal) {
        if (!exec->terminal)
                return false;
        if (signal == SIGWINCH)
                terminal_resize(exec->terminal);
        else if (signal == SIGCONT && !exec->plan.background)
                terminal_enter(exec->terminal);
        else if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU)
                return signal == SIGCONT;
        else if (exec_may_stop(exec))
                terminal_stop(exec->terminal, getpid(), false, &exec->waker);
        return true;
}

static void pass_signal(Exec *exec) {
        struct signalfd_siginfo info;
        char number[12];

        if (read(exec->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
                return;
        if (act_on_signal(exec, info.ssi_signo))
                return;
        if (info.ssi_signo == SIGINT)
                exec->interrupt = INTERRUPT_SIGNAL;
        (void)snprintf(number, sizeof(number), "%u", info.ssi_signo);
        (void)exec_ask(exec, "process.signal", number, false);
}

/* Returns 1 if the command has ended, 0 if not, or a negative errno. */
static int read_answers(Exec *exec, uint64_t wait_id, Error *reterr) {
        for (;;) {
                _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
                Error error;
                int r = rpc_client_next(exec->client, false, &message, &error);

                if (r == -EAGAIN)
                        return 0;
                if (r < 0 || (!message.result && rpc_message_answers(&message, wait_id))) {
                        *reterr = error;
                        return r < 0 ? r : -EINVAL;
                }
                if (message.method && streq(message.method, "process.stopped"))
                        exec_command_stopped(exec, &message);
                if (message.id == exec->resuming)
                        exec->resuming = 0;
                if (message.id != wait_id) {
                        (void)tool_host_take(exec->tools, &message);
                        continue;
                }
                exec->settled = message;
                message = (RpcMessage)RPC_MESSAGE_NONE;
                return 1;
        }
}

static int exec_wait_for_end(Exec *exec, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        uint64_t id;
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", exec->id);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        r = rpc_client_send(exec->client, "process.wait", &w, NULL, 0, &id, reterr);
        exec->lost = r < 0;
        while (r == 0) {
                struct pollfd fds[3 + 3] = { { .fd = rpc_client_fd(exec->client) },
                                             { .fd = exec->signal_fd, .events = POLLIN },
                                             { .fd = tool_host_fd(exec->tools),
                                               .events = POLLIN } };
                size_t more;

                r = read_answers(exec, id, reterr);
                exec->lost = r < 0;
                if (r != 0)
                        break;
                fds[0].events = POLLIN;
                if (rpc_client_waits(exec->client))
                        fds[0].events |= POLLOUT;
                more = exec->terminal ? terminal_poll(exec->terminal, fds + 3) : 0;
                if (poll(fds, 3 + more, -1) < 0 && errno != EINTR)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot wait for the command");
                if (exec->terminal)
                        terminal_pump(exec->terminal, fds + 3, more);
                if (fds[0].revents & POLLOUT)
                        (void)rpc_client_flush(exec->client);
                if (fds[2].revents)
                        tool_host_work(exec->tools);
                if (fds[1].revents)
                        pass_signal(exec);
        }
        if (exec->terminal) {
                terminal_drain(exec->terminal);
                if (terminal_interrupted(exec->terminal))
                        exec->interrupt = INTERRUPT_KEY;
                exec->terminal = terminal_free(exec->terminal);
        }
        return r < 0 ? r : 0;
}

static int exec_open_signals(Exec *exec, Error *reterr) {
        /* Without a terminal, the kernel's own job control applies, so holt handles the own[]
         * signals only with one. */
        static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 },
                         own[] = { SIGWINCH, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU };
        sigset_t set;

        (void)sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(passed); i++)
                (void)sigaddset(&set, passed[i]);
        for (size_t i = 0; i < ELEMENTSOF(own) && exec->plan.fds; i++)
                (void)sigaddset(&set, own[i]);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        exec->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return exec->signal_fd < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot create a signalfd")
                       : 0;
}

/* Takes the result from the reply to process.spawn if the command was ended before it had
 * started. */
static bool exec_has_ended(Exec *exec, RpcMessage *started) {
        const JsonValue *ended = json_member(started->result, "ended");

        if (!ended)
                return false;
        exec->ended = true;
        exec->settled = *started;
        exec->settled.result = ended;
        *started = (RpcMessage)RPC_MESSAGE_NONE;
        return true;
}

static int exec_attend(Exec *exec, RpcMessage *started, Error *reterr) {
        int r;

        if (exec_has_ended(exec, started))
                return 0;
        if (exec->plan.fds && started->fds[0] >= 0) {
                exec->terminal = terminal_new(&exec->plan, started->fds[0], NULL);
                if (!exec->terminal)
                        return error_oom(reterr);
                started->fds[0] = FD_NONE;
                if (exec->plan.fds & 4)
                        terminal_keep(exec->terminal, &exec->printed);
                if (exec->deadline && waker_make(&exec->waker) == 0)
                        waker_set(&exec->waker, exec->deadline);
                if (!exec->plan.background)
                        terminal_enter(exec->terminal);
        }
        r = exec_wait_for_end(exec, reterr);
        stdio_restore(exec->plan.fds);
        return r;
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
        return report_open(exec->report_path, &writable, &exec->report_fd, reterr);
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

/* error is NULL if holt itself did not fail. Returns the exit code. */
static int exec_tell(const Exec *exec, Error *error) {
        ExecResult result = { .session = exec->line.name,
                              .id = exec->id,
                              .command = exec->line.command,
                              .result = exec->settled.result,
                              .refused = exec->refused.result,
                              .show = exec->show.result,
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

        exec->tools = tool_host_free(exec->tools);
        exec->client = rpc_client_free(exec->client);
        if (r == 0)
                r = rpc_client_new(fd, &exec->client, reterr);
        if (r == 0 && !exec->line.options.detach && !exec->show.result)
                r = prepare_document(exec, reterr);
        if (r == 0)
                r = tool_host_new(exec->line.name, exec->client, &exec->line.options.tools,
                                  &exec->tools, reterr);
        if (r == 0 && exec->signal_fd < 0)
                r = exec_open_signals(exec, reterr);
        return r < 0 ? r : exec_spawn(exec, ret_started, reterr);
}

/* If the command has failed, finds out why, unless the keeper has read its output. */
static void find_refused(Exec *exec) {
        const ExecResult result = { .result = exec->settled.result };
        const char *const shell[] = { "bash", "-c", exec->line.options.shell, NULL };

        if (exec->line.captured || exec->ended || exec_result_code(&result) == 0)
                return;
        if (exec->began >= 0)
                tail_file_add(&exec->printed, STDERR_FILENO, exec->began);
        exec_explain(exec->client, exec->id, &exec->printed,
                     exec->line.options.shell ? shell : exec->line.command, &exec->refused);
}

static int exec_run(Exec *exec, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage started = RPC_MESSAGE_NONE;
        unsigned tries = 0;
        Error ignored;
        int r;

        stdio_note();
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
        /* The commands that undo a move need the workspace's host directory. If the sandbox was
         * stopped, its keeper may be gone; the result is complete without that directory. */
        if (r == 0 && !exec->show.result && exec_result_set_aside(exec->settled.result))
                (void)ask_client(exec->client, "session.show", NULL, &exec->show, &ignored);
        exec->tools = tool_host_free(exec->tools);
        exec->client = rpc_client_free(exec->client);
        return r;
}

/* --- the command line --- */

/* Passes the caller's TERM, because the output reaches the caller's terminal, unless --env sets
 * it. */
static int pass_term(Exec *exec, Error *reterr) {
        if (exec->plan.fds == 0 || ask_env_has(&exec->line.env, "TERM"))
                return 0;
        return strlist_add(&exec->line.env, "TERM") < 0 ? error_oom(reterr) : 0;
}

/* Runs the command and reports the result, or what is known of it. */
static int main_with(Exec *exec, Error *error) {
        int r, code;

        if (!exec->line.captured)
                terminal_plan(&exec->plan);
        r = pass_term(exec, error);
        if (r == 0)
                r = exec_run(exec, error);
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
        int r = stdio_open(&error);

        if (r == 0)
                r = exec_line_parse(&exec.line, argc, argv, &error);
        if (r == 0 && exec.line.words.help) {
                options_help(&exec_line_syntax, stdout);
                return 0;
        }
        if (r == 0)
                return main_with(&exec, &error);
        exec.line.options.json |= fail_wants_json(argc, argv);
        return exec_tell(&exec, &error);
}

int cmd_sh(int argc, char **argv) {
        static const char *const shell[] = { "bash", NULL };
        static Exec exec = EXEC_NONE;
        Error error;
        int r = stdio_open(&error);

        if (r == 0 && argc == 2 && (streq(argv[1], "--help") || streq(argv[1], "-h"))) {
                options_help(&sh_syntax, stdout);
                return 0;
        }
        if (r == 0)
                r = options_parse(&sh_syntax, argc, (const char *const *)argv, NULL,
                                  &exec.line.words, &error);
        if (r == 0 && exec.line.words.operands_count > 0)
                exec.line.name = exec.line.words.operands[0];
        if (r == 0)
                r = operands_check("sh", sh_syntax.usage, exec.line.words.operands,
                                   exec.line.words.operands_count, 1, 1, &error);
        if (r == 0 && strlist_add(&exec.line.env, "PS1=holt:\\w\\$ ") < 0)
                r = error_oom(&error);
        if (r < 0) {
                exec.line.options.json = fail_wants_json(argc, argv);
                return exec_tell(&exec, &error);
        }
        exec.line.command = shell;
        return main_with(&exec, &error);
}
