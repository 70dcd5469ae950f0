/* SPDX-License-Identifier: Apache-2.0 */
#include "guards/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"
#include "git/repository.h"
#include "guards/strays.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum { NAMES_TRIED = 9, NAMES_TOLD = 8 };

/* Units of work, see repository.h. */
enum {
        WORK_ASIDE = 64,  /* Renaming one file. */
        WORK_PARTS = 4,   /* For each byte of a path that is followed part by part. */
        WORK_GUARDS = 64, /* Comparing a path with this many guards is one unit. */
};

typedef struct Sweep {
        const LaunchPlan *plan;
        RepositoryLinks found; /* Repositories that git enters. */
        RepositoryTree tree;   /* The workspace. */
        StrList *moved;
        StrList left; /* Paths that could not be moved. */
        bool locked;  /* At least one of them has mode 0 now, so that nobody can read it. */
        /* At least one of them belongs to an owner that the id map does not contain. */
        bool foreign;
        int result; /* The first negative errno, or 0. */
} Sweep;

/* Notes an error; the sweep goes on. */
static void guard_note(Sweep *sweep, int r) {
        if (sweep->result == 0)
                sweep->result = r;
}

/* Returns ".lock" in directories of refs: git does not take a name with that end for a ref
 * (git-check-ref-format(1)). Otherwise the next command could make a branch with the new name, and
 * git would write through it. */
const char *guard_aside_end(const char *dir) {
        static const char *const of_refs[] = { ".git/refs/", ".git/logs/", "refs/", "logs/" };

        for (size_t i = 0; i < ELEMENTSOF(of_refs); i++)
                if (str_starts(dir, of_refs[i]))
                        return ".lock";
        return "";
}

/* Returns NAME.holt-untrusted, NAME.holt-untrusted.2 and so on. The command may have taken all of
 * these names, so the last one contains a random number that it cannot guess. */
static char *aside_name(const char *dir, const char *name, int attempt) {
        const char *end = guard_aside_end(dir);
        uint64_t random = 0;

        if (attempt == 1)
                return str_format("%s" GUARD_SUFFIX "%s", name, end);
        if (attempt < NAMES_TRIED)
                return str_format("%s" GUARD_SUFFIX ".%d%s", name, attempt, end);
        (void)!syscall(SYS_getrandom, &random, sizeof(random), 0);
        return str_format("%s" GUARD_SUFFIX ".%016llx%s", name, (unsigned long long)random, end);
}

/* Restores the right to enter and change a directory. The command may have removed that right, but
 * the caller owns the directory. chmod does not work on an O_PATH fd, but on its name in /proc. */
int guard_make_usable(int dir_fd) {
        char path[32];
        struct stat st;

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
        if (fstat(dir_fd, &st) < 0 || chmod(path, (st.st_mode & 07777) | S_IRWXU) < 0)
                return -errno;
        return 0;
}

static void let_in(int dir_fd) {
        if (faccessat(dir_fd, ".", X_OK, AT_EACCESS) < 0)
                (void)guard_make_usable(dir_fd);
}

static int move_to(Sweep *sweep, int dir_fd, const char *dir, const char *name, char *aside) {
        if (!aside)
                return -ENOMEM;
        if (syscall(SYS_renameat2, dir_fd, name, dir_fd, aside, RENAME_NOREPLACE) < 0)
                return -errno;
        return strlist_take(sweep->moved, str_format("%s%s", dir, aside));
}

/* Tries one name. The old name may be so long that no suffix fits; then the new name is only the
 * suffix. */
static int guard_move(Sweep *sweep, int dir_fd, const char *dir, const char *name, int attempt) {
        _cleanup_free_ char *aside = aside_name(dir, name, attempt), *other = NULL;
        int r = move_to(sweep, dir_fd, dir, name, aside);

        if (r != -ENAMETOOLONG)
                return r;
        other = aside_name(dir, "", NAMES_TRIED);
        return move_to(sweep, dir_fd, dir, name, other);
}

/* Takes away all permissions if the disk has no room for another name. Then only root can read the
 * file. */
