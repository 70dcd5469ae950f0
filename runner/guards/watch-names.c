/* SPDX-License-Identifier: Apache-2.0 */
#include "guards/watch-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"

enum { LINKS_MAX = 40 }; /* Symlinks that the kernel follows in one path (path_resolution(7)). */

static int watch_refuse(const char *path, int errnum, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, errnum,
                          "cannot watch %s, which contains a protected or hidden path", path);

        if (errnum == EACCES)
                return error_cure(reterr, r, "Give yourself permission to read the directory.");
        if (errnum == EMFILE)
                return error_cure(reterr, r, "Raise the limit of open files (ulimit -Hn).");
        return error_cure(reterr, r,
                          "Switch directory notification on (sysctl fs.dir-notify-enable=1), or "
                          "protect and hide no paths (--protect none).");
}

/* Returns the entry of the system tree at path inside, or with `below` the entry at path or above
 * it. Returns NULL if there is none. */
static const SystemEntry *watch_find_entry(const SystemTree *system, const char *path, bool below) {
        for (size_t i = 0; i < system->count; i++) {
                const SystemEntry *entry = &system->entries[i];

                if (below ? path_below(path + 1, entry->path) : streq(path + 1, entry->path))
                        return entry;
        }
        return NULL;
}

/* Opens a directory of the system tree. Only root can replace files there. A directory that the
 * caller may not read is skipped. */
