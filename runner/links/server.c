/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pass-fds.h"
#include "links/server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

bool server_tell(Server *server, const LinksMessage *message) {
        return send(server->control_fd, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT) ==
               (ssize_t)sizeof(*message);
}

/* --- the keeper --- */

static void server_revoke(Server *server, uint32_t id) {
        for (Request *request = server->requests, *next; request; request = next) {
                next = request->next;
                if (request->opened && request->link.id == id)
                        link_request_free(request);
        }
}

static void server_answer(Server *server, const LinksAnswer *answer, int fd) {
        Request *request = server->requests;

        while (request && request->number != answer->request)
                request = request->next;
        if (request)
                return link_request_answered(request, answer, fd);
        (void)fd_close(fd);
        if (answer->request == 0)
                server_revoke(server, answer->id);
}

/* The keeper ends this process by closing its socket. */
static void server_on_control(void *data, uint32_t events) {
        Server *server = data;
        LinksAnswer answer;
        int fd;
        ssize_t n;

        (void)events;
        while ((n = receive_with_fd(server->control_fd, &answer, sizeof(answer), &fd,
                                    MSG_DONTWAIT)) == (ssize_t)sizeof(answer))
                server_answer(server, &answer, fd);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
                loop_stop(server->loop);
}

/* --- connections --- */

/* Ends the oldest connection without a valid link. Returns whether there was one. */
static bool server_make_room(Server *server) {
        Request *oldest = NULL;

        for (Request *request = server->requests; request; request = request->next)
                if (!request->opened)
                        oldest = request;
        if (oldest)
                link_request_free(oldest);
        return oldest != NULL;
}

/* Takes one connection in each turn, so that the requests of earlier ones are read before. */
static void server_on_connection(void *data, uint32_t events) {
        Server *server = data;
        int fd;

        if (!(events & EPOLLIN))
                return;
        if (server->requests_count >= REQUESTS_MAX && !server_make_room(server)) {
                loop_watch_set(server->listen_watch, 0); /* Until a request ends. */
                return;
        }
        fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
                link_request_new(server, fd);
}

int server_watch(Server *server, Error *reterr) {
        int r = loop_watch(server->loop, server->control_fd, EPOLLIN, server_on_control, server,
                           &server->control_watch, reterr);

        return r < 0 ? r
                     : loop_watch(server->loop, server->listen_fd, EPOLLIN, server_on_connection,
                                  server, &server->listen_watch, reterr);
}
