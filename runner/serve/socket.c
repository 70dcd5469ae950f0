/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/paths.h"
#include "policy/plan.h"
#include "reach/reach.h"
#include "session/live.h"
#include "session/sources.h"

/* --- listening --- */

static int serve_socket_open_parent(const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *parent = slash ? strndup(path, (size_t)(slash + 1 - path))
                                            : strdup(".");

        return parent ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* The socket gets its final name only once it listens, so that a client that finds it can
 * connect. */
static int listen_then_name(int fd, const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int parent_fd = serve_socket_open_parent(path);
        char name[UNFINISHED_NAME_SIZE];
        mode_t mask;
        int r;

        if (parent_fd < 0)
                return -errno;
        unfinished_name(name);
        (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", parent_fd,
                       name);
        mask = umask(0177);
        r = bind(fd, (const struct sockaddr *)&address, sizeof(address));
        (void)umask(mask);
        if (r < 0)
                return -errno;
        r = listen(fd, 64) < 0 || linkat(parent_fd, name, AT_FDCWD, path, 0) < 0 ? -errno : 0;
        (void)unlinkat(parent_fd, name, 0);
        return r;
}

/* An old socket without a listener is in the way, and is removed. */
static int listen_at(const char *path, int *ret_fd, Error *reterr) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct stat st;
        int r;

        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot create a socket");
        if (strlen(path) >= sizeof(address.sun_path)) {
                r = error_set(reterr, ERROR_USAGE, ENAMETOOLONG, "--socket %s", path);
                return error_cure(reterr, r,
                                  "The kernel accepts %zu bytes. Change to its directory, and use "
                                  "a relative path.",
                                  sizeof(address.sun_path) - 1);
        }
        (void)strcpy(address.sun_path, path);
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
                r = error_set(reterr, ERROR_BUSY, EADDRINUSE, "--socket %s", path);
                return error_cure(reterr, r,
                                  "Another server listens on this socket. Use that server, stop "
                                  "it, or choose another path.");
        }
        /* connect(2) also refuses a file that is not a socket. */
        if (errno == ECONNREFUSED && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
                (void)unlink(path);
        r = listen_then_name(fd, path);
        if (r < 0) {
                r = error_set(reterr, ERROR_USAGE, -r, "--socket %s", path);
                return error_cure(reterr, r,
                                  "Choose a path that does not exist, in a directory of yours.");
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* --- the note in the store --- */

/* Returns whether nobody listens there any more. */
static bool is_dead(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        _cleanup_close_ int parent_fd = serve_socket_open_parent(path);
        const char *name = strrchr(path, '/');

        if (parent_fd < 0)
                return errno == ENOENT;
        if (fd < 0 || snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d%s",
                               parent_fd, name ? name : "") >= (int)sizeof(address.sun_path))
                return false;
        return connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 &&
               (errno == ECONNREFUSED || errno == ENOENT);
}

/* Removes the notes of servers that were killed. */
static void sweep_notes(int fd) {
        _cleanup_close_ int own_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = own_fd < 0 ? NULL : fdopendir(own_fd);

        if (!dir)
                return;
        (void)TAKE_FD(own_fd);
        for (const struct dirent *entry; (entry = readdir(dir));) {
                char path[PATH_MAX];
                ssize_t n = readlinkat(fd, entry->d_name, path, sizeof(path) - 1);

                path[n < 0 ? 0 : n] = '\0';
                if (n > 0 && is_dead(path))
                        (void)unlinkat(fd, entry->d_name, 0);
        }
        (void)closedir(dir);
}

static int write_note(ServeSocket *socket, const char *real, Error *reterr) {
        char base[PATH_MAX], directory[PATH_MAX];
        _cleanup_close_ int fd = FD_NONE;
        uint64_t random = 0;
        int r = session_base(base, reterr);

        if (r < 0)
                return r;
        *strrchr(base, '/') = '\0';
        (void)snprintf(directory, sizeof(directory), "%.*s/sockets", PATH_MAX - 16, base);
        if (mkdir(directory, 0700) == 0 || errno == EEXIST)
                fd = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make %s", directory);
        sweep_notes(fd);
        (void)!getrandom(&random, sizeof(random), 0);
        socket->note = str_format("%s/%016llx", directory, (unsigned long long)random);
        if (!socket->note)
                return error_oom(reterr);
        if (symlink(real, socket->note) == 0)
                return 0;
        r = error_set(reterr, ERROR_SETUP, errno, "cannot make %s", socket->note);
        free(TAKE_PTR(socket->note));
        return r;
}

/* --- sandboxes that started earlier --- */

typedef struct Writers {
        const char *path;
        Error *reterr;
} Writers;

static int serve_socket_read_plan(int dir_fd, LaunchPlan *ret, Error *reterr) {
        _cleanup_(settings_clear) Settings settings = { 0 };
        char path[PATH_MAX];
        int r = session_path(dir_fd, path, reterr);

        return r < 0 ? r : sources_open(dir_fd, path, STORE_READ, &settings, ret, reterr);
}

static int refuse_writer(const Writers *writers, const char *name, const Reached *reached) {
        (void)error_set(writers->reterr, ERROR_USAGE, EPERM,
                        "--socket %s: session \"%s\" is live, and its commands could replace the "
                        "socket (%s inside)",
                        writers->path, name, reached->inside);
        return error_cure(writers->reterr, -EPERM,
                          "Stop it first: holt stop %s. Or choose a directory that no sandbox can "
                          "write, such as that of XDG_RUNTIME_DIR.",
                          name);
}

static int check_writer(void *data, const char *name, int dir_fd) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        _cleanup_close_ int fd = FD_NONE;
        const Writers *writers = data;
        _cleanup_(reach_freep) Reach *reach = NULL;
        Reached reached = { 0 };
        int r;

        if (!session_is_live(dir_fd))
                return 0;
        r = serve_socket_read_plan(dir_fd, &plan, writers->reterr);
        if (r == 0)
                r = reach_new(&plan, &reach, writers->reterr);
        if (r < 0)
                return r;
        (void)reach_path(reach, writers->path, &fd, &reached);
        return reached.how ? refuse_writer(writers, name, &reached) : 0;
}