static void guard_lock(Sweep *sweep, int dir_fd, const char *name) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        char path[32];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        sweep->locked |= fd >= 0 && chmod(path, 0) == 0;
}

/* Renames `name` in dir_fd. dir is its path, for the report. */
static void set_aside(Sweep *sweep, int dir_fd, const char *dir, const char *name) {
        int r = -EEXIST;

        (void)repository_works(&sweep->found, WORK_ASIDE);
        for (int i = 1; i <= NAMES_TRIED && (r == -EEXIST || r == -EACCES); i++) {
                r = guard_move(sweep, dir_fd, dir, name, i);
                if (r == 0)
                        return;
                if (r == -EACCES && guard_make_usable(dir_fd) < 0)
                        break;
        }
        if (r == -ENOSPC || r == -EDQUOT)
                guard_lock(sweep, dir_fd, name);
        sweep->foreign |= r == -EOVERFLOW;
        guard_note(sweep, r);
        guard_note(sweep, strlist_take(&sweep->left, str_format("%s%s", dir, name)));
}

/* Enters the directory `name` in dir_fd, one step of following a path. Returns 1 with the directory
 * in *ret_fd, or 0 if it does not exist. Returns a negative errno if it is not a directory: a
 * program may accept a file or a link in its place. */
static int guard_descend(int dir_fd, const char *name, int *ret_fd) {
        int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        let_in(fd);
        *ret_fd = fd;
        return 1;
}

static bool is_there(int dir_fd, const char *name) {
        struct stat st;

        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* Whether the guard is still mounted. The mount belongs to the name. If the host unlinks the file
 * and links it again, it has no mount any more, and the command can write it. */
static bool is_mounted(const LaunchPlan *plan, const PlanGuard *guard) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!plan->inside_fd)
                return true;
        path = str_format("%s/%s", plan->workspace + 1, guard->path);
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
                if (plan->mounts[i].kind == PLAN_HIDE && is_below(path, plan->mounts[i].target) &&
                    sys_is_mount_root(*plan->inside_fd, plan->mounts[i].target + 1) > 0)
                        return true;
        return false;
}

/* Sets the entry `name` in dir_fd aside unless it is held or covered. The entry is the last part of
 * the guard's path, or an obstacle on the way. */
static void sweep_name(Sweep *sweep, int dir_fd, const char *dir, const char *name,
                       const PlanGuard *guard) {
        if (is_there(dir_fd, name) && !is_held(sweep->plan, dir_fd, name, guard) &&
            !guard_is_covered(sweep, guard))
                set_aside(sweep, dir_fd, dir, name);
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
                return guard_note(sweep, rest ? -errno : -ENOMEM);
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
                return guard_note(sweep, -ENOMEM);
        sweep_name(sweep, dir_fd, dir, part, guard);
}

/* Sweeps one guard. Returns early if nothing can be in the way, since thousands of paths may have
 * thousands of parts each. */
