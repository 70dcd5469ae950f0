/* SPDX-License-Identifier: Apache-2.0 */
/* holt exec, holt sh: a command in a session. Its fds are the caller's own where they are files or
 * pipes; where they are a terminal it gets one of its own, whose other end is pumped here. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "cli/options.h"
#include "cli/verbs.h"
#include "rpc/client.h"
#include "sandbox/prepare.h"
#include "sandbox/terminal.h"
#include "session/keeper.h"

typedef struct ExecOptions {
        const char *cwd, *timeout;
        StrList env;
        bool detach;
} ExecOptions;

static const Option exec_options[] = {
        { "--cwd", "DIR", "where to start; relative to the workspace", OPTION_STRING,
          offsetof(ExecOptions, cwd), NULL },
        { "--env", "NAME[=VALUE]", "a variable beyond the session's own", OPTION_LIST,
          offsetof(ExecOptions, env), NULL },
        { "--timeout", "TIME", "end it after that, by TERM, then KILL", OPTION_STRING,
          offsetof(ExecOptions, timeout), NULL },
        { "--detach", NULL, "print its id and leave it running", OPTION_BOOL,
          offsetof(ExecOptions, detach), NULL },
};

static const OptionSyntax exec_syntax = {
        .verb = "exec",
        .usage = "NAME [OPTIONS] [--] COMMAND [ARG...]",
        .summary = "Runs COMMAND in session NAME, which is started if it is at rest.",
        .options = exec_options,
        .options_count = ELEMENTSOF(exec_options),
        .operand_ends = true,
        .help_epilog = "Exit codes are those of holt run.",
};

typedef struct Exec {
        ExecOptions options;
        OptionResult words;
        const char *name;
        const char *const *command;
        uint64_t timeout; /* usec */
        TerminalPlan plan;
        Terminal *terminal;
        RpcClient *client;
        char id[32];
        int signal_fd;
        int exit_code;
} Exec;

/* --- the request --- */

static void write_env(const StrList *env, JsonWriter *w) {
        json_write_object(w, "env");
        for (size_t i = 0; i < env->count; i++) {
                const char *item = env->items[i], *equals = strchr(item, '=');
                _cleanup_free_ char *name = strndup(item, strcspn(item, "="));
                const char *value = equals ? equals + 1 : getenv(item);

                if (name && value)
                        json_write_string(w, name, value);
        }
        json_write_end(w);
}

static void write_terminal(const Exec *exec, JsonWriter *w) {
        char mode[2 * 60 + 1] = "";
        const unsigned char *bytes = (const unsigned char *)&exec->plan.mode;

        json_write_uint(w, "terminal", exec->plan.fds);
        if (!exec->plan.fds)
                return;
        /* The kernel's struct termios is the start of the libc's. */
        for (size_t i = 0; i < 60; i++)
                (void)snprintf(mode + 2 * i, 3, "%02x", i < sizeof(exec->plan.mode) ? bytes[i] : 0);
        json_write_string(w, "mode", mode);
        json_write_uint(w, "rows", exec->plan.size.ws_row);
        json_write_uint(w, "columns", exec->plan.size.ws_col);
        json_write_bool(w, "master", true);
}

static void write_request(const Exec *exec, unsigned given, JsonWriter *w) {
        const char *term = getenv("TERM");
        StrList *env = (StrList *)(uintptr_t)&exec->options.env;

        (void)term;
        json_write_object(w, NULL);
        json_write_array(w, "argv");
        for (const char *const *word = exec->command; *word; word++)
                json_write_string(w, NULL, *word);
        json_write_end(w);
        if (exec->options.cwd)
                json_write_string(w, "cwd", exec->options.cwd);
        write_env(env, w);
        json_write_uint(w, "timeout_ms", exec->timeout / 1000);
        json_write_uint(w, "fds", given);
        if (!exec->options.detach) {
                json_write_bool(w, "owned", true);
                write_terminal(exec, w);
        }
        json_write_end(w);
}

