/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of a keeper's life: find it, or start it. */
#include "network/caller-env.h"
#include "keeper/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/home.h"
#include "base/own-limits.h"
#include "base/strings.h"
#include "session/live.h"

enum {
        CONNECT_TRIES =
                200, /* Tries of 10 ms each, while another process starts or ends the keeper. */
        CONNECT_PAUSE = 10000000,
        START_PATIENCE = KEEPER_START_TIME / 1000 + 2000, /* msec */
        ASK_TIME = 1000,                                  /* msec */
        ASK_END = 'e',
        ASK_KILL = 'k',
        CONNECT_AGAIN =
                1, /* Another process starts the keeper, has stopped it, or removes the session. */
};

/* Runs in a child, and leaves the keeper or the reader only the descriptors that it needs. */
static void execute_own(const char *verb, const char *name, int dir_fd, int ready_fd) {
        const char *const argv[] = { "holt", verb, name, NULL };
        /* The keeper hides the directory of the caller's settings. */
        _cleanup_free_ char *directory = home_config_directory();
        _cleanup_free_ char *settings = directory ? str_format("XDG_CONFIG_HOME=%s", directory)
                                                  : NULL;
        char **environment = caller_env_wrap(settings);
        const int low = dir_fd < ready_fd ? dir_fd : ready_fd,
                  high = dir_fd < ready_fd ? ready_fd : dir_fd;
        sigset_t none;

        /* Descriptors are closed first: a caller that has as many as it may leaves no room for
         * more. */
        (void)close_range(STDERR_FILENO + 1, (unsigned)low - 1, 0);
        (void)close_range((unsigned)low + 1, (unsigned)high - 1, 0);
        /* Both are moved above their final places first, so that neither overwrites the other. */
        dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, KEEPER_DIRECTORY_FD + 1);
        ready_fd = fcntl(ready_fd, F_DUPFD_CLOEXEC, KEEPER_DIRECTORY_FD + 1);
        (void)dup2(dir_fd, KEEPER_DIRECTORY_FD);
        (void)dup2(ready_fd, KEEPER_READY_FD);
        (void)close_range(KEEPER_DIRECTORY_FD + 1, ~0U, 0);
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        for (int s = 1; s < NSIG; s++)
                (void)signal(s, SIG_DFL);
        open_files_restore();
        if (!environment)
                _exit(125);
        (void)execve("/proc/self/exe", (char *const *)(uintptr_t)argv, environment);
        /* With their other names, the variables may be too long. Then routes have none. */
        environment[settings != NULL] = NULL;
        (void)execve("/proc/self/exe", (char *const *)(uintptr_t)argv, environment);
        _exit(125);
}

/* Runs in the child, which stays the keeper's parent until the keeper is ready. So somebody learns
 * how the keeper ended if it did not become ready. The other end of ask_fd is closed, or asks by
 * one byte. */
static void attend_keeper(const char *name, int dir_fd, int ready_fd, int ask_fd) {
        int status = 0;
        pid_t pid;
        char ask;

        (void)signal(SIGCHLD, SIG_DFL);
        pid = fork();
        if (pid == 0)
                execute_own("keeper", name, dir_fd, ready_fd);
        (void)close(ready_fd);
        if (pid < 0 || read(ask_fd, &ask, 1) != 1)
                _exit(0);
        if (ask == ASK_KILL)
                (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
        (void)!write(ask_fd, &status, sizeof(status));
        _exit(0);
}

/* Asks how the keeper has ended. Returns false without a reply within a second. */
static bool ask_end(int ask_fd, char ask, int *ret_status) {
        struct pollfd answer = { .fd = ask_fd, .events = POLLIN };

        return send(ask_fd, &ask, 1, MSG_NOSIGNAL) == 1 && poll(&answer, 1, ASK_TIME) > 0 &&
               read(ask_fd, ret_status, sizeof(*ret_status)) == (ssize_t)sizeof(*ret_status);
}

static int refuse_late(const char *name, Error *reterr) {
        int r = error_set(reterr, ERROR_SETUP, ETIMEDOUT,
                          "the keeper of session \"%s\" was not ready within %d s", name,
                          KEEPER_START_TIME / 1000000);

        return error_cure(reterr, r,
                          "holt killed it. Look for a disk or a network file system that does not "
                          "answer, and try again.");
}

/* Makes the error for a keeper that ended without a message, or is late. */
static int connect_refuse_start(const char *name, bool late, int ask_fd, Error *reterr) {
        int status = 0;

        if (!ask_end(ask_fd, late ? ASK_KILL : ASK_END, &status) || late ||
            (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM))
                return refuse_late(name, reterr);
        if (WIFSIGNALED(status))
                (void)error_set(reterr, ERROR_SETUP, 0,
                                "signal %d (%s) ended the keeper of session \"%s\" before it was "
                                "ready",
                                WTERMSIG(status), strsignal(WTERMSIG(status)), name);
        else
                (void)error_set(reterr, ERROR_SETUP, 0,
                                "the keeper of session \"%s\" ended with exit status %d before it "
                                "was ready",
                                name, WEXITSTATUS(status));
        return error_cure(reterr, -EPIPE,
                          "Repeat the request; holt then starts the session again.");
}

/* Returns 0, CONNECT_AGAIN, or a negative errno. */
static int read_ready(const char *name, int ready_fd, int ask_fd, Error *reterr) {
        struct pollfd end = { .fd = ready_fd, .events = POLLIN };
        int ready, status = 0;
        Error error;
        ssize_t n = 0;

        while ((ready = poll(&end, 1, START_PATIENCE)) < 0 && errno == EINTR)
                ;
        if (ready > 0)
                n = read(ready_fd, &error, sizeof(error));
        if (n == 1)
                return 0;
        if (n != (ssize_t)sizeof(error))
                return connect_refuse_start(name, ready == 0, ask_fd, reterr);
        if (reterr)
                *reterr = error;
        /* Waits for its end: until then it has the session's files open, and the caller may want to
         * unmount them. */
        (void)ask_end(ask_fd, ASK_END, &status);
        return error.kind == ERROR_BUSY ? CONNECT_AGAIN : error.errnum ? -error.errnum : -EINVAL;
}

/* Returns 0, CONNECT_AGAIN, or a negative errno. */
static int start_keeper(const char *name, int dir_fd, Error *reterr) {
        int ready[2], ask[2], r;
        pid_t pid;

        if (pipe2(ready, O_CLOEXEC) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a pipe");
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ask) < 0) {
                r = error_set(reterr, ERROR_SETUP, errno, "cannot make a socket pair");
                (void)close(ready[0]);
                (void)close(ready[1]);
                return r;
        }
        pid = fork();
        if (pid == 0) {
                (void)close(ask[0]);
                attend_keeper(name, dir_fd, ready[1], ask[1]);
        }
        (void)close(ready[1]);
        (void)close(ask[1]);
        r = pid < 0 ? error_set(reterr, ERROR_SETUP, errno, "cannot start the session's keeper")
                    : read_ready(name, ready[0], ask[0], reterr);
        (void)close(ready[0]);
        (void)close(ask[0]);
        /* The child ends now, and init adopts the keeper, so nobody must wait for it. The child
         * does not end if the kernel cannot kill a late keeper. */
        if (pid > 0)
                (void)waitpid(pid, NULL, r == -ETIMEDOUT ? WNOHANG : 0);
        return r;
}

