/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"

static_assert(WATCH_SIGNAL == SIGIO, "F_NOTIFY sends SIGIO");

#ifndef F_NOTIFY
#define F_NOTIFY 1026
#define DN_CREATE 0x00000004
#define DN_DELETE 0x00000008
#define DN_RENAME 0x00000010
#define DN_MULTISHOT 0x80000000
#endif

typedef struct WatchDirectory {
        char *path; /* inside */
        int fd;
        dev_t device;
} WatchDirectory;

typedef struct WatchName {
        char *path; /* inside; its last part is the name */
        size_t directory;
        int fd; /* O_PATH; while it is open, no other file gets its inode */
        dev_t device;
        ino_t inode;
        bool hidden;
} WatchName;

struct Watch {
        const LaunchPlan *plan;
        WatchDirectory *directories;
        WatchName *names;
        size_t directories_count, names_count;
};

Watch *watch_free(Watch *watch) {
        for (size_t i = 0; watch && i < watch->directories_count; i++) {
                free(watch->directories[i].path);
                fd_close(watch->directories[i].fd);
        }
        for (size_t i = 0; watch && i < watch->names_count; i++) {
                free(watch->names[i].path);
                fd_close(watch->names[i].fd);
        }
        if (watch) {
                free(watch->directories);
                free(watch->names);
        }
        free(watch);
        return NULL;
}

static int watch_refuse(const char *path, int errnum, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, errnum,
                          "cannot watch %s, in which the policy protects or hides something", path);

        if (errnum == EACCES)
                return error_cure(reterr, r, "Make the directory readable for yourself.");
        if (errnum == EMFILE)
                return error_cure(reterr, r, "Raise the limit of open files (ulimit -Hn).");
        return error_cure(reterr, r,
                          "Switch directory notification on (sysctl fs.dir-notify-enable=1), or "
                          "protect and hide nothing (--protect none).");
}

/* Opens the directory at path, inside, if a directory of the host is mounted there. Returns 0 with
 * FD_NONE if not. */
static int watch_open(const LaunchPlan *plan, const char *path, int *ret_fd) {
        const PlanMount *mount = plan_mount_above(plan, path);
        const char *rest;

        *ret_fd = FD_NONE;
        if (!mount || mount->kind != PLAN_BIND || !mount->directory)
                return 0;
        rest = path + strlen(mount->target);
        rest += strspn(rest, "/");
        *ret_fd = sys_openat2(mount->fd, *rest ? rest : ".",
                              O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0,
                              RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
        if (*ret_fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != EXDEV && errno != ELOOP)
                return -errno;
        return 0;
}

/* The directory is remembered even if it is none of the host's, so that it is looked for once. */
static int watch_add_directory(Watch *watch, const char *path, Error *reterr) {
        WatchDirectory *more = reallocarray(watch->directories, watch->directories_count + 1,
                                            sizeof(*more));
        WatchDirectory *directory;
        struct stat st = { 0 };
        int r;

        if (!more)
                return error_oom(reterr);
        watch->directories = more;
        directory = &more[watch->directories_count];
        *directory = (WatchDirectory){ .path = strdup(path), .fd = FD_NONE };
        if (!directory->path)
                return error_oom(reterr);
        watch->directories_count++;
        r = watch_open(watch->plan, path, &directory->fd);
        if (r == 0 && directory->fd >= 0 &&
            (fstat(directory->fd, &st) < 0 ||
             fcntl(directory->fd, F_NOTIFY, DN_CREATE | DN_DELETE | DN_RENAME | DN_MULTISHOT) < 0))
                r = -errno;
        directory->device = st.st_dev;
        return r < 0 ? watch_refuse(path, -r, reterr) : 0;
}

static int watch_find_directory(Watch *watch, const char *path, size_t *ret, Error *reterr) {
        for (size_t i = watch->directories_count; i-- > 0;)
                if (streq(watch->directories[i].path, path)) {
                        *ret = i;
                        return 0;
                }
        *ret = watch->directories_count;
        return watch_add_directory(watch, path, reterr);
}

static bool watch_has_name(const Watch *watch, const char *path, bool hidden) {
        for (size_t i = watch->names_count; i-- > 0;)
                if (watch->names[i].hidden == hidden && streq(watch->names[i].path, path))
                        return true;
        return false;
}

static const char *watch_last_part(const char *path) {
        return strrchr(path, '/') + 1;
}

static int watch_add_name(Watch *watch, const char *path, size_t directory, bool hidden,
                          Error *reterr) {
        WatchName *more = reallocarray(watch->names, watch->names_count + 1, sizeof(*more)), *name;
        struct stat st;
        int fd = openat(watch->directories[directory].fd, watch_last_part(path),
                        O_PATH | O_NOFOLLOW | O_CLOEXEC);

        if (more)
                watch->names = more;
        if (fd < 0 && errno == ENOENT)
                return 0;
        if (fd < 0 || fstat(fd, &st) < 0) {
                int r = watch_refuse(path, errno, reterr);

                fd_close(fd);
                return r;
        }
        name = more ? &more[watch->names_count] : NULL;
        if (name)
                *name = (WatchName){ .path = strdup(path),
                                     .directory = directory,
                                     .fd = fd,
                                     .device = st.st_dev,
                                     .inode = st.st_ino,
                                     .hidden = hidden };
        if (!name || !name->path) {
                fd_close(fd);
                return error_oom(reterr);
        }
        watch->names_count++;
        return 0;
}

/* Each part of the path, since a mount also goes with the directory that it lies in. */
static int watch_add_path(Watch *watch, const char *path, bool hidden, Error *reterr) {
        char part[PATH_MAX];
        int r = 0;

        if (strlen(path) >= sizeof(part))
                return error_set(reterr, ERROR_POLICY, ENAMETOOLONG, "cannot watch %s", path);
        for (size_t i = 1; r == 0 && i <= strlen(path); i++) {
                const bool last = path[i] == '\0';
                size_t directory;

                if (!last && path[i] != '/')
                        continue;
                memcpy(part, path, i);
                part[i] = '\0';
                if (watch_has_name(watch, part, hidden && last))
                        continue;
                *strrchr(part, '/') = '\0';
                r = watch_find_directory(watch, part[0] ? part : "/", &directory, reterr);
                memcpy(part, path, i);
                if (r == 0 && watch->directories[directory].fd >= 0)
                        r = watch_add_name(watch, part, directory, hidden && last, reterr);
        }
        return r;
}

static int watch_add_guards(Watch *watch, const LaunchPlan *plan, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->guards_count; i++) {
                _cleanup_free_ char *path = NULL;

                if (!plan->guards[i].pinned)
                        continue;
                path = path_join(plan->workspace, plan->guards[i].path);
                r = path ? watch_add_path(watch, path, false, reterr) : error_oom(reterr);
        }
        return r;
}

