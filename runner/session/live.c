/* SPDX-License-Identifier: Apache-2.0 */
#include "session/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "base/paths.h"
#include "base/strings.h"
#include "base/time.h"
#include "rpc/peer.h"

#define LOCK_NAME "lock"

enum {
        FIND_PAUSE = 10000000, /* nsec */
        SHARE_TRIES = HOLT_WAIT(2000),
        SHARE_PAUSE = 1000000, /* nsec */
};

/* Returns 0 or a negative errno. -EWOULDBLOCK means that a process holds the lock, rather than
 * shares it. */
static int lock_alone(int dir_fd, int fd) {
        const struct timespec pause = { .tv_nsec = SHARE_PAUSE };

        for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
                const int r = -errno;

                if (r != -EWOULDBLOCK || i >= SHARE_TRIES || session_is_live(dir_fd))
                        return r;
                (void)nanosleep(&pause, NULL);
        }
        return 0;
}

static int take_lock(int dir_fd, bool share, int *ret_fd, Error *reterr) {
        _cleanup_close_ int fd = openat(dir_fd, LOCK_NAME,
                                        O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r;

        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot open the session's lock");
        if (share)
                r = flock(fd, LOCK_SH | LOCK_NB) < 0 ? -errno : 0;
        else
                r = lock_alone(dir_fd, fd);
        if (r < 0) {
                if (r != -EWOULDBLOCK)
                        return error_set(reterr, ERROR_SETUP, -r, "cannot lock the session");
                (void)error_set(reterr, ERROR_BUSY, 0, "the session is running");
                return error_cure(reterr, -EWOULDBLOCK, "Stop it first: holt stop NAME.");
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int session_lock(int dir_fd, int *ret_fd, Error *reterr) {
        return take_lock(dir_fd, false, ret_fd, reterr);
}

int session_share(int dir_fd, int *ret_fd, Error *reterr) {
        return take_lock(dir_fd, true, ret_fd, reterr);
}

int session_refuse_held(const char *name, int dir_fd, Error *reterr) {
        char path[PATH_MAX], lock[PATH_MAX + sizeof("/" LOCK_NAME)];
        _cleanup_free_ char *word = NULL;

        (void)error_set(reterr, ERROR_BUSY, 0, "a process locks session \"%s\" but does not answer",
                        name);
        if (path_of_fd(dir_fd, path) < 0)
                return -EBUSY;
        (void)snprintf(lock, sizeof(lock), "%s/" LOCK_NAME, path);
        word = str_word(lock);
        return error_cure(reterr, -EBUSY, "Find the process: fuser -v %s", word ? word : lock);
}

bool session_is_live(int dir_fd) {
        _cleanup_close_ int fd = openat(dir_fd, LOCK_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

const char *const session_states[] = { "at rest", "live", NULL };

const char *session_state(int dir_fd) {
        return session_states[session_is_live(dir_fd)];
}

static void name_socket(int dir_fd, struct sockaddr_un *ret) {
        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        (void)snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" KEEPER_SOCKET,
                       dir_fd);
}

int session_connect(int dir_fd, int *ret_fd, Error *reterr) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un address;
        int r;

        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a socket");
        name_socket(dir_fd, &address);
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return errno == ENOENT || errno == ECONNREFUSED
                               ? -ENOENT
                               : error_set(reterr, ERROR_SETUP, errno,
                                           "cannot connect to the session's keeper");
        r = peer_check_server(fd, reterr);
        if (r == 0)
                r = peer_prove(fd, reterr);
        if (r < 0)
                return r == -EPIPE || r == -ECONNRESET || r == -ECONNREFUSED ? -ENOENT : r;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int session_find_keeper(const char *name, int dir_fd, uint64_t patience, int *ret_fd,
                        Error *reterr) {
        const struct timespec pause = { .tv_nsec = FIND_PAUSE };
        const uint64_t until = time_now_usec() + patience;

        do {
                int r = session_connect(dir_fd, ret_fd, reterr);

                if (r != -ENOENT)
                        return r;
                if (!session_is_live(dir_fd))
                        return -ENOENT;
                (void)nanosleep(&pause, NULL);
        } while (time_now_usec() < until);
        return session_refuse_held(name, dir_fd, reterr);
}

bool session_sweep_due(int dir_fd, char *text, size_t size) {
        _cleanup_close_ int fd = openat(dir_fd, SESSION_SWEEP_DUE,
                                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        ssize_t n;

        if (fd < 0 && errno == ENOENT)
                return false;
        n = fd < 0 ? -1 : read(fd, text, size - 1);
        text[n < 0 ? 0 : n] = '\0';
        if (!text[0])
                (void)snprintf(text, size,
                               "the keeper was killed before it had checked the protected paths");
        return true;
}

int session_listen(int dir_fd, int *ret_fd, Error *reterr) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un address;
        mode_t mask;
        int r;

        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno,
                                 "cannot make a socket for the session");
        name_socket(dir_fd, &address);
        if (unlinkat(dir_fd, KEEPER_SOCKET, 0) < 0 && errno != ENOENT)
                return error_set(reterr, ERROR_SETUP, errno,
                                 "cannot remove the session's old socket");
        mask = umask(0177);
        r = bind(fd, (const struct sockaddr *)&address, sizeof(address));
        (void)umask(mask);
        if (r < 0 || listen(fd, 64) < 0)
                return error_set(reterr, ERROR_SETUP, errno,
                                 "cannot listen on the session's socket");
        *ret_fd = TAKE_FD(fd);
        return 0;
}
