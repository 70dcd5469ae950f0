/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mcp/http-internal.h"

int http_queue_add(HttpQueue *queue, const void *data, size_t length) {
        const size_t left = queue->length - queue->at;
        char *grown;

        if (left > HTTP_QUEUE_SMALL && left + length > HTTP_QUEUE_MAX)
                return -ENOBUFS;
        grown = malloc(left + length + 1);
        if (!grown)
                return -ENOMEM;
        if (left > 0)
                memcpy(grown, queue->data + queue->at, left);
        memcpy(grown + left, data, length);
        http_queue_clear(queue);
        *queue = (HttpQueue){ grown, left + length, 0 };
        return 0;
}

int http_queue_send(HttpQueue *queue, int fd) {
        while (http_queue_waits(queue)) {
                const ssize_t n = send(fd, queue->data + queue->at, queue->length - queue->at,
                                       MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return 0;
                if (n < 0)
                        return -errno;
                queue->at += (size_t)n;
        }
        http_queue_clear(queue);
        return 0;
}

bool http_queue_waits(const HttpQueue *queue) {
        return queue->at < queue->length;
}

void http_queue_clear(HttpQueue *queue) {
        free(queue->data);
        *queue = (HttpQueue){ 0 };
}