static int spawn(Exec *exec, RpcMessage *ret, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        unsigned given = exec->options.detach ? 0 : 7 & ~exec->plan.fds;
        int fds[3];
        size_t count = 0;
        int r;

        for (int fd = 0; fd <= 2; fd++)
                if (given & (1U << fd))
                        fds[count++] = fd;
        write_request(exec, given, &w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        r = rpc_client_call(exec->client, "process.spawn", &w, fds, count, ret, reterr);
        if (r < 0)
                return r;
        (void)snprintf(exec->id, sizeof(exec->id), "%s",
                       json_string(json_member(ret->result, "id")));
        return 0;
}

/* --- while it runs --- */

static int ask(Exec *exec, const char *method, const char *key, const char *value, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        uint64_t id;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", exec->id);
        if (key)
                json_write_string(&w, key, value);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        return rpc_client_send(exec->client, method, &w, NULL, 0, &id, reterr);
}

static void pass_signal(Exec *exec) {
        struct signalfd_siginfo info;
        char number[12];
        Error ignored;

        if (read(exec->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
                return;
        if (info.ssi_signo == SIGWINCH) {
                if (exec->terminal)
                        terminal_resize(exec->terminal);
                return;
        }
        (void)snprintf(number, sizeof(number), "%u", info.ssi_signo);
        (void)ask(exec, "process.signal", "signal", number, &ignored);
}

/* 1 when the command has ended, 0 when not, or a negative errno. */
static int read_answers(Exec *exec, uint64_t wait_id, Error *reterr) {
        for (;;) {
                _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
                uint64_t code = 125;
                Error error;
                int r = rpc_client_next(exec->client, false, &message, &error);

                if (r == -EAGAIN)
                        return 0;
                if (r < 0 || (message.id == wait_id && !message.result)) {
                        *reterr = error;
                        return r < 0 ? r : -EINVAL;
                }
                if (message.id != wait_id)
                        continue;
                (void)json_uint(json_member(message.result, "exit_code"), 255, &code);
                exec->exit_code = (int)code;
                return 1;
        }
}

static int wait_for_end(Exec *exec, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        uint64_t id;
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", exec->id);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        r = rpc_client_send(exec->client, "process.wait", &w, NULL, 0, &id, reterr);
        while (r == 0) {
                struct pollfd fds[2 + 3] = { { .fd = rpc_client_fd(exec->client),
                                               .events = POLLIN },
                                             { .fd = exec->signal_fd, .events = POLLIN } };
                size_t more;

                r = read_answers(exec, id, reterr);
                if (r != 0)
                        break;
                more = exec->terminal ? terminal_poll(exec->terminal, fds + 2) : 0;
                if (poll(fds, 2 + more, -1) < 0 && errno != EINTR)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot wait");
                if (exec->terminal)
                        terminal_pump(exec->terminal, fds + 2, more);
                if (fds[1].revents)
                        pass_signal(exec);
        }
        if (exec->terminal) {
                terminal_drain(exec->terminal);
                exec->terminal = terminal_free(exec->terminal);
        }
        return r < 0 ? r : 0;
}

static int open_signals(Exec *exec, Error *reterr) {
        sigset_t set;

        (void)sigemptyset(&set);
        for (int s = 1; s < 32; s++)
                if (s == SIGINT || s == SIGTERM || s == SIGHUP || s == SIGQUIT || s == SIGUSR1 ||
                    s == SIGUSR2 || s == SIGWINCH)
                        (void)sigaddset(&set, s);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        exec->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return exec->signal_fd < 0 ? error_set(reterr, ERROR_SETUP, errno, "cannot make a signalfd")
                                   : 0;
}

static int attend(Exec *exec, RpcMessage *started, Error *reterr) {
        if (exec->plan.fds && started->fds[0] >= 0) {
                exec->terminal = terminal_new(&exec->plan, started->fds[0], NULL);
                if (!exec->terminal)
                        return error_oom(reterr);
                started->fds[0] = FD_NONE;
                if (!exec->plan.background)
                        terminal_enter(exec->terminal);
        }
        return wait_for_end(exec, reterr);
}

static int run(Exec *exec, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage started = RPC_MESSAGE_NONE;
        int fd, r = keeper_connect(exec->name, &fd, reterr);

        if (r == 0)
                r = rpc_client_new(fd, &exec->client, reterr);
        if (r == 0)
                r = open_signals(exec, reterr);
        if (r == 0)
                r = spawn(exec, &started, reterr);
        if (r == 0 && exec->options.detach)
                (void)printf("%s\n", exec->id);
        else if (r == 0)
                r = attend(exec, &started, reterr);
        exec->client = rpc_client_free(exec->client);
        return r;
}

/* --- the command line --- */

/* The name comes first, then options, then the command. */
static int parse(Exec *exec, int argc, char **argv, Error *reterr) {
        int r;

        if (argc > 1 && argv[1][0] != '-') {
                exec->name = argv[1];
                argc--;
                argv++;
        }
        r = options_parse(&exec_syntax, argc, (const char *const *)argv, &exec->options,
                          &exec->words, reterr);
        if (r < 0 || exec->words.help)
                return r;
        exec->command = exec->words.operands;
        if (!exec->name || !exec->command || !exec->command[0]) {
                r = error_set(reterr, ERROR_USAGE, 0, "exec takes a session and a command");
                return error_cure(reterr, r, "holt exec NAME [OPTIONS] -- COMMAND [ARG...]");
        }
        if (exec->options.timeout && str_to_usec(exec->options.timeout, &exec->timeout) < 0) {
                r = error_set(reterr, ERROR_USAGE, 0, "--timeout %s: not a time",
                              exec->options.timeout);
                return error_cure(reterr, r, "A number with a unit, as 250ms, 30s or 10m");
        }
        return 0;
}

static int finish(Exec *exec, int r, const Error *error) {
        if (r == 0)
                return exec->exit_code;
        error_print(error);
        return error_exit_code(error);
}

int cmd_exec(int argc, char **argv) {
        static Exec exec = { .plan = { .output_fd = FD_NONE }, .signal_fd = FD_NONE };
        Error error;
        int r = prepare_stdio(&error);

        if (r == 0)
                r = parse(&exec, argc, argv, &error);
        if (r == 0 && exec.words.help) {
                options_help(&exec_syntax, stdout);
                return 0;
        }
        if (r == 0) {
                terminal_plan(&exec.plan);
                r = run(&exec, &error);
        }
        return finish(&exec, r, &error);
}

int cmd_sh(int argc, char **argv) {
        static const char *const shell[] = { "bash", NULL };
        static Exec exec = { .plan = { .output_fd = FD_NONE }, .signal_fd = FD_NONE };
        Error error;
        int r = prepare_stdio(&error);

        if (r == 0 && (argc != 2 || argv[1][0] == '-')) {
                r = error_set(&error, ERROR_USAGE, 0, "sh takes a session");
                (void)error_cure(&error, r, "holt sh NAME");
        }
        if (r == 0) {
                exec.name = argv[1];
                exec.command = shell;
                terminal_plan(&exec.plan);
                r = run(&exec, &error);
        }
        return finish(&exec, r, &error);
}