static void guard_sweep_one(Sweep *sweep, const PlanGuard *guard) {
        const char *slash = strrchr(guard->path, '/');
        _cleanup_free_ char *dir = strndup(guard->path,
                                           slash ? (size_t)(slash + 1 - guard->path) : 0);
        _cleanup_close_ int dir_fd = FD_NONE;

        if (!dir)
                return guard_note(sweep, -ENOMEM);
        dir_fd = sys_open_beneath(sweep->tree.fd, slash ? dir : ".", O_PATH | O_DIRECTORY);
        if (dir_fd < 0 &&
            (errno == ENOENT || (guard->submodule && (errno == ENOTDIR || errno == ELOOP))))
                return;
        if (dir_fd < 0)
                return sweep_parts(sweep, guard);
        let_in(dir_fd);
        sweep_name(sweep, dir_fd, dir, slash ? slash + 1 : guard->path, guard);
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

/* --- submodules --- */

bool guard_holds(const LaunchPlan *plan, const char *path) {
        for (size_t i = 0; i < plan->guards_count; i++)
                if (plan->guards[i].pinned && path_below(path, plan->guards[i].path))
                        return true;
        return false;
}

/* Whether something exists in the place of a sparse directory. Also true if there is no time left
 * to find out. */
static bool has_tree(Sweep *sweep) {
        RepositoryLinks *found = &sweep->found;

        for (size_t i = 0; i < found->trees.count; i++)
                if (!repository_works(found, repository_path_work(found->trees.items[i])) ||
                    repository_tree_there(&sweep->tree, found->trees.items[i]))
                        return true;
        return false;
}

/* Sets the index aside, so that git follows none of its gitlinks. */
static void set_index_aside(Sweep *sweep) {
        _cleanup_close_ int git_fd = openat(sweep->tree.fd, ".git",
                                            O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (git_fd >= 0)
                set_aside(sweep, git_fd, ".git/", "index");
}

/* Sets the index aside if it is not a valid index any more, or if something is in the place of a
 * sparse directory. The command may have added a repository of its own to the index. No sparse
 * directory existed at the start (guards.c), and only git can tell which gitlinks are in a tree
 * that the command made. */
static void sweep_index(Sweep *sweep) {
        if (repository_links(&sweep->tree, ".git", &sweep->found) == 0 && !has_tree(sweep))
                return;
        repository_links_clear(&sweep->found);
        set_index_aside(sweep);
}

/* Whether the guard of path is pinned. While the indexes are unchanged, the guard is the next one
 * of a submodule, which makes the search short. */
static bool guard_is_pinned(Sweep *sweep, const char *path, size_t *next) {
        const LaunchPlan *plan = sweep->plan;

        while (*next < plan->guards_count && !plan->guards[*next].submodule)
                ++*next;
        if (*next < plan->guards_count && streq(plan->guards[*next].path, path) &&
            plan->guards[(*next)++].pinned)
                return true;
        (void)repository_works(&sweep->found, plan->guards_count / WORK_GUARDS);
        return guard_holds(plan, path);
}

/* Looks at one repository that git enters. A pinned one is as it was at the start, and git goes on
 * from there. */
static void sweep_link(Sweep *sweep, size_t index, size_t *next) {
        _cleanup_free_ char *path = str_format("%s/.git", sweep->found.links.items[index]);
        const PlanGuard link = { .path = path, .submodule = true };

        if (!path)
                return guard_note(sweep, -ENOMEM);
        if (!guard_is_pinned(sweep, path, next))
                guard_sweep_one(sweep, &link);
        else {
                int r = repository_links(&sweep->tree, path, &sweep->found);

                guard_note(sweep, repository_is_closed(r) || r == -E2BIG ? r : 0);
        }
}

/* Sets aside the entry at a sparse directory, because its index is out of reach. */
static void sweep_tree(Sweep *sweep, char *path) {
        const PlanGuard tree = { .path = path, .submodule = true };

        if (!streq(path, ".") && !guard_holds(sweep->plan, path))
                guard_sweep_one(sweep, &tree);
}

/* Whether there is time left to look at path. */
static bool guard_goes_on(Sweep *sweep, const char *path) {
        return repository_works(&sweep->found, repository_path_work(path));
}

/* Sweeps the gitlinks of the workspace's own index, which are the first `count` ones. If the time
 * is too short for all, the index is set aside, so that git follows none of the rest. */
static void sweep_own_links(Sweep *sweep, size_t count, size_t *next) {
        for (size_t i = 0; i < count; i++) {
                if (!guard_goes_on(sweep, sweep->found.links.items[i]))
                        return set_index_aside(sweep);
                sweep_link(sweep, i, next);
        }
}

/* Sweeps the gitlinks of repositories above and of submodules, whose indexes the command cannot
 * write. has_tree() has checked the workspace's own sparse directories already. */
static void sweep_other_links(Sweep *sweep, size_t links, size_t trees, size_t *next) {
        const RepositoryLinks *found = &sweep->found;

        for (size_t i = links; i < found->links.count; i++) {
                if (!guard_goes_on(sweep, found->links.items[i]))
                        return guard_note(sweep, -E2BIG);
                sweep_link(sweep, i, next);
        }
        for (size_t i = trees; i < found->trees.count; i++) {
                if (!guard_goes_on(sweep, found->trees.items[i]))
                        return guard_note(sweep, -E2BIG);
                sweep_tree(sweep, found->trees.items[i]);
        }
}

/* Reserves time for gitlinks that the command did not make, even if its own index used up the
 * time. */
static void spare_time(Sweep *sweep) {
        RepositoryLinks *found = &sweep->found;

        if (!repository_works(found, 0))
                found->work_max = found->work + sweep->plan->links_work + REPOSITORY_WORK_SPARE;
}

/* more: time for all repositories together, beyond the time that they took before the command. */
static void sweep_submodules(Sweep *sweep, size_t *more) {
        RepositoryLinks *found = &sweep->found;
        const size_t before = sweep->plan->links_work;
        size_t next = 0, own, trees;

        found->work = 0;
        found->work_max = before + *more + 1;
        sweep_index(sweep);
        own = found->links.count;
        trees = found->trees.count;
        spare_time(sweep);
        guard_note(sweep, repository_links_above(&sweep->tree, found));
        sweep_own_links(sweep, own, &next);
        spare_time(sweep);
        sweep_other_links(sweep, own, trees, &next);
        if (found->work > before)
                *more -= found->work - before < *more ? found->work - before : *more;
        repository_links_clear(found);
}

/* --- strays --- */

/* Sets aside new strays. The caller's own stay, unless they lead elsewhere now. */
static void sweep_strays(Sweep *sweep) {
        PlanStrays found = { 0 };

        guard_note(sweep, strays_find(sweep->plan, sweep->tree.fd, &sweep->plan->strays, &found));
        for (size_t i = 0; i < found.targets.count; i++) {
                const PlanGuard stray = { .path = found.paths.items[i] };

                if (!strays_has(&sweep->plan->strays, &found, i) &&
                    !strlist_has(sweep->moved, stray.path))
                        guard_sweep_one(sweep, &stray);
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
 * the workspace maps only one owner. The kernel lets neither holt nor the command rename another
 * owner's file there (EOVERFLOW). */
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
        let_in(sweep->tree.fd);
        for (size_t i = 0; i < sweep->plan->guards_count; i++)
                guard_sweep_one(sweep, &sweep->plan->guards[i]);
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

/* Ends the sweep of another mount. The names become absolute paths of the host, because they are
 * not relative to the workspace. */
static int end_other(Sweep *sweep, StrList *moved, Error *reterr) {
        const PlanMount *mount = plan_workspace(sweep->plan);
        StrList *names = sweep->moved;
        int r = end_sweep(sweep, reterr);

        for (size_t i = 0; i < names->count; i++)
                if (strlist_take(moved, path_join(mount->source, names->items[i])) < 0)
                        r = error_oom(reterr);
        strlist_clear(names);
        return r;
}

typedef struct OtherSweep {
        Sweep sweep;
        StrList names;
} OtherSweep;

int guard_sweep(const LaunchPlan *plan, int workspace_fd, StrList *moved, Error *reterr) {
        _cleanup_free_ OtherSweep *others = calloc(plan->others_count + 1, sizeof(*others));
        Sweep first = { .plan = plan, .tree = { .fd = workspace_fd }, .moved = moved };
        size_t more = REPOSITORY_WORK_MORE, count = 0;
        int result;

        if (workspace_fd >= 0)
                sweep_guards(&first);
        for (size_t i = 0; others && i < plan->others_count; i++)
                if (plan->others[i].guards_count > 0) {
                        OtherSweep *other = &others[count++];

                        other->sweep = (Sweep){ .plan = &plan->others[i], .moved = &other->names };
                        other->sweep.tree.fd = plan_workspace(&plan->others[i])->fd;
                        sweep_guards(&other->sweep);
                }
        if (workspace_fd >= 0)
                sweep_git(&first, &more);
        for (size_t i = 0; i < count; i++)
                sweep_git(&others[i].sweep, &more);
        if (!others)
                guard_note(&first, -ENOMEM);
        result = end_sweep(&first, reterr);
        for (size_t i = 0; i < count; i++) {
                int r = end_other(&others[i].sweep, moved, result < 0 ? NULL : reterr);

                result = result < 0 ? result : r;
        }
        return result;
}
