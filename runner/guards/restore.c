/* SPDX-License-Identifier: Apache-2.0 */
#include "guards/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"
#include "guards/guard.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

/* The copy has this name until it is complete. */
#define RESTORE_SUFFIX ".holt-earlier"

enum { REMEMBERED_MAX = 16 << 10 }; /* In bytes. Configs are smaller. */

/* The repository of a plan and, for a mount beside the workspace, its path on the host. */
typedef struct Place {
        const LaunchPlan *plan;
        const char *source; /* NULL for the workspace. */
        int fd;
} Place;

/* --- which guard --- */

/* Whether `moved` is path and a suffix of guard_sweep(). */
static bool restore_is_name_of(const char *moved, const char *path) {
        const size_t length = strlen(path);

        return strncmp(moved, path, length) == 0 && str_starts(moved + length, GUARD_SUFFIX);
}

/* Returns `moved` relative to the place, or NULL if it lies elsewhere. */
static const char *place_name(const Place *place, const char *moved) {
        const size_t length = place->source ? strlen(place->source) : 0;

        if (!place->source)
                return moved[0] == '/' ? NULL : moved;
        if (strncmp(moved, place->source, length) != 0 || moved[length] != '/')
                return NULL;
        return moved + length + 1;
}

static const PlanGuard *find_guard(const Place *place, const char *moved) {
        const char *name = place_name(place, moved);

        for (size_t i = 0; name && i < place->plan->guards_count; i++) {
                const PlanGuard *guard = &place->plan->guards[i];

                if (guard->pinned && restore_is_name_of(name, guard->path))
                        return guard;
        }
        return NULL;
}

/* The place of plan itself is number 0; those of the other mounts follow. */
static Place restore_place(const LaunchPlan *plan, int workspace_fd, size_t i) {
        const PlanMount *mount;

        if (i == 0)
                return (Place){ .plan = plan, .fd = workspace_fd };
        mount = plan_workspace(&plan->others[i - 1]);
        return (Place){ .plan = &plan->others[i - 1],
                        .source = mount ? mount->source : "",
                        .fd = mount ? mount->fd : FD_NONE };
}

const PlanGuard *guard_replaced(const LaunchPlan *plan, const char *moved) {
        const PlanGuard *guard = NULL;

        for (size_t i = 0; !guard && i <= plan->others_count; i++) {
                const Place place = restore_place(plan, FD_NONE, i);

                guard = find_guard(&place, moved);
        }
        return guard;
}

bool guard_is_gone(const LaunchPlan *plan, int workspace_fd, const char *moved) {
        for (size_t i = 0; i <= plan->others_count; i++) {
                const Place place = restore_place(plan, workspace_fd, i);
                const char *name = place_name(&place, moved);
                _cleanup_close_ int fd = FD_NONE;

                if (!name || place.fd < 0)
                        continue;
                fd = sys_open_beneath(place.fd, name, O_PATH | O_NOFOLLOW);
                return fd < 0 && errno == ENOENT;
        }
        return false;
}

/* --- the copy --- */

void guard_remember(PlanGuard *guard, const struct stat *st) {
        char path[32], text[REMEMBERED_MAX];
        _cleanup_close_ int fd = FD_NONE;
        ssize_t n;

        if (!S_ISREG(st->st_mode) || st->st_size >= REMEMBERED_MAX)
                return;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", guard->fd);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text));
        if (n < 0 || n != st->st_size)
                return;
        guard->text = malloc((size_t)n + 1);
        if (!guard->text)
                return;
        (void)memcpy(guard->text, text, (size_t)n);
        guard->text_size = (size_t)n;
        guard->mode = st->st_mode & 0777;
}

static int restore_write(const PlanGuard *guard, int fd) {
        if (write(fd, guard->text, guard->text_size) != (ssize_t)guard->text_size)
                return -EIO;
        return fchmod(fd, guard->mode) < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int restore_create(int dir_fd, const char *name) {
        const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        int fd = openat(dir_fd, name, flags, 0600);

        if (fd < 0 && errno == EEXIST && unlinkat(dir_fd, name, 0) == 0)
                fd = openat(dir_fd, name, flags, 0600);
        return fd < 0 ? -errno : fd;
}

/* Writes guard's text to `name` in dir_fd. A file that has appeared there meanwhile stays. */
static int restore_file(const PlanGuard *guard, int dir_fd, const char *name) {
        _cleanup_free_ char *making = str_format("%s" RESTORE_SUFFIX, name);
        _cleanup_close_ int fd = FD_NONE;
        struct stat st;
        int r;

        if (!making || !guard->text || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return -EEXIST;
        fd = restore_create(dir_fd, making);
        if (fd < 0)
                return fd;
        r = restore_write(guard, fd);
        if (r == 0 && syscall(SYS_renameat2, dir_fd, making, dir_fd, name, RENAME_NOREPLACE) < 0)
                r = -errno;
        if (r < 0)
                (void)unlinkat(dir_fd, making, 0);
        return r;
}

static int restore_guard(int tree_fd, const PlanGuard *guard) {
        const char *slash = strrchr(guard->path, '/');
        _cleanup_free_ char *dir = strndup(guard->path, slash ? (size_t)(slash - guard->path) : 0);
        _cleanup_close_ int dir_fd = FD_NONE;

        if (!dir)
                return -ENOMEM;
        dir_fd = sys_open_beneath(tree_fd, slash ? dir : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW);
        if (dir_fd < 0)
                return -errno;
        return restore_file(guard, dir_fd, slash ? slash + 1 : guard->path);
}

static void restore_moved(const Place *place, const char *moved, StrList *restored) {
        const PlanGuard *guard = place->fd < 0 ? NULL : find_guard(place, moved);

        if (guard && restore_guard(place->fd, guard) == 0)
                (void)strlist_take(restored, place->source ? path_join(place->source, guard->path)
                                                           : strdup(guard->path));
}

void guard_restore(const LaunchPlan *plan, int workspace_fd, const StrList *moved,
                   StrList *restored) {
        for (size_t i = 0; i <= plan->others_count; i++) {
                const Place place = restore_place(plan, workspace_fd, i);

                for (size_t j = 0; j < moved->count; j++)
                        restore_moved(&place, moved->items[j], restored);
        }
}
