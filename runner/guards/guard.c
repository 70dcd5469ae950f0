/* SPDX-License-Identifier: Apache-2.0 */
#include "guards/guard-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"
#include "guards/strays.h"

enum {
        NAMES_TOLD = 8,
        WORK_PARTS = 4, /* Units of work for each byte of a path that is followed part by part. */
};

/* Enters the directory `name` in dir_fd, one step of following a path. Returns 1 with the directory
 * in *ret_fd, or 0 if it does not exist. Returns a negative errno if it is not a directory: a
 * program may accept a file or a link in its place. */
static int guard_descend(int dir_fd, const char *name, int *ret_fd) {
        int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        sweep_let_in(fd);
        *ret_fd = fd;
        return 1;
}

/* Whether the guard is still mounted. The mount belongs to the name. If the host unlinks the file
 * and links it again, it has no mount any more, and the command can write it. */
static bool is_mounted(const LaunchPlan *plan, const PlanGuard *guard) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!plan->inside_fd)
                return true;
        path = path_child(plan->workspace + 1, guard->path);
        r = path ? sys_is_mount_root(*plan->inside_fd, path) : -ENOMEM;
        return r > 0 || r == -ENOSYS || r == -EPERM;
}

/* Whether the guarded file is still there and mounted. A mount holds only inside. On the host, git
 * or another holt may rename the file, and the command may then make another file of that name. The
 * guard's open fd keeps the inode from being freed, so the new file cannot get the same inode
 * number. */
static bool is_held(const LaunchPlan *plan, int dir_fd, const char *name, const PlanGuard *guard) {
        struct stat st;

        return guard->pinned && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               st.st_dev == guard->device && st.st_ino == guard->inode && is_mounted(plan, guard);
}

/* Whether the protected directory of `guard` is still in its place and still mounted. */
static bool guard_is_whole(const Sweep *sweep, const PlanGuard *guard) {
        _cleanup_close_ int fd = sys_open_beneath(sweep->tree.fd, guard->path, O_PATH | O_NOFOLLOW);
        struct stat st;

        return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == guard->device &&
               st.st_ino == guard->inode && is_mounted(sweep->plan, guard);
}

static bool is_below(const char *path, const char *above) {
        return path_below(path, above) && !streq(path, above);
}

/* Whether the sandbox could not write at the guard's path, because a protected or hidden directory
 * lies above it. Then the host made the file. */
static bool guard_is_covered(const Sweep *sweep, const PlanGuard *guard) {
        const LaunchPlan *plan = sweep->plan;
        _cleanup_free_ char *path = plan->inside_fd ? path_join(plan->workspace, guard->path)
                                                    : NULL;

        for (size_t i = 0; i < plan->guards_count; i++)
                if (plan->guards[i].pinned && is_below(guard->path, plan->guards[i].path) &&
                    guard_is_whole(sweep, &plan->guards[i]))
                        return true;
        for (size_t i = 0; path && i < plan->mounts_count; i++)
                if (plan_mount_hides(&plan->mounts[i]) && is_below(path, plan->mounts[i].target) &&
                    sys_is_mount_root(*plan->inside_fd, plan->mounts[i].target + 1) > 0)
                        return true;
        return false;
}

/* Sets the entry `name` in dir_fd aside unless it is held or covered. The entry is the last part of
 * the guard's path, or an obstacle on the way. */
static void sweep_name(Sweep *sweep, int dir_fd, const char *dir, const char *name,
                       const PlanGuard *guard) {
        const size_t length = strlen(dir);
        const bool whole = strncmp(guard->path, dir, length) == 0 &&
                           streq(guard->path + length, name);

        if (!path_may_exist(dir_fd, name) || is_held(sweep->plan, dir_fd, name, guard) ||
            guard_is_covered(sweep, guard) ||
            (whole && sweep->restored && strlist_has(sweep->restored, guard->path)))
                return;
        if (whole && sweep->restored && guard->pinned)
                sweep_restore(sweep, dir_fd, dir, name, guard);
        else
                sweep_set_aside(sweep, dir_fd, dir, name, name);
}

