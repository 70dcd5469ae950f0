/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of the policy: private directories, the workspace and other directories of the host,
 * protected and hidden paths.
 *
 * An attacker may control the mount points inside a workspace. So each is opened below the new root
 * without following symlinks, and mounted on by its fd. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "child/build.h"

/* --- private directories --- */

static void note_writable(int fd) {
        child_state.writable_fds[child_state.writable_count++] = fd;
}

/* Attaches a directory of the scratch at target. The directory's fd stays open for Landlock. */
static int attach_private(const char *name, mode_t mode, const char *target, Error *error) {
        int r = build_directory(child_state.scratch_fd, name, mode, error), fd;

        if (r < 0)
                return r;
        fd = sys_open_tree(child_state.scratch_fd, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot clone", name);
        note_writable(fd);
        return build_attach(fd, child_state.root_fd, target + 1, error);
}

int build_private(Launch *launch, Error *error) {
        for (size_t i = 0; i < tree_private_count; i++) {
                const TreePrivate *row = &tree_private[i];
                int r = 0;

                if (!(launch->plan->root.source && row->lasting))
                        r = attach_private(row->name, row->mode, row->target, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Opens path inside without following symlinks: in a workspace, an attacker may have made them. */
static int open_target(const char *path, int *ret_fd) {
        int fd = sys_open_beneath(child_state.root_fd, path + 1, O_PATH);

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

/* --- pins --- */

/* Mounts path inside over itself, so that it can neither be renamed nor removed (EBUSY). If
 * statx(2) is refused, holt cannot see an earlier pin, and mounts another one on it. */
static int build_pin(const char *path, bool read_only, Error *error) {
        const MountAttr attr = { .attr_set = read_only ? MOUNT_ATTR_RDONLY : 0 };
        int target_fd = -1, fd;
        int r = open_target(path, &target_fd);

        if (r < 0)
                return step_fail(error, LAYER_NONE, -r, "cannot protect", path);
        if (!read_only && sys_is_mount_root(target_fd, "") > 0) {
                fd_close(target_fd);
                return 0;
        }
        fd = sys_open_tree(target_fd, "",
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
        if (fd < 0 ||
            (read_only && sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0) ||
            sys_move_mount(fd, "", target_fd, "",
                           MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return step_fail(error, LAYER_NONE, errno, "cannot protect", path);
        fd_close(target_fd);
        fd_close(fd);
        return 0;
}

/* Returns the innermost mount above path, if it is a writable directory of the host. Otherwise
 * returns NULL. */
static const PlanMount *writable_above(const LaunchPlan *plan, const char *path) {
        const PlanMount *best = NULL;

        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];
                size_t length = strlen(mount->target);

                if (!plan_mount_hides(mount) && strncmp(path, mount->target, length) == 0 &&
                    path[length] == '/' && (!best || length > strlen(best->target)))
                        best = mount;
        }
        return best && plan_mount_shows_host(best) && !(best->flags & PLAN_READ_ONLY) ? best : NULL;
}

/* Pins each directory between path and the writable mount above it. If such a directory is renamed,
 * a mount below moves with it, and another directory can take its place on the host. Missing
 * directories and symlinks need no pin. */
static int pin_parents(const LaunchPlan *plan, const char *path, Error *error) {
        const PlanMount *above = writable_above(plan, path);
        char part[PATH_MAX];

        if (!above)
                return 0;
        for (size_t i = strlen(above->target) + 1; path[i] && i < sizeof(part); i++) {
                int r;

                if (path[i] != '/')
                        continue;
                memcpy(part, path, i);
                part[i] = '\0';
                r = build_pin(part, false, error);
                if (r == -ENOENT || r == -ELOOP || r == -ENOTDIR) {
                        error->text[0] = '\0';
                        return 0;
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

/* --- mounts --- */

static int fail_target(const PlanMount *mount, int errnum, Error *error) {
        int r;

        if (errnum == ENOENT) {
                r = step_fail(error, LAYER_NONE, ENOENT, mount->origin,
                              "needs an existing mount point, because it lies in a directory of "
                              "the host");
                return step_cure(
                        error, r,
                        "Create the mount point, or choose a place inside that is in no directory "
                        "of the host, as in --ro PATH:/TARGET or --tmpfs TARGET");
        }
        r = step_fail(error, LAYER_NONE, errnum, mount->origin,
                      errnum == ELOOP ? "has a symlink on the way to its mount point"
                                      : "cannot be mounted at its place inside");
        return errnum == ELOOP
                       ? step_cure(error, r,
                                   "Replace the symlink by a directory, or choose another place "
                                   "inside, as in --ro PATH:/TARGET or --tmpfs TARGET")
                       : r;
}

static int attach_at_path(const LaunchPlan *plan, int mount_fd, const PlanMount *mount,
                          Error *error) {
        int target_fd = -1;
        int r = pin_parents(plan, mount->target, error);

        if (r < 0)
                return r;
        r = open_target(mount->target, &target_fd);
        if (r < 0)
                return fail_target(mount, -r, error);
        if (sys_move_mount(mount_fd, "", target_fd, "",
                           MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return fail_target(mount, errno, error);
        fd_close(target_fd);
        return 0;
}

/* Clones the mount of a source. The child is in another mount namespace than the launcher, and
 * open_tree(2) clones only mounts of its own namespace. So the path is opened a second time, and
 * must be the file that the launcher has checked. */
static int clone_source(const PlanMount *mount, int *ret_fd, Error *error) {
        struct stat st;
        int fd = sys_open_tree(AT_FDCWD, mount->source,
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        if (fd < 0 || fstat(fd, &st) < 0)
                return step_fail(error,
                                 errno == ENOSYS || errno == EPERM ? LAYER_MOUNT : LAYER_NONE,
                                 errno, "cannot clone the mount of", mount->source);
        if (st.st_dev != mount->device || st.st_ino != mount->inode)
                return step_fail(error, LAYER_NONE, ESTALE,
                                 "this was replaced while holt was starting:", mount->source);
        *ret_fd = fd;
        return 0;
}

/* Clones all sources. A source may lie in the host's /proc, so this runs before the scratch covers
 * /proc. */
int build_sources(Launch *launch, Error *error) {
        const PlanMount *root = &launch->plan->root;

        child_state.lasting_fd = root->tree_fd;
        if (root->source && root->tree_fd < 0 &&
            clone_source(root, &child_state.lasting_fd, error) < 0)
                return -error->errnum;
        for (size_t i = 0; i < launch->plan->mounts_count; i++) {
                const PlanMount *mount = &launch->plan->mounts[i];
                int r = 0;

                child_state.sources[i] = mount->tree_fd;
                if (plan_mount_shows_host(mount) && mount->tree_fd < 0)
                        r = clone_source(mount, &child_state.sources[i], error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int build_bind(const LaunchPlan *plan, const PlanMount *mount, size_t index, Error *error) {
        MountAttr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                           .propagation = MS_PRIVATE_FLAG };
        const int fd = child_state.sources[index];
        int r;

        if (mount->flags & PLAN_READ_ONLY)
                attr.attr_set |= MOUNT_ATTR_RDONLY;
        if (sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot set the flags of",
                                 mount->source);
        if (!(mount->flags & PLAN_READ_ONLY))
                note_writable(fd);
        if ((mount->flags & PLAN_MAKE_TARGET) && !(mount->flags & PLAN_IN_ROOT)) {
                r = build_target(child_state.root_fd, mount->target + 1, mount->directory, error);
                if (r < 0)
                        return r;
        }
        return attach_at_path(plan, fd, mount, error);
}

static int build_tmpfs(const LaunchPlan *plan, const PlanMount *mount, size_t index, Error *error) {
        char name[16] = "private-";
        char number[24];
        int fd, r;

        (void)strncat(name, build_decimal(index, number), 6);
        r = build_directory(child_state.scratch_fd, name, 0755, error);
        if (r < 0)
                return r;
        if ((mount->flags & PLAN_MAKE_TARGET) && !(mount->flags & PLAN_IN_ROOT)) {
                r = build_target(child_state.root_fd, mount->target + 1, true, error);
                if (r < 0)
                        return r;
        }
        fd = sys_open_tree(child_state.scratch_fd, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot clone", name);
        note_writable(fd);
        return attach_at_path(plan, fd, mount, error);
}

/* Hides a path. A missing path needs no hiding here. A symlink is followed within the sandbox, and
 * its target is hidden. */
static int build_hide(const LaunchPlan *plan, const PlanMount *mount, size_t index, Error *error) {
        const MountAttr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        struct stat st;
        int fd, target_fd, r = pin_parents(plan, mount->target, error);

        (void)index;
        if (r < 0)
                return r;
        target_fd = sys_openat2(child_state.root_fd, mount->target + 1, O_PATH | O_CLOEXEC, 0,
                                RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
        if (target_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
                return 0;
        if (target_fd < 0 || fstat(target_fd, &st) < 0)
                return step_fail(error, LAYER_NONE, errno, "cannot hide", mount->target);
        fd = sys_open_tree(child_state.scratch_fd, S_ISDIR(st.st_mode) ? "hidden.d" : "hidden",
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (fd < 0 || sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0 ||
            sys_move_mount(fd, "", target_fd, "",
                           MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return step_fail(error, LAYER_NONE, errno, "cannot hide", mount->target);
        fd_close(target_fd);
        return 0;
}

/* The function that attaches each kind of mount. */
static int (*const builders[])(const LaunchPlan *plan, const PlanMount *mount, size_t index,
                               Error *error) = {
        [PLAN_BIND] = build_bind,
        [PLAN_PRIVATE] = build_tmpfs,
        [PLAN_HIDE] = build_hide,
};
static_assert(ELEMENTSOF(builders) == PLAN_MOUNT_KIND_MAX, "every kind of mount is built");

static int build_kinds(const LaunchPlan *plan, bool hides, Error *error) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];

                if (plan_mount_hides(mount) == hides)
                        r = builders[mount->kind](plan, mount, i, error);
        }
        return r;
}

int build_mounts(Launch *launch, Error *error) {
        return build_kinds(launch->plan, false, error);
}

int build_hidden(Launch *launch, Error *error) {
        return build_kinds(launch->plan, true, error);
}

static int build_guards_of(const LaunchPlan *plan, Error *error) {
        for (size_t i = 0; i < plan->guards_count; i++) {
                char full[PATH_MAX];
                size_t base = strlen(plan->workspace), length = strlen(plan->guards[i].path);
                int r;

                if (!plan->guards[i].pinned)
                        continue;
                if (base + length + 2 > sizeof(full))
                        return step_fail(error, LAYER_NONE, ENAMETOOLONG, "cannot protect",
                                         plan->guards[i].path);
                memcpy(full, plan->workspace, base);
                full[base] = '/';
                memcpy(full + base + 1, plan->guards[i].path, length + 1);
                r = pin_parents(plan, full, error);
                if (r == 0)
                        r = build_pin(full, true, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

int build_guards(Launch *launch, Error *error) {
        const LaunchPlan *plan = launch->plan;
        int r = build_guards_of(plan, error);

        for (size_t i = 0; r == 0 && i < plan->others_count; i++)
                r = build_guards_of(&plan->others[i], error);
        return r;
}
