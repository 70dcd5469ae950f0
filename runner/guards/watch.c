/* SPDX-License-Identifier: Apache-2.0 */
#include "guards/watch-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/sys.h"
#include "guards/watch-missing.h"

static_assert(WATCH_SIGNAL == SIGIO, "F_NOTIFY sends SIGIO");

enum {
        PAUSE_MIN = 1000, /* Microseconds. */
        /* The pause is this many times as long as the look, so looking takes at most a fifth of a
         * processor. */
        PAUSE_PER_LOOK = 4
};

static void watch_set_inside(const Watch *watch, const int *root_fd) {
        LaunchPlan *plan = watch->plan;

        plan->inside_fd = root_fd;
        for (size_t i = 0; i < plan->others_count; i++)
                plan->others[i].inside_fd = root_fd;
}

Watch *watch_free(Watch *watch) {
        for (size_t i = 0; watch && i < watch->directories_count; i++) {
                free(watch->directories[i].path);
                fd_close(watch->directories[i].fd);
        }
        for (size_t i = 0; watch && i < watch->names_count; i++) {
                free(watch->names[i].path);
                free(watch->names[i].link);
                fd_close(watch->names[i].fd);
        }
        if (watch) {
                watch_set_inside(watch, NULL);
                fd_close(watch->root_fd);
                fd_close(watch->mounts_fd);
                free(watch->directories);
                free(watch->names);
                watch_missing_free(watch->missing);
        }
        free(watch);
        return NULL;
}

static int watch_add_guards(Watch *watch, const LaunchPlan *plan, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->guards_count; i++) {
                _cleanup_free_ char *path = NULL;

                if (!plan->guards[i].pinned)
                        continue;
                path = path_join(plan->workspace, plan->guards[i].path);
                r = path ? watch_add_path(watch, path, NULL, reterr) : error_oom(reterr);
        }
        return r;
}

static bool watch_is_below(const char *path, const char *above) {
        return path_below(path, above) && !streq(path, above);
}

/* Whether the plan hides a directory above path. */
static bool watch_hides_above(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan_mount_hides(&plan->mounts[i]) &&
                    watch_is_below(path, plan->mounts[i].target))
                        return true;
        return false;
}

/* Whether the host can end a mount of the plan by replacing its mount point. Then the command would
 * find the host's file there instead of the policy's, or the same file writable. The host cannot
 * reach a mount point in memory. In the system tree, only root could replace one, and the files
 * there are read-only anyway. */
static bool watch_needs_mount(const LaunchPlan *plan, const PlanMount *mount) {
        const char *slash = strrchr(mount->target, '/');
        _cleanup_free_ char *above = NULL;
        const PlanMount *outer;

        if (plan_mount_hides(mount))
                return !(mount->flags & PLAN_MAY_GO) && !watch_hides_above(plan, mount->target);
        if (slash == mount->target)
                return false;
        above = strndup(mount->target, (size_t)(slash - mount->target));
        outer = above ? plan_mount_above(plan, above) : NULL;
        return !above || (outer && plan_mount_shows_host(outer));
}

static int watch_add_all(Watch *watch, Error *reterr) {
        const LaunchPlan *plan = watch->plan;
        int r = watch_add_guards(watch, plan, reterr);

        for (size_t i = 0; r == 0 && i < plan->others_count; i++)
                r = watch_add_guards(watch, &plan->others[i], reterr);
        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (watch_needs_mount(plan, &plan->mounts[i]))
                        r = watch_add_path(watch, plan->mounts[i].target, &plan->mounts[i], reterr);
        return r;
}

/* Whether a hidden directory covers path. */
static bool watch_is_hidden(const Watch *watch, const char *path) {
        for (size_t i = 0; i < watch->names_count; i++)
                if (watch->names[i].hidden && watch_is_below(path, watch->names[i].path))
                        return true;
        return false;
}

static bool watch_hides(const Watch *watch) {
        for (size_t i = 0; i < watch->names_count; i++)
                if (watch->names[i].hidden)
                        return true;
        return false;
}

/* Excludes names that the host may replace: those in a hidden directory, and protected files in a
 * protected directory. Their own mounts may go, since the directory's mount stays. */
