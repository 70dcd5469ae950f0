/* SPDX-License-Identifier: Apache-2.0 */
/* Places inside a tree that is being assembled. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "child/assemble.h"

/* Relative to the root: without the slashes at its beginning. */
static const char *place_relative(const char *path) {
        path += strspn(path, "/");
        return *path ? path : ".";
}

/* openat2(2) fails with EAGAIN if it follows ".." while anything on the host is renamed or mounted.
 */
int assemble_open(const char *path, int flags) {
        enum { ATTEMPTS = 128 };
        int fd = -1;

        for (int i = 0; i < ATTEMPTS; i++) {
                fd = sys_openat2(child_state.root_fd, place_relative(path),
                                 (uint64_t)(unsigned)(flags | O_CLOEXEC), 0,
                                 RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
                if (fd >= 0 || errno != EAGAIN)
                        break;
        }
        return fd;
}

int assemble_fail(const AssemblyStep *step, int errnum, const char *what, const char *subject,
                  Error *error) {
        char text[96];

        text[0] = '\0';
        (void)strncat(text, step->option, 30);
        (void)strncat(text, ": ", 3);
        (void)strncat(text, what, 50);
        return step_fail(error, LAYER_NONE, errnum, text, subject);
}

/* Parents of a place that only its owner may enter are as closed as the place. */
static mode_t place_parent_mode(const AssemblyStep *step) {
        const bool own = step->kind == ASSEMBLY_DIRECTORY || step->kind == ASSEMBLY_FILE ||
                         step->kind == ASSEMBLY_DATA || step->kind == ASSEMBLY_TMPFS;
        mode_t mode = 0755;

        if (own && !(step->mode & 0070))
                mode &= ~(mode_t)0050;
        if (own && !(step->mode & 0007))
                mode &= ~(mode_t)0005;
        return mode;
}

/* Enters the directory at the first `length` bytes of path, and makes it if it is missing. *dir_fd
 * is its parent before, and the directory itself afterwards. */
static int place_enter(int *dir_fd, const char *path, size_t length, mode_t mode) {
        char part[PATH_MAX];
        const char *name;
        int fd;

        memcpy(part, path, length);
        part[length] = '\0';
        fd = assemble_open(part, O_PATH | O_DIRECTORY);
        if (fd < 0 && errno == ENOENT) {
                name = strrchr(part, '/');
                if (mkdirat(*dir_fd, name ? name + 1 : part, mode) < 0)
                        return -errno;
                fd = assemble_open(part, O_PATH | O_DIRECTORY);
        }
        if (fd < 0)
                return -errno;
        fd_close(*dir_fd);
        *dir_fd = fd;
        return 0;
}

/* Opens the parent at once, if it is there; `length` is that of its path. */
static int place_find_parent(const char *path, size_t length) {
        char part[PATH_MAX];

        memcpy(part, path, length);
        part[length] = '\0';
        return assemble_open(part, O_PATH | O_DIRECTORY);
}

int assemble_parent(const AssemblyStep *step, const char **ret_name, Error *error) {
        const char *path = place_relative(step->target);
        const char *slash = strrchr(path, '/');
        const size_t length = slash ? (size_t)(slash - path) : 0;
        const mode_t mode = place_parent_mode(step);
        int dir_fd, r = 0;

        *ret_name = slash ? slash + 1 : path;
        if (length >= PATH_MAX)
                return assemble_fail(step, ENAMETOOLONG, "cannot make the parents of", step->target,
                                     error);
        dir_fd = length ? place_find_parent(path, length)
                        : assemble_open(".", O_PATH | O_DIRECTORY);
        if (dir_fd >= 0)
                return dir_fd;
        if (errno != ENOENT)
                return assemble_fail(step, errno, "cannot make the parents of", step->target,
                                     error);
        dir_fd = assemble_open(".", O_PATH | O_DIRECTORY);
        for (size_t i = 1; dir_fd >= 0 && r == 0 && i <= length; i++)
                if (i == length || (path[i] == '/' && path[i - 1] != '/'))
                        r = place_enter(&dir_fd, path, i, mode);
        if (dir_fd >= 0 && r == 0)
                return dir_fd;
        r = r < 0 ? -r : errno;
        fd_close(dir_fd);
        return assemble_fail(step, r, "cannot make the parents of", step->target, error);
}

int assemble_trim(AssemblyStep *step, char buf[PATH_MAX], Error *error) {
        size_t length = strlen(step->target);

        while (length > 1 && step->target[length - 1] == '/')
                length--;
        if (length >= PATH_MAX)
                return assemble_fail(step, ENAMETOOLONG, "cannot make", step->target, error);
        memcpy(buf, step->target, length);
        buf[length] = '\0';
        step->target = buf;
        return 0;
}

static int place_make(AssemblyStep step, bool directory, Error *error) {
        char trimmed[PATH_MAX];
        const char *name;
        int dir_fd, r = assemble_trim(&step, trimmed, error);

        if (r < 0)
                return r;
        dir_fd = assemble_parent(&step, &name, error);
        if (dir_fd < 0)
                return dir_fd;
        r = directory ? mkdirat(dir_fd, name, 0755) : mknodat(dir_fd, name, S_IFREG | 0444, 0);
        if (r < 0 && errno != EEXIST)
                r = assemble_fail(&step, errno,
                                  directory ? "cannot make the directory" : "cannot make the file",
                                  step.target, error);
        else
                r = 0;
        fd_close(dir_fd);
        return r;
}

int assemble_place(const AssemblyStep *step, bool directory, Error *error) {
        int fd = assemble_open(step->target, O_PATH), r;

        if (fd >= 0)
                return fd;
        if (errno != ENOENT)
                return assemble_fail(step, errno, "cannot use", step->target, error);
        r = place_make(*step, directory, error);
        if (r < 0)
                return r;
        fd = assemble_open(step->target, O_PATH);
        return fd < 0 ? assemble_fail(step, errno, "cannot use", step->target, error) : fd;
}

/* Whether fd is the directory of root_fd. */
static bool place_is_root(int fd) {
        struct stat a, b;

        return fstat(fd, &a) == 0 && fstat(child_state.root_fd, &b) == 0 && a.st_dev == b.st_dev &&
               a.st_ino == b.st_ino && sys_is_mount_root(fd, "") > 0;
}

int assemble_attach(const AssemblyStep *step, int mount_fd, bool directory, Error *error) {
        _cleanup_close_ int target_fd = assemble_place(step, directory, error);
        bool root;

        if (target_fd < 0)
                return target_fd;
        root = place_is_root(target_fd);
        if (sys_move_mount(mount_fd, "", target_fd, "",
                           MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return assemble_fail(step, errno, "cannot mount at", step->target, error);
        if (root)
                child_state.root_fd = openat(mount_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return child_state.root_fd < 0
                       ? assemble_fail(step, errno, "cannot open", step->target, error)
                       : 0;
}