static int connect_again(int dir_fd, int *ret_fd, Error *reterr) {
        int r = session_connect(dir_fd, ret_fd, reterr);

        return r == -ENOENT ? CONNECT_AGAIN : r;
}

/* A session is renamed before it is removed. So errors about its missing parts mean nothing
 * then. */
static bool was_moved(const char *name, int dir_fd) {
        _cleanup_close_ int fd = FD_NONE;
        struct stat st, now;

        return session_open(name, &fd, NULL, NULL) < 0 || fstat(dir_fd, &st) < 0 ||
               fstat(fd, &now) < 0 || st.st_dev != now.st_dev || st.st_ino != now.st_ino;
}

/* Tries once. Returns 0 with the socket, CONNECT_AGAIN, or a negative errno. */
static int try_once(const char *name, int dir_fd, int *ret_fd, Error *reterr) {
        int r = connect_again(dir_fd, ret_fd, reterr);

        if (r != CONNECT_AGAIN)
                return r;
        r = start_keeper(name, dir_fd, reterr);
        if (r == 0)
                return connect_again(dir_fd, ret_fd, reterr);
        return r < 0 && was_moved(name, dir_fd) ? CONNECT_AGAIN : r;
}

bool keeper_may_retry(int r, unsigned *tries) {
        const struct timespec pause = { .tv_nsec = CONNECT_PAUSE };

        if ((r != -ECONNRESET && r != -ESHUTDOWN) || ++*tries >= CONNECT_TRIES)
                return false;
        (void)nanosleep(&pause, NULL);
        return true;
}

/* For a missing session, the cure says how to create it, because the caller wants to use it. */
static int open_to_use(const char *name, int *ret_dir_fd, Error *reterr) {
        int r = session_open(name, ret_dir_fd, NULL, reterr);

        if (r == -ENOENT && reterr && streq(reterr->cure, session_none_cure))
                return error_cure(reterr, r, "To create it: holt create %s. %s", name,
                                  session_none_cure);
        return r;
}

int keeper_connect(const char *name, int *ret_fd, Error *reterr) {
        const struct timespec pause = { .tv_nsec = CONNECT_PAUSE };
        _cleanup_close_ int dir_fd = FD_NONE;

        for (int i = 0; i < CONNECT_TRIES; i++) {
                int r;

                dir_fd = fd_close(dir_fd);
                r = open_to_use(name, &dir_fd, reterr);
                if (r == 0)
                        r = try_once(name, dir_fd, ret_fd, reterr);
                if (r != CONNECT_AGAIN)
                        return r;
                (void)nanosleep(&pause, NULL);
        }
        return session_refuse_held(name, dir_fd, reterr);
}

int reader_start(const char *name, int dir_fd, int *ret_fd, pid_t *ret_pid, Error *reterr) {
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a socket pair");
        pid = fork();
        if (pid == 0)
                execute_own("reader", name, dir_fd, pair[1]);
        (void)close(pair[1]);
        if (pid < 0) {
                (void)close(pair[0]);
                return error_set(reterr, ERROR_SETUP, errno, "cannot start a reader");
        }
        *ret_fd = pair[0];
        *ret_pid = pid;
        return 0;
}