static int watch_leave_out(Watch *watch, const LaunchPlan *plan, Error *reterr) {
        for (size_t i = 0; i < plan->guards_count; i++) {
                _cleanup_free_ char *path = NULL;

                if (!plan->guards[i].pinned || !plan->guards[i].directory)
                        continue;
                path = path_join(plan->workspace, plan->guards[i].path);
                if (!path)
                        return error_oom(reterr);
                for (size_t j = 0; j < watch->names_count; j++)
                        watch->names[j].covered |= !watch->names[j].of_mount &&
                                                   watch_is_below(watch->names[j].path, path);
        }
        return 0;
}

static int watch_leave_out_all(Watch *watch, Error *reterr) {
        const LaunchPlan *plan = watch->plan;
        const bool hides = watch_hides(watch);
        int r = watch_leave_out(watch, plan, reterr);

        for (size_t i = 0; r == 0 && i < plan->others_count; i++)
                r = watch_leave_out(watch, &plan->others[i], reterr);
        for (size_t i = 0; hides && i < watch->names_count; i++)
                watch->names[i].covered |= watch_is_hidden(watch, watch->names[i].path);
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
                if (watch_needs_mount(plan, &plan->mounts[i]))
                        return true;
        return false;
}

int watch_new(LaunchPlan *plan, const SystemTree *system, Watch **ret, Error *reterr) {
        Watch *watch = NULL;
        int r;

        *ret = NULL;
        if (!watch_needed(plan))
                return 0;
        watch = calloc(1, sizeof(*watch));
        if (!watch)
                return error_oom(reterr);
        watch->plan = plan;
        watch->system = system;
        watch->root_fd = watch->mounts_fd = FD_NONE;
        r = watch_add_all(watch, reterr);
        if (r == 0)
                r = watch_leave_out_all(watch, reterr);
        if (r < 0)
                watch_free(watch);
        else
                *ret = watch;
        return r;
}

int watch_enter(Watch *watch, int *root_fd, int *mounts_fd, Error *reterr) {
        if (watch->plan->root.source) {
                watch->root_fd = fcntl(*root_fd, F_DUPFD_CLOEXEC, 0);
                watch->mounts_fd = fcntl(*mounts_fd, F_DUPFD_CLOEXEC, 0);
        } else {
                watch->root_fd = TAKE_FD(*root_fd);
                watch->mounts_fd = TAKE_FD(*mounts_fd);
        }
        if (watch->root_fd < 0 || watch->mounts_fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot watch the sandbox's mounts");
        watch_set_inside(watch, &watch->root_fd);
        return 0;
}

static bool watch_is_same(const Watch *watch, const WatchName *name) {
        const WatchDirectory *directory = &watch->directories[name->directory];
        struct stat st;

        return fstatat(directory->fd, watch_last_part(name->path), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               st.st_dev == name->device && st.st_ino == name->inode;
}

int watch_take_over(const Watch *watch) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < watch->directories_count; i++) {
                const int fd = watch->directories[i].fd;

                if (fd < 0)
                        continue;
                /* F_NOTIFY alone does not change which process gets the signal. */
                r = fcntl(fd, F_SETOWN, getpid()) < 0 ? -errno : watch_directory(fd);
        }
        return r;
}

/* Whether the mount still exists. A container's filter may refuse statx(2); then only the file is
 * compared. */
static bool watch_is_mounted(const Watch *watch, const WatchName *name) {
        int r;

        if (!name->mounted || watch->root_fd < 0)
                return true;
        r = sys_is_mount_root(watch->root_fd, name->path + 1);
        return r > 0 || r == -ENOSYS || r == -EPERM;
}

const char *watch_find_replaced(const Watch *watch) {
        for (size_t i = 0; watch && i < watch->names_count; i++)
                if (!watch->names[i].covered && (!watch_is_same(watch, &watch->names[i]) ||
                                                 !watch_is_mounted(watch, &watch->names[i])))
                        return watch->names[i].path;
        return watch ? watch_missing_find_made(watch->missing) : NULL;
}

uint64_t watch_pause(uint64_t took) {
        return PAUSE_MIN + PAUSE_PER_LOOK * took;
}

void watch_listen(int signal_fd, sigset_t signals, bool listen) {
        if (!listen)
                (void)sigdelset(&signals, WATCH_SIGNAL);
        (void)signalfd(signal_fd, &signals, 0);
}
