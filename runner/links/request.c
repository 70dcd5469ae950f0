/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "links/server.h"

enum { SEND_BUFFER = 256 << 10 }; /* Bytes; the kernel doubles it. */

/* --- beginning and end --- */

void link_request_wait(Request *request, RequestState state, uint32_t events, uint64_t ms) {
        request->state = state;
        loop_watch_set(request->watch, events);
        loop_timer_set(request->timer, time_now_usec() + ms * 1000);
}

void link_request_free(Request *request) {
        Server *server = request->server;
        const LinksMessage message = { .type = LINKS_END,
                                       .request = request->number,
                                       .id = request->link.id,
                                       .status = request->status,
                                       .bytes = request->moved };

        if (request->opened)
                (void)server_tell(server, &message);
        (void)list_remove(&server->requests, request);
        request->watch = loop_unwatch(request->watch);
        request->timer = loop_timer_free(request->timer);
        (void)fd_close(request->fd);
        (void)fd_close(request->file_fd);
        free(request);
        if (server->requests_count-- == REQUESTS_MAX)
                loop_watch_set(server->listen_watch, EPOLLIN);
}

/* --- the keeper's answers --- */

static void link_request_open(Request *request) {
        const LinksMessage message = { .type = LINKS_OPEN,
                                       .request = request->number,
                                       .id = request->link.id,
                                       .bytes = request->length };

        request->opened = server_tell(request->server, &message);
        if (!request->opened)
                return link_request_respond(request, 503);
        link_request_wait(request, REQUEST_OPENING, 0, REQUEST_SILENT_TIME);
}

/* The client has waited for this line only if it has sent nothing after the head. The socket is
 * empty, so there is room for it. */
static void link_request_begin_upload(Request *request) {
        static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
        const size_t more = request->filled - request->seen;

        request->left = request->chunked ? 1 : request->length;
        if (request->expects && more == 0 && request->length > 0)
                (void)send(request->fd, line, sizeof(line) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (link_request_take(request, request->head + request->seen, more))
                link_request_receive(request);
}

void link_request_answered(Request *request, const LinksAnswer *answer, int file_fd) {
        const bool opening = request->state == REQUEST_OPENING;

        if (request->state == REQUEST_STORING && answer->status == 200) {
                (void)fd_close(file_fd);
                return link_request_respond(request, 201);
        }
        if (answer->status == 200 && opening && file_fd >= 0) {
                request->file_fd = file_fd;
                request->most = answer->size;
                return request->link.upload ? link_request_begin_upload(request)
                                            : link_request_respond_file(request, answer->size);
        }
        (void)fd_close(file_fd);
        if (opening || request->state == REQUEST_STORING)
                link_request_respond(request, answer->status);
}

/* --- the head --- */

/* Requests with a valid signature are in the audit one by one. Others are told once for each
 * status, so that strangers cannot fill the disk. */
static void link_request_refuse(Request *request, unsigned status) {
        Server *server = request->server;
        const LinksMessage message = { .type = LINKS_REFUSED,
                                       .id = request->link.id,
                                       .status = status };
        const uint64_t bit = 1ULL << (status % 64);

        if (!(server->refused_told & bit) && server_tell(server, &message))
                server->refused_told |= bit;
        link_request_respond(request, status);
}

static void link_request_read(Request *request) {
        ssize_t n = recv(request->fd, request->head + request->filled,
                         sizeof(request->head) - request->filled, MSG_DONTWAIT);
        unsigned status;
        int r;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0)
                return link_request_free(request);
        request->filled += (size_t)n;
        r = http_head_end((const uint8_t *)request->head, request->filled, 0, &request->seen);
        if (r == 0 && request->filled < sizeof(request->head))
                return;
        status = r < 0 ? 400 : r == 0 ? 431 : link_request_judge(request);
        if (status)
                return link_request_refuse(request, status);
        link_request_open(request);
}

/* --- events --- */

/* Bytes that come after the request are thrown away. */
static void link_request_drain(Request *request) {
        static char buffer[16 << 10];
        ssize_t n = recv(request->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                link_request_free(request);
}

static void link_request_on_event(void *data, uint32_t events) {
        Request *request = data;

        switch (request->state) {
        case REQUEST_READING:
                return link_request_read(request);
        case REQUEST_SENDING:
                return link_request_send(request);
        case REQUEST_RECEIVING:
                return link_request_receive(request);
        case REQUEST_ENDING:
                return link_request_drain(request);
        case REQUEST_OPENING:
        case REQUEST_STORING:
                if (events & (EPOLLHUP | EPOLLERR))
                        link_request_free(request);
        }
}

static void link_request_on_time(void *data) {
        link_request_free(data);
}

/* --- a new connection --- */

/* A small buffer shows soon that the client reads on, even if it is slow. */
void link_request_new(Server *server, int fd) {
        const int room = SEND_BUFFER;
        Request *request = malloc(sizeof(*request));
        Error ignored;

        if (!request) {
                (void)fd_close(fd);
                return;
        }
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
        memset(request, 0, offsetof(Request, head));
        request->server = server;
        request->fd = fd;
        request->file_fd = FD_NONE;
        if (++server->last_number == 0)
                server->last_number = 1;
        request->number = server->last_number;
        list_push(&server->requests, request);
        server->requests_count++;
        if (loop_timer_new(server->loop, link_request_on_time, request, &request->timer, &ignored) <
                    0 ||
            loop_watch(server->loop, fd, EPOLLIN, link_request_on_event, request, &request->watch,
                       &ignored) < 0)
                return link_request_free(request);
        link_request_wait(request, REQUEST_READING, EPOLLIN, REQUEST_HEAD_TIME);
}
