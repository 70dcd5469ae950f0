/* SPDX-License-Identifier: Apache-2.0 */
/* The children of holt mcp --http, one for each session of the protocol. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/strings.h"
#include "base/sys.h"
#include "mcp/client-loop.h"
#include "mcp/http-internal.h"

/* A session that nobody has used for the longest time makes room for a new one. */
static void http_session_make_room(const HttpServer *server) {
        HttpSession *oldest = NULL;

        if (server->sessions_count < HTTP_SESSIONS_MAX)
                return;
        for (HttpSession *s = server->sessions; s; s = s->next)
                if (!oldest || s->used_at < oldest->used_at)
                        oldest = s;
        if (oldest)
                http_session_free(oldest);
}

static void http_session_follow(HttpSession *session) {
        const uint32_t writes = http_queue_waits(&session->out) ? (uint32_t)EPOLLOUT : 0;

        loop_watch_set(session->watch, EPOLLIN | writes);
}

static void http_session_on_event(void *data, uint32_t events) {
        HttpSession *session = data;

        if ((events & EPOLLOUT) && http_queue_send(&session->out, session->fd) < 0)
                return http_session_free(session);
        http_session_follow(session);
        if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                return;
        if (!client_loop_read_lines(session->fd, &session->in, http_take_message, session))
                http_session_free(session);
}

/* Runs in the child, which has no descriptor of this process except for stderr. */
_Noreturn static void http_session_child(const HttpServer *server, int fd) {
        Error error;
        sigset_t none;
        int r;

        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
                _exit(125);
        (void)close_range(3, ~0U, 0);
        r = mcp_run(&server->settings, &error);
        _exit(r < 0 ? 125 : 0);
}

static int http_session_start(HttpSession *session) {
        int fds[2];
        Error ignored;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        session->pid = fork();
        if (session->pid == 0)
                http_session_child(session->server, fds[1]);
        (void)close(fds[1]);
        session->fd = fds[0];
        if (session->pid < 0)
                return -errno;
        return loop_watch(session->server->loop, session->fd, EPOLLIN, http_session_on_event,
                          session, &session->watch, &ignored);
}

int http_session_new(HttpServer *server, HttpSession **ret) {
        HttpSession *session = calloc(1, sizeof(*session));
        uint64_t random[2];
        int r;

        if (!session)
                return -ENOMEM;
        http_session_make_room(server);
        session->server = server;
        session->fd = FD_NONE;
        session->in.max = HTTP_LINE_MAX;
        session->used_at = time_now_usec();
        list_push(&server->sessions, session);
        server->sessions_count++;
        if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
                r = -EIO;
        else
                r = http_session_start(session);
        if (r < 0) {
                http_session_free(session);
                return r;
        }
        (void)snprintf(session->id, sizeof(session->id), "%016" PRIx64 "%016" PRIx64, random[0],
                       random[1]);
        *ret = session;
        return 0;
}

HttpSession *http_session_find(const HttpServer *server, const char *id) {
        for (HttpSession *s = server->sessions; id[0] && s; s = s->next)
                if (streq(s->id, id))
                        return s;
        return NULL;
}

int http_session_send(HttpSession *session, const JsonValue *message) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int r;

        json_copy(&w, NULL, message);
        r = json_write_finish(&w);
        if (r == 0)
                r = http_queue_add(&session->out, w.data, w.length);
        if (r == 0)
                r = http_queue_send(&session->out, session->fd);
        session->used_at = time_now_usec();
        if (r == 0)
                http_session_follow(session);
        return r;
}

/* The child ends with its stdin; one that hangs is killed. */
void http_session_free(HttpSession *session) {
        http_end_streams(session);
        (void)list_remove(&session->server->sessions, session);
        session->server->sessions_count--;
        session->watch = loop_unwatch(session->watch);
        session->fd = fd_close(session->fd);
        if (session->pid > 0) {
                (void)kill(session->pid, SIGKILL);
                (void)waitpid(session->pid, NULL, 0);
        }
        framing_clear(&session->in);
        http_queue_clear(&session->out);
        free(session);
}
