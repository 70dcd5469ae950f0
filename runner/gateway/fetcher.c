/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/fetcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/paths.h"
#include "base/strings.h"
#include "base/time.h"
#include "gateway/plain.h"
#include "gateway/scrub.h"
#include "policy/routes/route.h"

enum {
        FETCHER_FD = 3,          /* The socket to the first process. */
        FETCH_ERRORS_MAX = 4096, /* Bytes of stderr that are searched for credentials. */
};

static const char empty[] = "it is empty";

static const JsonValue *sources[FETCH_SOURCES_MAX];
static unsigned sources_count;

int fetcher_add(const JsonValue *source) {
        if (sources_count == FETCH_SOURCES_MAX)
                return -E2BIG;
        sources[sources_count] = source;
        return (int)sources_count++;
}

/* Reads until the end of the file, or up to the deadline, or until the first process ends. Returns
 * the number of bytes, or a negative errno. */
static ssize_t fetcher_read(int fd, char *ret, size_t size, uint64_t deadline) {
        size_t length = 0;

        while (length < size) {
                struct pollfd ready[] = { { .fd = fd, .events = POLLIN }, { .fd = FETCHER_FD } };
                const uint64_t now = time_now_usec();
                ssize_t n;

                if (now >= deadline ||
                    poll(ready, ELEMENTSOF(ready), (int)((deadline - now) / 1000) + 1) == 0)
                        return -ETIMEDOUT;
                if (ready[1].revents)
                        return -ECANCELED;
                if (!ready[0].revents)
                        continue;
                n = read(fd, ret + length, size - length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return (ssize_t)length;
                length += (size_t)n;
        }
        return -EFBIG;
}

/* A line break at the end does not belong to a credential. A NUL or a line break inside could end
 * the header. */
static void fetched_set(Fetched *ret, ssize_t length) {
        while (length > 0 && (ret->secret[length - 1] == '\n' || ret->secret[length - 1] == '\r'))
                length--;
        if (length == 0)
                (void)snprintf(ret->why, sizeof(ret->why), "%s", empty);
        else if (length == -EFBIG)
                (void)snprintf(ret->why, sizeof(ret->why), "it is longer than %d bytes",
                               FETCH_SECRET_MAX);
        else if (length == -ETIMEDOUT)
                (void)snprintf(ret->why, sizeof(ret->why), "it did not end within %d seconds",
                               FETCH_COMMAND_TIME);
        else if (length < 0)
                (void)snprintf(ret->why, sizeof(ret->why), "%s", strerror((int)-length));
        ret->secret[length > 0 ? length : 0] = '\0';
        if (strlen(ret->secret) != (size_t)(length > 0 ? length : 0) ||
            strpbrk(ret->secret, "\r\n"))
                (void)snprintf(ret->why, sizeof(ret->why), "it has more than one line");
        if (ret->why[0])
                ret->secret[0] = '\0';
}

static void fetch_file(const char *path, Fetched *ret) {
        const char *home = getenv("HOME");
        _cleanup_free_ char *below = str_starts(path, "~/") && home ? path_join(home, path + 2)
                                                                    : NULL;
        _cleanup_close_ int fd = open(below ? below : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        if (fd < 0)
                fetched_set(ret, -errno);
        else
                fetched_set(ret, fetcher_read(fd, ret->secret, FETCH_SECRET_MAX + 1,
                                              time_now_usec() + FETCH_COMMAND_TIME * 1000000ULL));
}

/* holt-gateway ignores signals of the terminal. A program would inherit that. */
static int fetcher_set_signals(posix_spawnattr_t *attributes) {
        sigset_t all;
        int r;

        (void)sigfillset(&all);
        r = posix_spawnattr_setsigdefault(attributes, &all);
        return r ? r : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF);
}

/* errors: a file for stderr, or FD_NONE. */
static int fetcher_spawn(char **argv, int output, int errors, pid_t *ret) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        (void)posix_spawnattr_init(&attributes);
        r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, output, 1);
        if (r == 0 && errors >= 0)
                r = posix_spawn_file_actions_adddup2(&actions, errors, 2);
        if (r == 0)
                r = fetcher_set_signals(&attributes);
        if (r == 0)
                r = posix_spawnp(ret, argv[0], &actions, &attributes, argv, environ);
        (void)posix_spawnattr_destroy(&attributes);
        (void)posix_spawn_file_actions_destroy(&actions);
        return -r;
}

static void fetcher_end(pid_t pid, Fetched *ret) {
        const bool killed = ret->why[0] && strcmp(ret->why, empty) != 0;
        int status = 0;

        if (killed)
                (void)kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (status == 0 || killed)
                return;
        if (WIFEXITED(status))
                (void)snprintf(ret->why, sizeof(ret->why), "it ended with exit code %d",
                               WEXITSTATUS(status));
        else
                (void)snprintf(ret->why, sizeof(ret->why), "it was killed by signal %d",
                               WTERMSIG(status));
        ret->secret[0] = '\0';
}