/* Follows the path part by part. Sets aside the last part, or the first part that is a symlink, a
 * file or a closed directory. For a submodule, only the last part is set aside: git does not follow
 * an obstacle to it. */
static void sweep_parts(Sweep *sweep, const PlanGuard *guard) {
        _cleanup_close_ int dir_fd = openat(sweep->tree.fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *rest = strdup(guard->path), *dir = NULL;
        char *part = rest;

        (void)repository_works(&sweep->found, strlen(guard->path) * WORK_PARTS);
        if (!rest || dir_fd < 0)
                return sweep_note(sweep, rest ? -errno : -ENOMEM);
        for (;;) {
                size_t length = strcspn(part, "/");
                bool last = part[length] == '\0';
                int fd = FD_NONE, r = 0;

                part[length] = '\0';
                if (!last) {
                        r = guard_descend(dir_fd, part, &fd);
                        if (r == 0 || (r == -ENOTDIR && guard->submodule))
                                return;
                }
                if (last || r < 0)
                        break;
                fd_close(dir_fd);
                dir_fd = fd;
                part += length + 1;
        }
        dir = strndup(guard->path, (size_t)(part - rest));
        if (!dir)
                return sweep_note(sweep, -ENOMEM);
        sweep_name(sweep, dir_fd, dir, part, guard);
}

/* The directory of a guard, which the next guard often shares. */
typedef struct SweepDirectory {
        char *path; /* "" or with a slash at its end; NULL: none yet. */
        int fd;     /* Or a negative errno. */
} SweepDirectory;

static void directory_leave(SweepDirectory *dir) {
        free(dir->path);
        fd_close(dir->fd);
        *dir = (SweepDirectory){ .fd = FD_NONE };
}

/* Enters the directory of a guard, unless it is entered already. Returns 0 or -ENOMEM. */
static int directory_enter(const Sweep *sweep, const PlanGuard *guard, SweepDirectory *dir) {
        const char *slash = strrchr(guard->path, '/');
        const size_t length = slash ? (size_t)(slash + 1 - guard->path) : 0;

        if (dir->path && strlen(dir->path) == length &&
            strncmp(dir->path, guard->path, length) == 0)
                return 0;
        directory_leave(dir);
        dir->path = strndup(guard->path, length);
        if (!dir->path)
                return -ENOMEM;
        dir->fd = sys_open_beneath(sweep->tree.fd, slash ? dir->path : ".", O_PATH | O_DIRECTORY);
        if (dir->fd < 0)
                dir->fd = -errno;
        else
                sweep_let_in(dir->fd);
        return 0;
}

/* Sweeps one guard. Returns early if nothing can be in the way, since thousands of paths may have
 * thousands of parts each. */
static void sweep_guard_in(Sweep *sweep, const PlanGuard *guard, SweepDirectory *dir) {
        const size_t moved = sweep->moved->count, left = sweep->left.count;
        int r = directory_enter(sweep, guard, dir);

        if (r < 0)
                return sweep_note(sweep, r);
        if (dir->fd == -ENOENT || (guard->submodule && (dir->fd == -ENOTDIR || dir->fd == -ELOOP)))
                return;
        if (dir->fd < 0)
                sweep_parts(sweep, guard);
        else
                sweep_name(sweep, dir->fd, dir->path, guard->path + strlen(dir->path), guard);
        /* The entry that was set aside may be the directory of the next guard, or lie above it. */
        if (sweep->moved->count != moved || sweep->left.count != left)
                directory_leave(dir);
}

void sweep_guard(Sweep *sweep, const PlanGuard *guard) {
        SweepDirectory dir = { .fd = FD_NONE };

        sweep_guard_in(sweep, guard, &dir);
        directory_leave(&dir);
}

/* --- entries made by the host --- */

/* Returns the first guarded path that exists now. EXDEV, ELOOP and ENOTDIR mean that an obstacle is
 * in the way, which would be set aside. */
static const char *find_made(const LaunchPlan *plan, int workspace_fd) {
        for (size_t i = 0; i < plan->guards_count; i++) {
                _cleanup_close_ int fd = FD_NONE;

                if (plan->guards[i].pinned)
                        continue;
                fd = sys_open_beneath(workspace_fd, plan->guards[i].path, O_PATH | O_NOFOLLOW);
                if (fd >= 0 || (errno != ENOENT && !plan->guards[i].submodule))
                        return plan->guards[i].path;
        }
        return NULL;
}

const char *guard_find_made(const LaunchPlan *plan, int workspace_fd) {
        const char *made = workspace_fd < 0 ? NULL : find_made(plan, workspace_fd);

        for (size_t i = 0; !made && i < plan->others_count; i++)
                if (plan->others[i].guards_count > 0)
                        made = find_made(&plan->others[i], plan_workspace(&plan->others[i])->fd);
        return made;
}

bool guard_holds(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->guards_count; i++)
                if (plan->guards[i].pinned && path_below(path, plan->guards[i].path))
                        return true;
        return false;
}

