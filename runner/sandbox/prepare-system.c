/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the part of the system that a sandbox shows: /usr, and the entries of /etc and /var that
 * the tables name (policy/tree.c).
 *
 * An entry is shown only if every user of the host may read it. That is checked by its mode and not
 * by trying, because the command has fewer rights than root and none of the caller's groups. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"
#include "base/util.h"
#include "sandbox/prepare.h"

/* The search for entries. */
typedef struct SystemSearch {
        const LaunchPlan *plan;
        SystemTree *system;
        int tree_fd; /* O_PATH of the system tree. */
} SystemSearch;

/* --- one entry --- */

/* Takes ownership of path. */
static SystemEntry *system_add(SystemTree *system, char *path) {
        if (path && system->count == system->room) {
                const size_t room = system->room ? system->room * 2 : 64;
                SystemEntry *more = reallocarray(system->entries, room, sizeof(*more));

                if (!more) {
                        free(path);
                        return NULL;
                }
                system->entries = more;
                system->room = room;
        }
        if (!path)
                return NULL;
        system->entries[system->count] = (SystemEntry){ .path = path };
        return &system->entries[system->count++];
}

static char *system_read_link(int dir_fd, const char *name) {
        char buf[PATH_MAX];
        ssize_t n = readlinkat(dir_fd, name, buf, sizeof(buf) - 1);

        return n < 0 ? NULL : strndup(buf, (size_t)n);
}

/* Whether every user may use a file or directory of this mode. Devices, pipes and sockets are no
 * settings. */
static bool is_public(mode_t mode) {
        const mode_t bits = S_ISDIR(mode) ? S_IROTH | S_IXOTH : S_IROTH;

        return S_ISLNK(mode) || ((S_ISDIR(mode) || S_ISREG(mode)) && (mode & bits) == bits);
}

/* Whether a mount of the policy takes the place of the entry, or has its target below it where the
 * host's entry has nothing. Such a target cannot be made there, so the entry is left out. */
static bool is_in_the_way(const SystemSearch *search, const char *path) {
        for (size_t i = 0; i < search->plan->mounts_count; i++) {
                const PlanMount *mount = &search->plan->mounts[i];
                const char *rest = mount->kind == PLAN_HIDE ? NULL
                                                            : path_rest(mount->target + 1, path);
                struct stat st;

                if (rest && (rest[0] == '\0' || fstatat(search->tree_fd, mount->target + 1, &st,
                                                        AT_SYMLINK_NOFOLLOW) < 0))
                        return true;
        }
        return false;
}

/* Notes the top directory called name, if it exists. */
static int system_look_at_top(SystemSearch *search, const char *name, Error *reterr) {
        SystemEntry *entry;
        struct stat st;

        if (fstatat(search->tree_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        entry = system_add(search->system, strdup(name));
        if (!entry)
                return error_oom(reterr);
        entry->directory = S_ISDIR(st.st_mode);
        if (S_ISLNK(st.st_mode)) {
                entry->link = system_read_link(search->tree_fd, name);
                return entry->link ? 0 : error_oom(reterr);
        }
        return 0;
}

/* Notes the entry called name in a directory, if it exists and is public. */
static int system_look_at(SystemSearch *search, int dir_fd, const char *directory, const char *name,
                          Error *reterr) {
        _cleanup_free_ char *path = NULL;
        SystemEntry *entry;
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_public(st.st_mode))
                return 0;
        path = str_format("%s/%s", directory, name);
        if (!path)
                return error_oom(reterr);
        if (is_in_the_way(search, path))
                return 0;
        entry = system_add(search->system, TAKE_PTR(path));
        if (!entry)
                return error_oom(reterr);
        entry->directory = S_ISDIR(st.st_mode);
        if (S_ISLNK(st.st_mode)) {
                entry->link = system_read_link(dir_fd, name);
                return entry->link ? 0 : error_oom(reterr);
        }
        return 0;
}

/* --- all entries --- */

/* Opens a directory of the tree. Returns FD_NONE if it is missing or not public. If the caller
 * passes the tree, a part of the path may be a symlink, which must not be followed to the host's.
 */
static int system_open(int tree_fd, const char *path) {
        int dir_fd = tree_fd;

        for (;;) {
                const size_t length = strcspn(path, "/");
                _cleanup_free_ char *name = strndup(path, length);
                struct stat st;
                int fd = name ? openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                              : FD_NONE;

                if (dir_fd != tree_fd)
                        fd_close(dir_fd);
                if (fd < 0)
                        return FD_NONE;
                if (fstat(fd, &st) < 0 || !(st.st_mode & S_IXOTH)) {
                        fd_close(fd);
                        return FD_NONE;
                }
                if (path[length] == '\0')
                        return fd;
                dir_fd = fd;
                path += length + 1;
        }
}

static int system_look_at_shown(SystemSearch *search, const TreeShown *shown, Error *reterr) {
        _cleanup_close_ int fd = system_open(search->tree_fd, shown->directory);
        int r = 0;

        for (size_t i = 0; fd >= 0 && r == 0 && i < shown->count; i++)
                r = system_look_at(search, fd, shown->directory, shown->names[i], reterr);
        return r;
}

/* Whether the command could use the directory, if an entry shows it. The caller's own rights count,
 * because an ordinary user keeps the groups. */
static bool system_needs_mask(const SystemSearch *search, const char *path) {
        for (size_t i = 0; i < search->system->count; i++)
                if (search->system->entries[i].directory &&
                    path_below(path, search->system->entries[i].path))
                        return faccessat(search->tree_fd, path, X_OK, AT_EACCESS) == 0;
        return false;
}

/* Adds the masks. They come after the entries that they cover parts of. */
static int system_mask(SystemSearch *search, Error *reterr) {
        for (size_t i = 0; i < tree_masked_count; i++) {
                SystemEntry *entry;

                if (!system_needs_mask(search, tree_masked[i]))
                        continue;
                entry = system_add(search->system, strdup(tree_masked[i]));
                if (!entry)
                        return error_oom(reterr);
                entry->masked = true;
        }
        return 0;
}

static int system_find(SystemSearch *search, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < tree_system_count; i++)
                r = system_look_at_top(search, tree_system[i], reterr);
        if (r == 0 && search->system->count == 0)
                r = error_set(reterr, ERROR_POLICY, 0,
                              "%s: it contains neither usr nor bin; name the top of a system tree",
                              search->plan->rootfs.origin);
        for (size_t i = 0; r == 0 && i < tree_shown_count; i++)
                r = system_look_at_shown(search, &tree_shown[i], reterr);
        return r < 0 ? r : system_mask(search, reterr);
}

int prepare_system(const LaunchPlan *plan, SystemTree *system, Error *reterr) {
        const PlanMount *rootfs = &plan->rootfs;
        _cleanup_close_ int fd = rootfs->source ? fcntl(rootfs->fd, F_DUPFD_CLOEXEC, 0)
                                                : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        SystemSearch search = { .plan = plan, .system = system, .tree_fd = fd };

        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot open the system tree");
        return system_find(&search, reterr);
}