/* A command may write its credential to stderr, too, for example because of "set -x". printed: its
 * output. */
static void told_mask(char *told, const char *printed) {
        _cleanup_(scrub_clear) Scrub scrub = { 0 };

        while (*printed) {
                const size_t length = strcspn(printed, "\r\n");
                _cleanup_free_ char *line = strndup(printed, length);

                if (!line || scrub_add(&scrub, line) < 0) {
                        told[0] = '\0';
                        return;
                }
                explicit_bzero(line, length);
                printed += length + (printed[length] != '\0');
        }
        scrub_text(&scrub, told);
}

/* Takes the last lines of what a failed command has written. */
static void told_take(int errors, const char *printed, char ret[GATEWAY_TOLD_MAX]) {
        char text[FETCH_ERRORS_MAX + 1], *start = text;
        const off_t size = lseek(errors, 0, SEEK_END);
        const off_t at = size > FETCH_ERRORS_MAX ? size - FETCH_ERRORS_MAX : 0;
        ssize_t n = size > 0 ? pread(errors, text, FETCH_ERRORS_MAX, at) : 0;

        while (n > 0 && strchr(" \t\r\n", text[n - 1]))
                n--;
        for (ssize_t i = 0; i < n; i++)
                text[i] = text[i] ? text[i] : ' ';
        text[n > 0 ? n : 0] = '\0';
        told_mask(text, printed);
        if (n >= GATEWAY_TOLD_MAX) {
                start = text + n - GATEWAY_TOLD_MAX + 1;
                start += strchr(start, '\n') ? strcspn(start, "\n") + 1 : 0;
        }
        plain_copy_text(ret, GATEWAY_TOLD_MAX, start);
        explicit_bzero(text, sizeof(text));
}

/* Reads the output of a command that has started. */
static void fetch_output(pid_t pid, int output, int errors, Fetched *ret) {
        static char printed[FETCH_SECRET_MAX + 1];
        const ssize_t length = fetcher_read(output, ret->secret, FETCH_SECRET_MAX + 1,
                                            time_now_usec() + FETCH_COMMAND_TIME * 1000000ULL);

        ret->secret[FETCH_SECRET_MAX] = '\0';
        memcpy(printed, ret->secret, sizeof(printed));
        fetched_set(ret, length);
        fetcher_end(pid, ret);
        if (ret->why[0] && errors >= 0)
                told_take(errors, printed, ret->told);
        explicit_bzero(printed, sizeof(printed));
}

static void fetch_command(const JsonValue *words, Fetched *ret) {
        /* Unlike a pipe, a memory file blocks no command. */
        const int errors = memfd_create("holt-stderr", MFD_CLOEXEC);
        char *argv[ROUTE_ITEMS_MAX + 1] = { NULL };
        int ends[2] = { FD_NONE, FD_NONE }, r = 0;
        size_t n = 0;
        pid_t pid = -1;

        for (const JsonValue *w = json_first(words); w && r == 0 && n < ELEMENTSOF(argv) - 1;
             w = json_next(w))
                r = (argv[n++] = strdup(json_string(w))) ? 0 : -ENOMEM;
        if (r == 0 && pipe2(ends, O_CLOEXEC) < 0)
                r = -errno;
        if (r == 0)
                r = fetcher_spawn(argv, ends[1], errors, &pid);
        fd_close(ends[1]);
        if (r < 0)
                fetched_set(ret, r);
        else
                fetch_output(pid, ends[0], errors, ret);
        fd_close(ends[0]);
        fd_close(errors);
        for (size_t i = 0; i < n; i++)
                free(argv[i]);
}

_noreturn_ static void fetcher_serve(int fd) {
        static Fetched reply;
        uint32_t number;

        while (recv(fd, &number, sizeof(number), 0) == (ssize_t)sizeof(number)) {
                memset(&reply, 0, sizeof(reply));
                reply.number = number;
                if (number < sources_count && json_string(sources[number]))
                        fetch_file(json_string(sources[number]), &reply);
                else if (number < sources_count)
                        fetch_command(sources[number], &reply);
                (void)send(fd, &reply, sizeof(reply), MSG_NOSIGNAL);
                explicit_bzero(&reply, sizeof(reply));
        }
        _exit(0);
}

int fetcher_fork(int *ret) {
        int pair[2];
        pid_t pid;

        *ret = FD_NONE;
        if (sources_count == 0)
                return 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                (void)prctl(PR_SET_DUMPABLE, 0);
                /* Ends with the gateway: only this end stays open. */
                (void)dup2(pair[1], FETCHER_FD);
                closefrom(FETCHER_FD + 1);
                (void)fcntl(FETCHER_FD, F_SETFD, FD_CLOEXEC);
                fetcher_serve(FETCHER_FD);
        }
        fd_close(pair[1]);
        if (pid < 0) {
                fd_close(pair[0]);
                return -errno;
        }
        *ret = pair[0];
        return 0;
}