/* --- strays --- */

/* Sets aside new strays. The caller's own stay, unless they lead elsewhere now. */
static void sweep_strays(Sweep *sweep) {
        PlanStrays found = { 0 };

        sweep_note(sweep, strays_find(sweep->plan, sweep->tree.fd, &sweep->plan->strays, &found));
        for (size_t i = 0; i < found.targets.count; i++) {
                const PlanGuard stray = { .path = found.paths.items[i] };

                if (!strays_has(&sweep->plan->strays, &found, i) &&
                    !strlist_has(sweep->moved, stray.path))
                        sweep_guard(sweep, &stray);
        }
        strlist_clear(&found.paths);
        strlist_clear(&found.targets);
}

/* --- together --- */

static int look_error(const Sweep *sweep, Error *reterr) {
        int r;

        if (sweep->result != -E2BIG)
                return error_set(reterr, ERROR_SETUP, -sweep->result,
                                 "cannot check all paths that the policy protects");
        r = error_set(reterr, ERROR_SETUP, 0,
                      "the command has run, but left more files in .git than holt can check: do "
                      "not run git in this workspace yet");
        return error_cure(reterr, r,
                          "Look for symlinks that the command has made: find .git -type l\nRemove "
                          "those that you did not make. Then pack the refs, so that the next run "
                          "can check everything: git pack-refs --all");
}

/* Reports a file of another owner. holt was started by root and has given root up, and its mount of
 * the workspace maps only one owner. There, the kernel refuses to rename another owner's file
 * (EOVERFLOW), for holt and for the command. */
static int sweep_foreign(const Sweep *sweep, const char *names, Error *reterr) {
        (void)error_set(reterr, ERROR_SETUP, -sweep->result,
                        "cannot set aside %s, which appeared at a protected path while the sandbox "
                        "was running: it has another owner than the workspace",
                        names);
        return error_cure(reterr, sweep->result,
                          "No command in the sandbox can write a file of that owner. Look at it "
                          "all the same. If it is yours, give it the owner of its directory: "
                          "chown --reference=DIRECTORY FILE");
}

