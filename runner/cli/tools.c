/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/list.h"
#include "base/sys.h"
#include "cli/tool-command.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { PRINTED, SAID, STREAMS }; /* indexes of stdout and stderr */

typedef struct Stream {
        int fd;
        char *data;
        size_t length;
} Stream;

/* One call, from its request to its reply. */
typedef struct Call {
        struct Call *next;
        char *request, *name; /* owned; request: the id under which the reply is sent */
        char id[24];          /* the id that tool.cancel uses */
        JsonWriter payload;
        pid_t pid; /* 0 while it waits to be started */
        int pidfd;
        Stream streams[STREAMS];
        bool over; /* it has printed too much */
} Call;

struct ToolHost {
        RpcClient *client;
        ToolCommands *commands;
        int epoll_fd;
        Call *calls; /* in the order in which they came */
};

/* --- calls --- */

static void tools_call_free(Call *call) {
        if (call->pid > 0) {
                (void)kill(-call->pid, SIGKILL);
                (void)kill(call->pid, SIGKILL);
                (void)waitpid(call->pid, NULL, 0);
        }
        (void)fd_close(call->pidfd);
        for (int s = 0; s < STREAMS; s++) {
                (void)fd_close(call->streams[s].fd);
                free(call->streams[s].data);
        }
        json_write_clear(&call->payload);
        free(call->request);
        free(call->name);
        free(call);
}

static void tools_drop(ToolHost *host, Call *call) {
        (void)list_remove(&host->calls, call);
        tools_call_free(call);
}

ToolHost *tool_host_free(ToolHost *host) {
        if (!host)
                return NULL;
        while (host->calls)
                tools_drop(host, host->calls);
        (void)fd_close(host->epoll_fd);
        tool_commands_free(host->commands);
        free(host);
        return NULL;
}

int tool_host_fd(const ToolHost *host) {
        return host ? host->epoll_fd : -1;
}

/* --- replies --- */

/* If a reply cannot be sent, nobody waits for it any more. */
static void answer_failure(const ToolHost *host, const Call *call, const char *message) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;

        json_write_object(&w, NULL);
        json_write_int(&w, "code", -32000);
        json_write_string(&w, "message", message);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                (void)rpc_client_answer(host->client, call->request, NULL, &w, &ignored);
}

static void answer_value(const ToolHost *host, const Call *call, const JsonValue *value) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;

        json_write_object(&w, NULL);
        json_copy(&w, "value", value);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                answer_failure(host, call, "out of memory");
        else
                (void)rpc_client_answer(host->client, call->request, &w, NULL, &ignored);
}

/* The last line of stderr usually tells the most. */
static const char *last_line(Stream *said) {
        char *line;

        while (said->length > 0 && strchr("\n\r ", said->data[said->length - 1]))
                said->length--;
        if (said->length == 0)
                return NULL;
        said->data[said->length] = '\0';
        line = memrchr(said->data, '\n', said->length);
        return line ? line + 1 : said->data;
}

static void answer_exit(const ToolHost *host, Call *call, int status) {
        const Stream *printed = &call->streams[PRINTED];
        const char *said = last_line(&call->streams[SAID]);
        _cleanup_(json_freep) JsonDocument *document = NULL;
        char message[1500];
        Error error;

        if (call->over) {
                (void)snprintf(message, sizeof(message), "the command of '%s' printed too much",
                               call->name);
                return answer_failure(host, call, message);
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                (void)snprintf(message, sizeof(message), "the command of '%s' ended with %d%s%s",
                               call->name,
                               WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                               said ? ": " : "", said ? said : "");
                return answer_failure(host, call, message);
        }
        if (json_parse(printed->data ? printed->data : "", printed->length, "its output", &document,
                       &error) == 0)
                return answer_value(host, call, json_root(document));
        (void)snprintf(message, sizeof(message), "the command of '%s' must print JSON: %s",
                       call->name, error.text);
        answer_failure(host, call, message);
}

/* --- running --- */

/* Runs in the child. Relative paths lead nowhere from "/" (cli/tool-command.h). */
static _noreturn_ void tools_execute(const ToolCommand *command, int payload_fd,
                                     const int outputs[STREAMS]) {
        sigset_t none;
        int r;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpgid(0, 0);
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)dup2(payload_fd, STDIN_FILENO);
        (void)dup2(outputs[PRINTED], STDOUT_FILENO);
        (void)dup2(outputs[SAID], STDERR_FILENO);
        r = chdir("/") < 0 ? -errno : tool_command_execute(command);
        (void)dprintf(STDERR_FILENO, "cannot execute %s: %s", command->path, strerror(-r));
        _exit(127);
}

