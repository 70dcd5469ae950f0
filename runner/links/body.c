/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the bytes of a response or an upload. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#include "base/sys.h"
#include "links/server.h"

enum {
        SHARE = 1 << 20,        /* Bytes moved before other requests get their turn. */
        BUFFER_SIZE = 64 << 10, /* Bytes of one read. */
        WINDOW = 8 << 20,       /* Bytes between two starts of writing to the disk. */
};

/* --- out --- */

/* Returns 1 if the head of the response has left, 0 if the socket is full, or a negative errno. */
static int send_out(Request *request) {
        while (request->out_at < request->out_length) {
                ssize_t n = send(request->fd, request->out + request->out_at,
                                 request->out_length - request->out_at,
                                 MSG_NOSIGNAL | MSG_DONTWAIT | (request->left > 0 ? MSG_MORE : 0));

                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                request->out_at += (size_t)n;
        }
        return 1;
}

/* Returns 1 at the end, 0 if the socket is full or others wait, or a negative errno. */
static int send_file(Request *request) {
        uint64_t share = SHARE;

        while (request->left > 0 && share > 0) {
                off_t at = (off_t)request->start;
                ssize_t n = sendfile(request->fd, request->file_fd, &at,
                                     request->left < share ? (size_t)request->left : share);

                if (n < 0)
                        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
                if (n == 0) /* The file has shrunk. */
                        return -ENODATA;
                request->start += (uint64_t)n;
                request->left -= (uint64_t)n;
                request->moved += (uint64_t)n;
                share -= (uint64_t)n;
        }
        return request->left == 0;
}

void link_request_send(Request *request) {
        int r = send_out(request);

        if (r == 1)
                r = send_file(request);
        if (r < 0)
                return link_request_free(request);
        if (r == 0)
                return link_request_wait(request, REQUEST_SENDING, EPOLLOUT, REQUEST_SILENT_TIME);
        (void)shutdown(request->fd, SHUT_WR);
        link_request_wait(request, REQUEST_ENDING, EPOLLIN, REQUEST_ENDING_TIME);
}

/* --- in --- */

/* Starts writing to the disk early, so that the flush at the end is short. */
static void receive_flush_some(Request *request) {
        if (request->moved < request->flushed + WINDOW)
                return;
        (void)sync_file_range(request->file_fd, (off_t)request->flushed,
                              (off_t)(request->moved - request->flushed), SYNC_FILE_RANGE_WRITE);
        request->flushed = request->moved;
}

static void receive_fail(Request *request, int errnum) {
        request->file_fd = fd_close(request->file_fd);
        link_request_respond(request, errnum == ENOSPC || errnum == EDQUOT ? 507
                                      : errnum == EFBIG                    ? 413
                                      : errnum == EBADMSG                  ? 400
                                                                           : 500);
}

static void receive_store(Request *request) {
        const LinksMessage message = { .type = LINKS_STORE,
                                       .request = request->number,
                                       .id = request->link.id,
                                       .bytes = request->moved };

        if (fdatasync(request->file_fd) < 0)
                return receive_fail(request, errno);
        request->file_fd = fd_close(request->file_fd);
        if (!server_tell(request->server, &message))
                return link_request_respond(request, 503);
        link_request_wait(request, REQUEST_STORING, 0, REQUEST_SILENT_TIME);
}

/* Finds the bytes of the body in a piece. Bytes after the body belong to nobody. Returns their
 * number or a negative errno. */
static ssize_t receive_find(Request *request, char *data, size_t length) {
        ssize_t n;

        if (!request->chunked)
                return (ssize_t)(length < request->left ? length : (size_t)request->left);
        n = chunks_decode(&request->chunks, data, length);
        return n >= 0 && (uint64_t)n > request->most - request->moved ? -EFBIG : n;
}

bool link_request_take(Request *request, char *data, size_t length) {
        const ssize_t n = receive_find(request, data, length);
        const int r = n < 0 ? (int)n : sys_write_all(request->file_fd, data, (size_t)n);

        if (r < 0) {
                receive_fail(request, -r);
                return false;
        }
        length = (size_t)n;
        if (request->chunked)
                request->left = request->chunks.state != CHUNK_END;
        else
                request->left -= length;
        request->moved += length;
        receive_flush_some(request);
        return true;
}

void link_request_receive(Request *request) {
        static char buffer[BUFFER_SIZE];
        uint64_t share = SHARE;

        while (request->left > 0 && share > 0) {
                ssize_t n = recv(request->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        break;
                if (n <= 0)
                        return link_request_free(request);
                if (!link_request_take(request, buffer, (size_t)n))
                        return;
                share -= (uint64_t)n < share ? (uint64_t)n : share;
        }
        if (request->left == 0)
                return receive_store(request);
        link_request_wait(request, REQUEST_RECEIVING, EPOLLIN, REQUEST_SILENT_TIME);
}
