/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sandbox/prepare.h"

/* What an inherited fd is good for inside. A directory leads out (openat(0, "..")); an Internet
 * socket belongs to the host's network and can be connected anew, a local datagram socket sent
 * from; a pidfd and its like act on processes of the host. */
static bool is_harmless(int fd, const struct stat *st) {
        struct sockaddr_un peer;
        socklen_t size = sizeof(int), peer_size = sizeof(peer);
        int domain = 0, type = 0;

        if (S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode))
                return true;
        return S_ISSOCK(st->st_mode) &&
               getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
               getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type != SOCK_DGRAM &&
               getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0;
}

/* Of a closed fd 0 to 2 main() has kept the place. */
static bool is_closed(int fd) {
        struct stat st;
        int flags = fcntl(fd, F_GETFL);

        return flags < 0 || (flags & O_PATH && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode));
}

/* /dev/null takes its place. */
static int open_null(int fd) {
        (void)close(fd);
        return open("/dev/null", fd ? O_WRONLY : O_RDONLY) == fd ? 0 : -errno;
}

int prepare_stdio(Error *reterr) {
        static const char *const names[] = { "stdin", "stdout", "stderr" };

        for (int fd = 0; fd <= 2; fd++) {
                struct stat st;

                if (is_closed(fd) && open_null(fd) < 0)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot open /dev/null");
                if (fstat(fd, &st) < 0)
                        continue;
                if (fcntl(fd, F_GETFL) & O_PATH || !is_harmless(fd, &st))
                        return error_set(reterr, ERROR_USAGE, 0,
                                         "%s is neither a file, a pipe, a terminal nor a connected "
                                         "local socket, and may give the command a way out of the "
                                         "sandbox; put a pipe between: ... | holt run ... | cat",
                                         names[fd]);
        }
        return 0;
}
