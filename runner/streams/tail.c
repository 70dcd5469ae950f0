/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/tail.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/util.h"

void tail_add(Tail *tail, const char *data, size_t size) {
        if (size > TAIL_MAX) {
                data += size - TAIL_MAX;
                size = TAIL_MAX;
        }
        /* Moves bytes only once for every TAIL_MAX that come. */
        if (tail->length + size > sizeof(tail->data)) {
                memmove(tail->data, tail->data + tail->length - TAIL_MAX, TAIL_MAX);
                tail->length = TAIL_MAX;
        }
        memcpy(tail->data + tail->length, data, size);
        tail->length += size;
}

off_t tail_file_begin(int fd) {
        struct stat st;

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return -1;
        return fcntl(fd, F_GETFL) & O_APPEND ? st.st_size : lseek(fd, 0, SEEK_CUR);
}

void tail_file_add(Tail *tail, int fd, off_t began) {
        _cleanup_close_ int again = FD_NONE;
        char data[TAIL_MAX], name[32];
        struct stat st;
        ssize_t n;

        (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        again = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (again < 0 || fstat(again, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= began)
                return;
        if (st.st_size - began > TAIL_MAX)
                began = st.st_size - TAIL_MAX;
        n = pread(again, data, sizeof(data), began);
        if (n > 0)
                tail_add(tail, data, (size_t)n);
}

static bool tail_is_stream(int fd, mode_t mode) {
        int type = 0;
        socklen_t size = sizeof(type);

        return S_ISFIFO(mode) ||
               (S_ISSOCK(mode) && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
                type == SOCK_STREAM);
}

bool tail_can_pass(int fd, int stdin_fd) {
        struct stat st, in;
        const int flags = fcntl(fd, F_GETFL);

        return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_DIRECT) &&
               fstat(fd, &st) == 0 && tail_is_stream(fd, st.st_mode) &&
               (fstat(stdin_fd, &in) < 0 || st.st_dev != in.st_dev || st.st_ino != in.st_ino);
}
