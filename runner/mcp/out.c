/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/out.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

/* A pipe that is ready takes PIPE_BUF bytes without blocking, and so does a socket. stdout itself
 * may belong to other programs, so it stays in blocking mode. */
int out_write(const char *data, size_t length, int signal_fd) {
        for (size_t at = 0; at < length;) {
                struct pollfd fds[] = { { .fd = STDOUT_FILENO, .events = POLLOUT },
                                        { .fd = signal_fd, .events = POLLIN } };
                ssize_t n;

                if (poll(fds, 2, -1) < 0 && errno != EINTR)
                        return -errno;
                if (fds[1].revents)
                        return -EINTR;
                if (!fds[0].revents)
                        continue;
                n = write(STDOUT_FILENO, data + at,
                          length - at < PIPE_BUF ? length - at : PIPE_BUF);
                if (n < 0 && errno != EINTR)
                        return -errno;
                at += n > 0 ? (size_t)n : 0;
        }
        return 0;
}