static int tools_watch(const ToolHost *host, int fd, Call *call) {
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = call };

        return epoll_ctl(host->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int make_payload(const Call *call) {
        _cleanup_close_ int fd = sys_memfd_create("holt-tool", MFD_CLOEXEC);

        if (fd < 0 ||
            write(fd, call->payload.data, call->payload.length) != (ssize_t)call->payload.length)
                return FD_NONE;
        return lseek(fd, 0, SEEK_SET) == 0 ? TAKE_FD(fd) : FD_NONE;
}

static int make_streams(const ToolHost *host, Call *call, int ret_outputs[STREAMS]) {
        for (int s = 0; s < STREAMS; s++) {
                int pair[2];

                if (pipe2(pair, O_CLOEXEC) < 0)
                        return -errno;
                call->streams[s].fd = pair[0];
                ret_outputs[s] = pair[1];
                (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
                if (tools_watch(host, pair[0], call) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Returns a negative errno with an error if the command cannot be used any more, such as -EPERM. */
static int tools_run(const ToolHost *host, Call *call, Error *reterr) {
        _cleanup_(tool_command_clear) ToolCommand command = TOOL_COMMAND_NONE;
        _cleanup_close_ int payload_fd = make_payload(call);
        int outputs[STREAMS] = { FD_NONE, FD_NONE };
        int r = tool_commands_prepare(host->commands, call->name, &command, reterr);

        if (r < 0)
                return r;
        r = payload_fd >= 0 ? make_streams(host, call, outputs) : -EINVAL;
        if (r == 0)
                call->pid = fork();
        if (r == 0 && call->pid == 0)
                tools_execute(&command, payload_fd, outputs);
        for (int s = 0; s < STREAMS; s++)
                (void)fd_close(outputs[s]);
        if (r < 0 || call->pid < 0) {
                call->pid = 0;
                return error_set(reterr, ERROR_SETUP, 0,
                                 "the host cannot start the tool's command");
        }
        (void)setpgid(call->pid, call->pid);
        call->pidfd = (int)syscall(SYS_pidfd_open, call->pid, 0);
        r = call->pidfd < 0 ? -errno : tools_watch(host, call->pidfd, call);
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r,
                                 "the host cannot watch the tool's command")
                     : 0;
}

/* Starts waiting calls, up to the number that may run at the same time. */
static void run_next(ToolHost *host) {
        char sentence[ERROR_SENTENCE_MAX];
        unsigned running = 0;
        Error error;
        Call *next;

        for (const Call *call = host->calls; call; call = call->next)
                running += call->pid > 0;
        for (Call *call = host->calls; call && running < TOOL_COMMANDS_MAX; call = next) {
                next = call->next;
                if (call->pid > 0)
                        continue;
                if (tools_run(host, call, &error) == 0) {
                        running++;
                        continue;
                }
                answer_failure(host, call, error_sentence(&error, sentence));
                tools_drop(host, call);
        }
}

/* --- their output --- */

/* Reads some output. Returns false at the end, or if there is nothing to read now. */
static bool tools_read_some(Call *call, int which) {
        Stream *stream = &call->streams[which];
        char buf[16 << 10], *data;
        ssize_t n = read(stream->fd, buf, sizeof(buf));

        if (n <= 0) {
                if (n == 0 || (errno != EAGAIN && errno != EINTR))
                        stream->fd = fd_close(stream->fd);
                return false;
        }
        if (which == SAID && stream->length + (size_t)n > sizeof(buf))
                stream->length = 0; /* only the last part of stderr is reported */
        if (stream->length + (size_t)n > TOOL_PRINTED_MAX) {
                call->over = true;
                (void)kill(-call->pid, SIGKILL);
                stream->fd = fd_close(stream->fd);
                return false;
        }
        data = realloc(stream->data, stream->length + (size_t)n + 1);
        if (!data)
                return false;
        memcpy(data + stream->length, buf, (size_t)n);
        stream->data = data;
        stream->length += (size_t)n;
        return true;
}

static void tools_drain(Call *call) {
        for (int s = 0; s < STREAMS; s++)
                while (call->streams[s].fd >= 0 && tools_read_some(call, s))
                        ;
}

static bool has_call(const ToolHost *host, const Call *wanted) {
        for (const Call *call = host->calls; call; call = call->next)
                if (call == wanted)
                        return true;
        return false;
}

/* Ends a call when its command has ended, without waiting for the command's background
 * processes. */
static void tools_attend(ToolHost *host, Call *call) {
        siginfo_t info = { 0 };
        int status;

        if (waitid(P_PIDFD, (id_t)call->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
            info.si_pid == 0)
                return tools_drain(call);
        tools_drain(call);
        (void)waitpid(call->pid, &status, 0);
        call->pid = 0;
        answer_exit(host, call, status);
        tools_drop(host, call);
}

void tool_host_work(ToolHost *host) {
        struct epoll_event events[16];
        int n;

        if (!host)
                return;
        n = epoll_wait(host->epoll_fd, events, ELEMENTSOF(events), 0);
        for (int i = 0; i < n; i++)
                if (has_call(host, events[i].data.ptr))
                        tools_attend(host, events[i].data.ptr);
        run_next(host);
}

/* --- messages --- */

static void tools_cancel(ToolHost *host, const char *id) {
        for (Call *call = host->calls; call; call = call->next)
                if (streq(call->id, id)) {
                        tools_drop(host, call);
                        return run_next(host);
                }
}

static void tools_begin(ToolHost *host, const RpcMessage *message) {
        const JsonValue *payload = json_member(message->params, "payload");
        Call *call = calloc(1, sizeof(*call));

        if (!call)
                return;
        *call = (Call){ .pidfd = FD_NONE,
                        .streams = { { FD_NONE, NULL, 0 }, { FD_NONE, NULL, 0 } } };
        call->request = strdup(message->request);
        call->name = strdup(json_member_text(message->params, "name"));
        (void)snprintf(call->id, sizeof(call->id), "%s", json_member_text(message->params, "call"));
        if (payload)
                json_copy(&call->payload, NULL, payload);
        if (!payload || !call->request || !call->name || json_write_finish(&call->payload) < 0) {
                tools_call_free(call);
                return;
        }
        list_append(&host->calls, call);
        run_next(host);
}

bool tool_host_take(ToolHost *host, const RpcMessage *message) {
        if (!host || !message->method || !message->params)
                return false;
        if (message->request && streq(message->method, "tool.call"))
                tools_begin(host, message);
        else if (streq(message->method, "tool.cancel"))
                tools_cancel(host, json_member_text(message->params, "call"));
        else
                return false;
        return true;
}

/* --- registering --- */

static char *spec_name(const char *spec) {
        return strndup(spec, strcspn(spec, "="));
}

bool tool_specs_have_command(const StrList *specs) {
        for (size_t i = 0; i < specs->count; i++)
                if (strchr(specs->items[i], '='))
                        return true;
        return false;
}

void tool_specs_write(const StrList *specs, JsonWriter *w) {
        bool others = false;

        for (size_t i = 0; i < specs->count; i++)
                others |= strchr(specs->items[i], '=') == NULL;
        if (!others)
                return;
        json_write_array(w, "tools");
        for (size_t i = 0; i < specs->count; i++) {
                _cleanup_free_ char *name = spec_name(specs->items[i]);

                if (name)
                        json_write_string(w, NULL, name);
        }
        json_write_end(w);
}

/* Checks a tool of another client: a missing one is better reported now than at the first call. */
static int find_tool(RpcClient *client, const char *name, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const JsonValue *list;
        int r;

        json_write_object(&w, NULL);
        json_write_end(&w);
        r = json_write_finish(&w) < 0
                    ? error_oom(reterr)
                    : rpc_client_call(client, "tools.list", &w, NULL, 0, &message, reterr);
        if (r < 0)
                return r;
        list = json_member(message.result, "tools");
        for (const JsonValue *v = json_first(list); v; v = json_next(v))
                if (streq(json_string(json_member(v, "name")), name))
                        return 0;
        (void)error_set(reterr, ERROR_USAGE, 0,
                        "--tool %.100s: not NAME=COMMAND, and no client of the session offers a "
                        "tool of that name",
                        name);
        return error_cure(reterr, -ENOENT, "For example: --tool 'lookup=~/tools/lookup.py'");
}

static int register_tool(RpcClient *client, const char *spec, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const char *equals = strchr(spec, '=');
        _cleanup_free_ char *name = spec_name(spec);
        int r;

        if (!equals && spec[0] != '\0')
                return find_tool(client, spec, reterr);
        if (!equals || equals == spec || !equals[1]) {
                r = error_set(reterr, ERROR_USAGE, 0, "--tool %.100s: not NAME=COMMAND", spec);
                return error_cure(reterr, r, "For example: --tool 'lookup=~/tools/lookup.py'");
        }
        if (!name)
                return error_oom(reterr);
        json_write_object(&w, NULL);
        json_write_string(&w, "name", name);
        json_write_string(&w, "description", "Runs a command of the host: JSON in, JSON out.");
        json_write_object(&w, "input_schema");
        json_write_string(&w, "type", "object");
        json_write_end(&w);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        return rpc_client_call(client, "tools.register", &w, NULL, 0, &message, reterr);
}

static int register_all(RpcClient *client, const StrList *specs, Error *reterr) {
        int r = 0;

        if (specs->count > 0)
                /* Queues first: code may call the first tool before the second is registered. */
                rpc_client_queue(client);
        for (size_t i = 0; r == 0 && i < specs->count; i++)
                r = register_tool(client, specs->items[i], reterr);
        return r;
}

int tool_host_new(const char *session, RpcClient *client, const StrList *specs, ToolHost **ret,
                  Error *reterr) {
        ToolHost *host;
        int r = 0;

        *ret = NULL;
        if (!tool_specs_have_command(specs))
                return register_all(client, specs, reterr);
        host = calloc(1, sizeof(*host));
        if (!host)
                return error_oom(reterr);
        *host = (ToolHost){ .client = client };
        host->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (host->epoll_fd < 0)
                r = error_set(reterr, ERROR_SETUP, errno, "cannot watch the tools' commands");
        if (r == 0)
                r = tool_commands_new(session, specs, &host->commands, reterr);
        if (r == 0)
                r = register_all(client, specs, reterr);
        if (r < 0)
                tool_host_free(host);
        else
                *ret = host;
        return r;
}
