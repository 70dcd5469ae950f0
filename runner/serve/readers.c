/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "keeper/connect.h"
#include "session/directory.h"

typedef struct Reader {
        Readers *readers;
        pid_t pid;
        int pidfd;
        LoopWatch *watch;
} Reader;

static void reader_free(Reader *reader) {
        (void)loop_unwatch(reader->watch);
        fd_close(reader->pidfd);
        while (waitpid(reader->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        free(reader);
}

static void readers_on_exit(void *data, uint32_t events) {
        Reader *reader = data;
        Readers *readers = reader->readers;

        (void)events;
        reader_free(reader);
        readers->count--;
        readers->on_end(readers->data);
}

bool readers_full(const Readers *readers) {
        return readers->count >= READERS_MAX;
}

static int readers_watch(Reader *reader, Error *reterr) {
        reader->pidfd = sys_pidfd_open(reader->pid);
        if (reader->pidfd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot watch a reader");
        return loop_watch(reader->readers->loop, reader->pidfd, EPOLLIN, readers_on_exit, reader,
                          &reader->watch, reterr);
}

void readers_end(int pidfd) {
        if (pidfd >= 0)
                (void)sys_pidfd_send_signal(pidfd, SIGKILL);
        fd_close(pidfd);
}

int readers_start(Readers *readers, const char *session, int *ret_fd, int *ret_pidfd,
                  Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE, fd = FD_NONE;
        Reader *reader;
        int r = session_open(session, &dir_fd, NULL, reterr);

        if (r < 0)
                return r;
        reader = calloc(1, sizeof(*reader));
        if (!reader)
                return error_oom(reterr);
        *reader = (Reader){ .readers = readers, .pidfd = FD_NONE };
        r = reader_start(session, dir_fd, &fd, &reader->pid, reterr);
        if (r < 0) {
                free(reader);
                return r;
        }
        r = readers_watch(reader, reterr);
        if (r == 0) {
                *ret_pidfd = fcntl(reader->pidfd, F_DUPFD_CLOEXEC, 0);
                if (*ret_pidfd < 0)
                        r = error_set(reterr, ERROR_SETUP, errno, "cannot watch a reader");
        }
        if (r < 0) {
                (void)kill(reader->pid, SIGKILL);
                reader_free(reader);
                return r;
        }
        readers->count++;
        *ret_fd = TAKE_FD(fd);
        return 0;
}
