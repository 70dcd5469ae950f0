/* SPDX-License-Identifier: Apache-2.0 */
/* Notes the messages between holt's verbs and keepers. The suites preload this library (tap.py).
 *
 * Only holt-full is watched. Each of its connections to a unix socket has a file in the directory
 * $HOLT_TAP, named after the socket's inode. Process IDs would not do: two processes in different
 * PID namespaces can have the same one. A file is opened for each note, because tests count the
 * descriptors of holt, and some leave it none. Notes are written after the system call, so a killed
 * process loses at most its last one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

enum { FDS_MAX = 4096, IOV_MAX_HERE = 64 };

/* kind: 'C' a connection begins, 'S' sent bytes, 'R' received bytes, 'L' later notes are lost */
typedef struct Head {
        char kind, unused[3];
        uint32_t length;
} Head;

typedef struct Tapped {
        ino_t socket; /* 0: not watched */
        bool begun, lost;
} Tapped;

static const char *directory;
static Tapped fds[FDS_MAX];

__attribute__((constructor)) static void tap_start(void) {
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        const char *slash;

        self[n < 0 ? 0 : n] = '\0';
        slash = strrchr(self, '/');
        if (slash && strcmp(slash, "/holt-full") == 0)
                directory = getenv("HOLT_TAP");
}

static ino_t socket_inode(int fd) {
        struct stat st;

        return fstat(fd, &st) < 0 ? 0 : st.st_ino;
}

static void tap_watch(int fd) {
        int domain = 0, type = 0;
        socklen_t length = sizeof(int);

        if (!directory || fd < 0 || fd >= FDS_MAX)
                return;
        (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
        (void)getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length);
        fds[fd] = (Tapped){ 0 };
        if (domain == AF_UNIX && type == SOCK_STREAM)
                fds[fd].socket = socket_inode(fd);
}

/* A write beyond RLIMIT_FSIZE would end the process by SIGXFSZ. */
static bool may_write(void) {
        struct rlimit limit;

        return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

/* Appends a note with the first n bytes of iov in one write(2). */
static bool tap_write(ino_t socket, char kind, const struct iovec *iov, size_t n) {
        Head head = { .kind = kind, .length = (uint32_t)n };
        struct iovec parts[IOV_MAX_HERE + 1] = { { &head, sizeof(head) } };
        size_t total = sizeof(head) + n;
        char path[PATH_MAX];
        int count = 1, fd;
        ssize_t written;

        for (; n > 0 && count <= IOV_MAX_HERE; iov++) {
                parts[count] = *iov;
                if (parts[count].iov_len > n)
                        parts[count].iov_len = n;
                n -= parts[count++].iov_len;
        }
        (void)snprintf(path, sizeof(path), "%s/%llu", directory, (unsigned long long)socket);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return false;
        written = writev(fd, parts, count);
        (void)close(fd);
        return n == 0 && written == (ssize_t)total;
}

static void tap_note(int fd, char kind, const struct iovec *iov, ssize_t n) {
        int saved = errno;
        Tapped *tapped;

        if (!directory || n <= 0 || fd < 0 || fd >= FDS_MAX)
                return;
        tapped = &fds[fd];
        if (tapped->socket != 0 && !tapped->lost && tapped->socket == socket_inode(fd)) {
                bool noted = may_write() &&
                             (tapped->begun || tap_write(tapped->socket, 'C', NULL, 0)) &&
                             tap_write(tapped->socket, kind, iov, (size_t)n);

                tapped->begun = true;
                tapped->lost = !noted;
                if (!noted && may_write())
                        (void)tap_write(tapped->socket, 'L', NULL, 0);
        }
        errno = saved;
}

/* --- calls that holt-full makes instead of libc's --- */

PUBLIC int connect(int fd, const struct sockaddr *address, socklen_t length) {
        int r = (int)syscall(SYS_connect, fd, address, length);
        int saved = errno;

        if (r == 0)
                tap_watch(fd);
        errno = saved;
        return r;
}

PUBLIC int socketpair(int domain, int type, int protocol, int pair[2]) {
        int r = (int)syscall(SYS_socketpair, domain, type, protocol, pair);
        int saved = errno;

        for (int i = 0; r == 0 && i < 2; i++)
                tap_watch(pair[i]);
        errno = saved;
        return r;
}

PUBLIC ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
        ssize_t n = syscall(SYS_sendmsg, fd, message, flags);

        tap_note(fd, 'S', message->msg_iov, n);
        return n;
}

PUBLIC ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
        ssize_t n = syscall(SYS_recvmsg, fd, message, flags);

        if (!(flags & MSG_PEEK))
                tap_note(fd, 'R', message->msg_iov, n);
        return n;
}