static int watch_open_system(const Watch *watch, const char *path, int *ret_fd) {
        const SystemEntry *entry = watch_find_entry(watch->system, path, true);
        const PlanMount *rootfs = &watch->plan->rootfs;
        _cleanup_close_ int tree_fd = FD_NONE;

        if (!entry || entry->link || !entry->directory)
                return 0;
        tree_fd = rootfs->source ? fcntl(rootfs->fd, F_DUPFD_CLOEXEC, 0)
                                 : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (tree_fd < 0)
                return -errno;
        *ret_fd = sys_openat2(tree_fd, path + 1, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC, 0,
                              RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
        return 0;
}

/* Opens the directory at path inside, if it shows a directory of the host. Otherwise stores FD_NONE
 * and returns 0. */
static int watch_open(const Watch *watch, const char *path, int *ret_fd) {
        const PlanMount *mount = plan_mount_above(watch->plan, path);
        const char *rest;

        *ret_fd = FD_NONE;
        if (!mount)
                return watch_open_system(watch, path, ret_fd);
        if (!plan_mount_shows_host(mount) || !mount->directory)
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

/* Adds a directory. One that is not the host's is remembered too, so that holt looks for it only
 * once. */
static int watch_add_directory(Watch *watch, const char *path, Error *reterr) {
        WatchDirectory *more = reallocarray(watch->directories, watch->directories_count + 1,
                                            sizeof(*more));
        WatchDirectory *directory;
        int r;

        if (!more)
                return error_oom(reterr);
        watch->directories = more;
        directory = &more[watch->directories_count];
        *directory = (WatchDirectory){ .path = strdup(path), .fd = FD_NONE };
        if (!directory->path)
                return error_oom(reterr);
        watch->directories_count++;
        r = watch_open(watch, path, &directory->fd);
        if (r == 0 && directory->fd >= 0)
                r = watch_directory(directory->fd);
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

static WatchName *watch_find_name(const Watch *watch, const char *path) {
        for (size_t i = watch->names_count; i-- > 0;)
                if (streq(watch->names[i].path, path))
                        return &watch->names[i];
        return NULL;
}

const char *watch_last_part(const char *path) {
        return strrchr(path, '/') + 1;
}

static char *watch_read_link(int fd) {
        char text[PATH_MAX];
        ssize_t n = readlinkat(fd, "", text, sizeof(text) - 1);

        return n < 0 ? NULL : strndup(text, (size_t)n);
}

static int watch_take_name(Watch *watch, WatchName *name, Error *reterr) {
        WatchName *more = reallocarray(watch->names, watch->names_count + 1, sizeof(*more));

        if (more)
                watch->names = more;
        if (!more || !name->path || (S_ISLNK(name->mode) && !name->link)) {
                free(name->path);
                free(name->link);
                fd_close(name->fd);
                return error_oom(reterr);
        }
        more[watch->names_count++] = *name;
        return 0;
}

static int watch_add_name(Watch *watch, const char *path, size_t directory, Error *reterr) {
        struct stat st;
        int fd = openat(watch->directories[directory].fd, watch_last_part(path),
                        O_PATH | O_NOFOLLOW | O_CLOEXEC);
        WatchName name = { .directory = directory, .fd = fd };

        if (fd < 0 && errno == ENOENT)
                return 0;
        if (fd < 0 || fstat(fd, &st) < 0) {
                int r = watch_refuse(path, errno, reterr);

                fd_close(fd);
                return r;
        }
        name.path = strdup(path);
        name.device = st.st_dev;
        name.inode = st.st_ino;
        name.mode = st.st_mode;
        name.link = S_ISLNK(st.st_mode) ? watch_read_link(fd) : NULL;
        return watch_take_name(watch, &name, reterr);
}

static int watch_add_in_directory(Watch *watch, const char *path, Error *reterr) {
        char above[PATH_MAX];
        size_t directory;
        int r;

        memcpy(above, path, strlen(path) + 1);
        *strrchr(above, '/') = '\0';
        r = watch_find_directory(watch, above[0] ? above : "/", &directory, reterr);
        if (r < 0 || watch->directories[directory].fd < 0)
                return r;
        return watch_add_name(watch, path, directory, reterr);
}

/* Adds one part of a path. If it is a symlink, *ret_link is its target; borrowed. */
static int watch_add_part(Watch *watch, const char *path, bool last, const PlanMount *mount,
                          const char **ret_link, Error *reterr) {
        WatchName *name = watch_find_name(watch, path);
        const SystemEntry *entry;
        int r = 0;

        if (!name) {
                r = watch_add_in_directory(watch, path, reterr);
                name = watch_find_name(watch, path);
        }
        if (name)
                name->of_mount |= mount != NULL;
        if (name && last && !name->link) {
                name->mounted = true;
                name->hidden |= mount && plan_mount_hides(mount);
        }
        entry = name ? NULL : watch_find_entry(watch->system, path, false);
        *ret_link = name ? name->link : entry ? entry->link : NULL;
        return r;
}

/* A path that is followed as the kernel follows it inside. */
typedef struct WatchWalk {
        char done[PATH_MAX]; /* The part without symlinks; "" is the root. */
        char todo[PATH_MAX];
        int links;
} WatchWalk;

/* Removes the first part from `todo`. Returns false if no part is left. */
static bool watch_names_walk_take(WatchWalk *walk, char part[NAME_MAX + 1]) {
        const size_t start = strspn(walk->todo, "/"), length = strcspn(walk->todo + start, "/");
        char *rest = walk->todo + start + length;

        (void)snprintf(part, NAME_MAX + 1, "%.*s", (int)length, walk->todo + start);
        rest += strspn(rest, "/");
        memmove(walk->todo, rest, strlen(rest) + 1);
        return length > 0;
}

static int walk_enter(WatchWalk *walk, const char *part) {
        const size_t used = strlen(walk->done);

        if (streq(part, "."))
                return 0;
        if (streq(part, "..")) {
                walk->done[used ? (size_t)(strrchr(walk->done, '/') - walk->done) : 0] = '\0';
                return 0;
        }
        if (used + 1 + strlen(part) >= sizeof(walk->done))
                return -ENAMETOOLONG;
        walk->done[used] = '/';
        (void)strcpy(walk->done + used + 1, part);
        return 1;
}

/* Follows the symlink that was entered last. */
static int walk_follow(WatchWalk *walk, const char *link) {
        char *todo = path_child(link, walk->todo);
        const bool fits = todo && strlen(todo) < sizeof(walk->todo);

        *(*link == '/' ? walk->done : strrchr(walk->done, '/')) = '\0';
        if (fits)
                (void)strcpy(walk->todo, todo);
        free(todo);
        return fits && ++walk->links <= LINKS_MAX ? 0 : -ELOOP;
}

/* Returns the index of the directory in which path lies. */
static size_t watch_directory_of(const Watch *watch, const char *path) {
        const size_t length = (size_t)(strrchr(path, '/') - path);
        size_t i = watch->directories_count;

        while (i-- > 0) {
                const char *directory = watch->directories[i].path;

                if (length == 0 ? streq(directory, "/")
                                : strncmp(directory, path, length) == 0 && !directory[length])
                        return i;
        }
        return 0;
}

/* Whether path is missing from a directory that is watched. */
static bool watch_lacks(const Watch *watch, const char *path) {
        return path[0] && !watch_find_name(watch, path) &&
               watch->directories[watch_directory_of(watch, path)].fd >= 0;
}

/* Adds a hidden path whose last entered part does not exist. */
static int watch_add_missing(Watch *watch, WatchWalk *walk, const char *path, Error *reterr) {
        const int dir_fd = watch->directories[watch_directory_of(watch, walk->done)].fd;
        char rest[2 * PATH_MAX], part[NAME_MAX + 1];

        (void)strcpy(rest, watch_last_part(walk->done));
        while (watch_names_walk_take(walk, part))
                if (!streq(part, ".")) {
                        (void)strcat(rest, "/");
                        (void)strcat(rest, part);
                }
        return watch_missing_add(&watch->missing, path, dir_fd, rest, reterr);
}

/* Watches each part of a path. A directory on the way counts, since a mount moves with its
 * directory. So does a symlink, since another target would not be hidden. mount is the plan's mount
 * at path, or NULL. */
int watch_add_path(Watch *watch, const char *path, const PlanMount *mount, Error *reterr) {
        WatchWalk walk = { .done = "" };
        char part[NAME_MAX + 1];
        int r = 0;

        if (strlen(path) >= sizeof(walk.todo))
                return watch_refuse(path, ENAMETOOLONG, reterr);
        (void)strcpy(walk.todo, path);
        while (watch_names_walk_take(&walk, part)) {
                const char *link = NULL;

                r = walk_enter(&walk, part);
                if (r > 0 &&
                    watch_add_part(watch, walk.done, !walk.todo[0], mount, &link, reterr) < 0)
                        return -EINVAL;
                if (r >= 0 && link)
                        r = walk_follow(&walk, link);
                if (r < 0)
                        return watch_refuse(path, -r, reterr);
                if (mount && plan_mount_hides(mount) && watch_lacks(watch, walk.done))
                        return watch_add_missing(watch, &walk, path, reterr);
        }
        return 0;
}