static int watch_add_all(Watch *watch, Error *reterr) {
        const LaunchPlan *plan = watch->plan;
        int r = watch_add_guards(watch, plan, reterr);

        for (size_t i = 0; r == 0 && i < plan->others_count; i++)
                r = watch_add_guards(watch, &plan->others[i], reterr);
        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (plan->mounts[i].kind == PLAN_HIDE && !(plan->mounts[i].flags & PLAN_MAY_GO))
                        r = watch_add_path(watch, plan->mounts[i].target, true, reterr);
        return r;
}

static bool watch_has_pins(const LaunchPlan *plan) {
        for (size_t i = 0; i < plan->guards_count; i++)
                if (plan->guards[i].pinned)
                        return true;
        return false;
}

static bool watch_needed(const LaunchPlan *plan) {
        if (watch_has_pins(plan))
                return true;
        for (size_t i = 0; i < plan->others_count; i++)
                if (watch_has_pins(&plan->others[i]))
                        return true;
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan->mounts[i].kind == PLAN_HIDE && !(plan->mounts[i].flags & PLAN_MAY_GO))
                        return true;
        return false;
}

int watch_new(const LaunchPlan *plan, Watch **ret, Error *reterr) {
        Watch *watch = NULL;
        int r;

        *ret = NULL;
        if (!watch_needed(plan))
                return 0;
        watch = calloc(1, sizeof(*watch));
        if (!watch)
                return error_oom(reterr);
        watch->plan = plan;
        r = watch_add_all(watch, reterr);
        if (r < 0)
                watch_free(watch);
        else
                *ret = watch;
        return r;
}

/* Run by root, holt sees the mounts of the sandbox: on a hidden file that is one of memory, of
 * another device, as long as it is there. */
static bool watch_is_same(const Watch *watch, const WatchName *name) {
        const WatchDirectory *directory = &watch->directories[name->directory];
        struct stat st;

        if (fstatat(directory->fd, watch_last_part(name->path), &st, AT_SYMLINK_NOFOLLOW) < 0)
                return false;
        if (st.st_dev == name->device && st.st_ino == name->inode)
                return true;
        return name->hidden && st.st_dev != directory->device;
}

const char *watch_find_replaced(const Watch *watch) {
        for (size_t i = 0; watch && i < watch->names_count; i++)
                if (!watch_is_same(watch, &watch->names[i]))
                        return watch->names[i].path;
        return NULL;
}
