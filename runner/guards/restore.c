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
#include "guards/guard-internal.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/* Until the copy is complete, its name ends in this suffix and a random number. */
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

/* Returns the input that is this file, or NULL. */
static const struct PlanInput *restore_input(const PlanInputs *inputs, const struct stat *st) {
        struct stat other;

        for (size_t i = 0; i < inputs->count; i++)
                if (fstat(inputs->items[i].fd, &other) == 0 && other.st_dev == st->st_dev &&
                    other.st_ino == st->st_ino)
                        return &inputs->items[i];
        return NULL;
}

static void guard_keep(PlanGuard *guard, const char *text, size_t size, mode_t mode) {
        guard->text = malloc(size + 1);
        if (!guard->text)
                return;
        (void)memcpy(guard->text, text, size);
        guard->text[size] = '\0';
        guard->text_size = size;
        guard->mode = mode & 0777;
}

void guard_remember(const LaunchPlan *plan, PlanGuard *guard, const struct stat *st) {
        const struct PlanInput *input = restore_input(&plan->inputs, st);
        char path[32], text[REMEMBERED_MAX];
        _cleanup_close_ int fd = FD_NONE;
        ssize_t n;

        if (!S_ISREG(st->st_mode) || st->st_size >= REMEMBERED_MAX)
                return;
        /* holt may have read only a part of its stdin. */
        if (input && (off_t)input->size == st->st_size) {
                guard_keep(guard, input->text, input->size, st->st_mode);
                return;
        }
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", guard->fd);
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* A command may hold a lease on it. */
        n = fd < 0 ? -1 : read(fd, text, sizeof(text));
        if (n >= 0 && n == st->st_size)
                guard_keep(guard, text, (size_t)n, st->st_mode);
}

static int restore_write(const PlanGuard *guard, int fd) {
        if (write(fd, guard->text, guard->text_size) != (ssize_t)guard->text_size)
                return -EIO;
        return fchmod(fd, guard->mode) < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* Returns a name that no command could take before. Owned by the caller, or NULL. */
static char *restore_name(const char *name) {
        uint64_t random = 0;

        (void)!syscall(SYS_getrandom, &random, sizeof(random), 0);
        return str_format("%s" RESTORE_SUFFIX ".%016llx", name, (unsigned long long)random);
}

/* Makes the file with guard's text, under another name. Returns that name, owned by the caller, or
 * NULL. */
static char *restore_make(const PlanGuard *guard, int dir_fd, const char *name) {
        _cleanup_free_ char *making = guard->text ? restore_name(name) : NULL;
        const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        _cleanup_close_ int fd = making ? openat(dir_fd, making, flags, 0600) : FD_NONE;

        if (fd < 0)
                return NULL;
        if (restore_write(guard, fd) < 0) {
                (void)unlinkat(dir_fd, making, 0);
                return NULL;
        }
        return TAKE_PTR(making);
}

static bool restore_rename(int dir_fd, const char *from, const char *to, unsigned flags) {
        return syscall(SYS_renameat2, dir_fd, from, dir_fd, to, flags) == 0;
}

/* If the file system cannot exchange two names, the protected name does not exist for a moment. */
void sweep_restore(Sweep *sweep, int dir_fd, const char *dir, const char *name,
                   const PlanGuard *guard) {
        _cleanup_free_ char *making = restore_make(guard, dir_fd, name);
        bool restored = making && restore_rename(dir_fd, making, name, RENAME_EXCHANGE);

        sweep_set_aside(sweep, dir_fd, dir, restored ? making : name, name);
        if (making && !restored) {
                restored = restore_rename(dir_fd, making, name, RENAME_NOREPLACE);
                if (!restored)
                        (void)unlinkat(dir_fd, making, 0);
        }
        if (restored)
                (void)strlist_add(sweep->restored, guard->path);
}