/* --- all steps --- */

static int find_real(const char *path, char ret[PATH_MAX], Error *reterr) {
        _cleanup_close_ int fd = serve_socket_open_parent(path);
        const char *slash = strrchr(path, '/');
        int r = fd < 0 ? -errno : path_of_fd(fd, ret);

        if (r == 0 && strlen(ret) + strlen(path) + 2 > PATH_MAX)
                r = -ENAMETOOLONG;
        if (r < 0)
                return error_set(reterr, ERROR_USAGE, -r, "--socket %s", path);
        if (!streq(ret, "/"))
                (void)strcat(ret, "/");
        (void)strcat(ret, slash ? slash + 1 : path);
        return 0;
}

int serve_socket_open(ServeSocket *socket, const char *path, int *ret_fd, Error *reterr) {
        Writers writers = { path, reterr };
        _cleanup_close_ int fd = FD_NONE;
        char real[PATH_MAX];
        int r = listen_at(path, &fd, reterr);

        if (r < 0)
                return r;
        socket->path = path;
        r = find_real(path, real, reterr);
        if (r == 0)
                r = write_note(socket, real, reterr);
        /* This check comes after the note: it must find each session that started before the note
         * and so does not hide the socket. */
        if (r == 0)
                r = session_each(check_writer, &writers, reterr);
        if (r < 0)
                serve_socket_close(socket);
        else
                *ret_fd = TAKE_FD(fd);
        return r;
}

void serve_socket_close(ServeSocket *socket) {
        if (socket->path)
                (void)unlink(socket->path);
        if (socket->note)
                (void)unlink(socket->note);
        free(socket->note);
        *socket = (ServeSocket){ 0 };
}
