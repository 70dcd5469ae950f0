/* SPDX-License-Identifier: Apache-2.0 */
/* The root of a session: a directory of the host that lasts.
 *
 * Every sandbox has the system, /etc, /proc, /dev and /run. For a session, they are made as for a
 * single run (build.c), and then attached to the session's own root. The command may change the
 * rest of the root, which may contain anything by the next start. So no symlink in it is followed,
 * and only the mount points must be directories. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "child/build.h"

enum { LENGTH_AT = 16 }; /* Offset of d_reclen, see getdents64(2). */

bool build_lasts(const LaunchPlan *plan, const PlanMount *mount) {
        return plan->root.source && !str_starts(mount->target, "/etc/");
}

static int refuse_place(const char *name, int errnum, Error *error) {
        int r = step_fail(error, LAYER_NONE, errnum,
                          "the session's root must contain a directory at", name);

        return step_cure(
                error, r,
                "Move it away: the root is the directory root/ in the session's directory");
}

/* Attaches a part of the finished tree at the same place of the lasting root. */
static int lasting_cover(const char *name, Error *error) {
        int fd = sys_open_tree(child_state.root_fd, name,
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                                       AT_SYMLINK_NOFOLLOW);
        int target_fd, r;

        if (fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot clone", name);
        r = build_directory(child_state.lasting_fd, name, 0755, error);
        if (r < 0)
                return r;
        target_fd = sys_open_beneath(child_state.lasting_fd, name, O_PATH | O_DIRECTORY);
        if (target_fd < 0)
                return refuse_place(name, errno, error);
        if (sys_move_mount(fd, "", target_fd, "",
                           MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot attach a mount at", name);
        fd_close(target_fd);
        fd_close(fd);
        return 0;
}

static int cover_system(const Launch *launch, Error *error) {
        for (size_t i = 0; i < launch->system.count; i++) {
                const SystemEntry *entry = &launch->system.entries[i];
                int r = 0;

                if (strchr(entry->path, '/'))
                        continue;
                if (!entry->link)
                        r = lasting_cover(entry->path, error);
                else if (symlinkat(entry->link, child_state.lasting_fd, entry->path) < 0 &&
                         errno != EEXIST)
                        r = step_fail(error, LAYER_MOUNT, errno, "cannot make the symlink",
                                      entry->path);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Whether the directory at dir_fd is empty, or cannot be read. */
static bool is_empty(int dir_fd) {
        _uninitialized_ char buf[1024];
        long n = syscall(SYS_getdents64, dir_fd, buf, sizeof(buf));
        size_t names = 0;

        for (long at = 0; at < n; names++)
                at += *(const unsigned short *)(const void *)(buf + at + LENGTH_AT);
        return names <= 2; /* "." and ".." */
}

/* Attaches a directory of the system below the session's own /var. If the command has put anything
 * in its place, the session keeps that. */
static void lasting_show(const SystemEntry *entry) {
        int fd = FD_NONE, target_fd;
        Error ignored;

        if (build_target(child_state.lasting_fd, entry->path, true, &ignored) < 0)
                return;
        target_fd = sys_open_beneath(child_state.lasting_fd, entry->path, O_RDONLY | O_DIRECTORY);
        if (target_fd >= 0 && is_empty(target_fd))
                fd = sys_open_tree(child_state.root_fd, entry->path,
                                   OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                                           AT_SYMLINK_NOFOLLOW);
        if (fd >= 0)
                (void)sys_move_mount(fd, "", target_fd, "",
                                     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
        fd_close(fd);
        fd_close(target_fd);
}

static void show_system(const Launch *launch) {
        for (size_t i = 0; i < launch->system.count; i++) {
                const SystemEntry *entry = &launch->system.entries[i];

                if (str_starts(entry->path, "var/") && entry->directory)
                        lasting_show(entry);
        }
}

/* Creates directories that programs expect. If the command has put something else in the place of
 * one, that stays. */
static void make_usual(void) {
        Error ignored;

        for (size_t i = 0; i < tree_nodes_count; i++)
                if (!tree_nodes[i].link)
                        (void)build_target(child_state.lasting_fd, tree_nodes[i].path, true,
                                           &ignored);
        for (size_t i = 0; i < tree_private_count; i++) {
                int fd = tree_private[i].lasting ? sys_open_beneath(child_state.lasting_fd,
                                                                    tree_private[i].target + 1,
                                                                    O_RDONLY | O_DIRECTORY)
                                                 : FD_NONE;

                if (fd >= 0)
                        (void)fchmod(fd, tree_private[i].mode);
                fd_close(fd);
        }
}

/* Creates the mount points of the policy's mounts that lie in the lasting root itself. */
static int make_targets(const LaunchPlan *plan, Error *error) {
        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];
                int r = 0;

                if (mount->flags & PLAN_IN_ROOT && build_lasts(plan, mount))
                        r = build_target(child_state.lasting_fd, mount->target + 1,
                                         plan_mount_is_private(mount) || mount->directory, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int attach_root(Error *error) {
        const MountAttr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                                 .propagation = MS_PRIVATE_FLAG };
        int r = build_directory(child_state.scratch_fd, "lasting", 0755, error);

        if (r < 0)
                return r;
        if (sys_mount_setattr(child_state.lasting_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot set the flags of",
                                 "the session's root");
        return build_attach(child_state.lasting_fd, child_state.scratch_fd, "lasting", error);
}

int build_lasting(Launch *launch, Error *error) {
        int r;

        if (!launch->plan->root.source)
                return 0;
        r = attach_root(error);
        if (r == 0)
                r = cover_system(launch, error);
        for (size_t i = 0; r == 0 && i < tree_covered_count; i++)
                r = lasting_cover(tree_covered[i], error);
        if (r < 0)
                return r;
        make_usual();
        show_system(launch);
        r = make_targets(launch->plan, error);
        if (r < 0)
                return r;
        child_state.root_fd = child_state.lasting_fd;
        child_state.writable_fds[child_state.writable_count++] = child_state.root_fd;
        return 0;
}