static int sweep_error(const Sweep *sweep, Error *reterr) {
        const size_t told = sweep->left.count < NAMES_TOLD ? sweep->left.count : NAMES_TOLD;
        char names[1024] = "", more[32] = "";

        if (told == 0)
                return look_error(sweep, reterr);
        for (size_t i = 0; i < told; i++) {
                const size_t used = strlen(names);

                (void)snprintf(names + used, sizeof(names) - used, "%s%.100s", i ? ", " : "",
                               sweep->left.items[i]);
        }
        if (sweep->left.count > told)
                (void)snprintf(more, sizeof(more), " and %zu more", sweep->left.count - told);
        if (sweep->foreign && sweep->left.count == 1)
                return sweep_foreign(sweep, names, reterr);
        (void)error_set(reterr, ERROR_SETUP, -sweep->result,
                        "cannot set aside %s%s, which the command has made at a protected path: do "
                        "not use it",
                        names, more);
        return error_cure(reterr, sweep->result, "%s",
                          sweep->locked ? "It has mode 0 now, so that only root can read it. Make "
                                          "room on the disk and move it away yourself."
                                        : "Move it away yourself.");
}

/* Sweeps the guards of one repository. The command cannot make this part slow, because it did not
 * choose the guards. */
static void sweep_guards(Sweep *sweep) {
        SweepDirectory dir = { .fd = FD_NONE };

        sweep_let_in(sweep->tree.fd);
        for (size_t i = 0; i < sweep->plan->guards_count; i++)
                sweep_guard_in(sweep, &sweep->plan->guards[i], &dir);
        directory_leave(&dir);
}

static void sweep_git(Sweep *sweep, size_t *more) {
        const PlanMount *workspace = plan_workspace(sweep->plan);

        if (!workspace || !plan_protects_git(sweep->plan))
                return;
        sweep->tree = repository_tree(workspace);
        sweep_strays(sweep);
        sweep_submodules(sweep, more);
}

static int end_sweep(Sweep *sweep, Error *reterr) {
        int r = sweep->result < 0 ? sweep_error(sweep, reterr) : 0;

        strlist_clear(&sweep->left);
        return r;
}

typedef struct OtherSweep {
        Sweep sweep;
        StrList names, restored;
} OtherSweep;

/* Ends the sweep of another mount. The names become absolute paths of the host, because they are
 * not relative to the workspace. */
static int end_names(const PlanMount *mount, StrList *names, StrList *ret) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < names->count; i++)
                r = strlist_take(ret, path_join(mount->source, names->items[i]));
        strlist_clear(names);
        return r;
}

static int end_other(OtherSweep *other, StrList *moved, StrList *restored, Error *reterr) {
        const PlanMount *mount = plan_workspace(other->sweep.plan);
        int r = end_sweep(&other->sweep, reterr);

        if (end_names(mount, &other->names, moved) < 0 ||
            (restored && end_names(mount, &other->restored, restored) < 0))
                r = error_oom(reterr);
        return r;
}

int guard_sweep(const LaunchPlan *plan, int workspace_fd, StrList *moved, StrList *restored,
                Error *reterr) {
        _cleanup_free_ OtherSweep *others = calloc(plan->others_count + 1, sizeof(*others));
        Sweep first = {
                .plan = plan, .tree = { .fd = workspace_fd }, .moved = moved, .restored = restored
        };
        size_t more = REPOSITORY_WORK_MORE, count = 0;
        int result;

        if (workspace_fd >= 0)
                sweep_guards(&first);
        for (size_t i = 0; others && i < plan->others_count; i++)
                if (plan->others[i].guards_count > 0) {
                        OtherSweep *other = &others[count++];

                        other->sweep = (Sweep){ .plan = &plan->others[i],
                                                .moved = &other->names,
                                                .restored = restored ? &other->restored : NULL };
                        other->sweep.tree.fd = plan_workspace(&plan->others[i])->fd;
                        sweep_guards(&other->sweep);
                }
        if (workspace_fd >= 0)
                sweep_git(&first, &more);
        for (size_t i = 0; i < count; i++)
                sweep_git(&others[i].sweep, &more);
        if (!others)
                sweep_note(&first, -ENOMEM);
        result = end_sweep(&first, reterr);
        for (size_t i = 0; i < count; i++) {
                int r = end_other(&others[i], moved, restored, result < 0 ? NULL : reterr);

                result = result < 0 ? result : r;
        }
        return result;
}
