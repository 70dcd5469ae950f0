/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the protected paths that exist, and the submodules. Whoever can change a submodule's .git
 * can do the same as with the .git at the top.
 *
 * A path that exists will be mounted read-only over itself (build-mounts.c). A missing one is
 * looked for after the command has ended (guard.c). */
#include "guards/guards.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own-limits.h"
#include "base/paths.h"
#include "base/sys.h"
#include "git/repository.h"
#include "guards/guard.h"
#include "guards/restore.h"
#include "guards/strays.h"

enum {
        GUARDS_MAX = 20000,
        GUARD_FDS_FEW = 64, /* An fd above this number shows that many fds are needed. */
};

/* --- one path --- */

/* Opens a protected path. The fd stays open if the path will be pinned. Raises the limit of open
 * files if needed. */
static int open_guarded(int workspace_fd, const char *path) {
        static bool raised;
        int fd = sys_open_beneath(workspace_fd, path, O_PATH | O_NOFOLLOW);

        if (raised || (fd < GUARD_FDS_FEW && !(fd < 0 && errno == EMFILE)))
                return fd;
        raised = true;
        open_files_raise();
        return fd >= 0 ? fd : sys_open_beneath(workspace_fd, path, O_PATH | O_NOFOLLOW);
}

/* Finds the part of path that is a file. The .git of a worktree or a submodule is a file that names
 * another directory, so that file is the one to protect. */
static int guard_file(int workspace_fd, char *path, struct stat *ret, int *ret_fd) {
        for (size_t i = 1; path[i]; i++) {
                _cleanup_close_ int fd = FD_NONE;

                if (path[i] != '/')
                        continue;
                path[i] = '\0';
                fd = open_guarded(workspace_fd, path);
                if (fd < 0)
                        return -errno;
                if (fstat(fd, ret) == 0 && !S_ISDIR(ret->st_mode)) {
                        *ret_fd = TAKE_FD(fd);
                        return 0;
                }
                path[i] = '/';
        }
        return -ENOTDIR;
}

const char *guards_within(const PlanMount *workspace, const char *path) {
        const char *const names[] = { workspace->source, workspace->real };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (path_below(path, names[i])) {
                        path += streq(names[i], "/") ? 0 : strlen(names[i]);
                        return *path == '/' ? path + 1 : path;
                }
        return NULL;
}

int guards_repository_closed(const PlanMount *workspace, int r, Error *reterr) {
        if (r == -ENOMEM)
                return error_oom(reterr);
        r = error_set(reterr, ERROR_POLICY, -r,
                      "cannot find out which paths to protect in %s: another process holds a lease "
                      "on one of its git configs or indexes",
                      workspace->source);
        return error_cure(reterr, r,
                          "Another command in a sandbox may hold it (/proc/locks shows its "
                          "process): end that command, or wait until it ends.");
}

/* Refuses a .git file that names an unprotected directory in the workspace itself, even through
 * symlinks. There, the command could write code that the host's git runs. */
static int check_git_file(const LaunchPlan *plan, const PlanMount *workspace, const char *path,
                          Error *reterr) {
        _cleanup_free_ char *leads = NULL;
        _cleanup_close_ int git_fd = repository_open(workspace->fd, workspace->real, path, &leads);
        const char *inside = leads ? guards_within(workspace, leads) : NULL;
        char real[PATH_MAX];
        int r;

        if (git_fd == -EAGAIN)
                return guards_repository_closed(workspace, git_fd, reterr);
        if (!inside && git_fd >= 0 && path_of_fd(git_fd, real) == 0)
                inside = guards_within(workspace, real);
        if (!inside || guard_holds(plan, inside))
                return 0;
        r = error_set(reterr, ERROR_POLICY, 0,
                      "cannot protect the repository of %s: %s is a file that leads to %s in the "
                      "workspace",
                      workspace->source, path, leads);
        return error_cure(reterr, r,
                          "Keep the repository outside of the workspace or in .git itself. To run "
                          "without this protection: --protect none");
}

/* Refuses a symlink: nothing can be mounted over it, and its target could be exchanged behind the
 * guard. */
static int refuse_link(const PlanGuard *guard, const PlanMount *workspace, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, ELOOP,
                          "cannot protect %s in %s: it is a symlink, or below one", guard->path,
                          workspace->source);

        return error_cure(reterr, r,
                          "Replace the symlink by the real file or directory. To run without this "
                          "protection: --protect none");
}

int guards_refuse_shared(const PlanMount *workspace, const char *path, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot protect %s in %s: the file has a second name (hard link), "
                          "perhaps in the workspace",
                          path, workspace->source);

        return error_cure(reterr, r,
                          "Make it a file of its own: cp -p FILE NEW && mv NEW FILE. To run "
                          "without this protection: --protect none");
}

static int refuse_guard(const PlanGuard *guard, const PlanMount *workspace, int r, Error *reterr) {
        (void)error_set(reterr, ERROR_POLICY, -r, "cannot protect %s in %s", guard->path,
                        workspace->source);
        if (r == -EMFILE)
                return error_cure(
                        reterr, r,
                        "holt keeps every protected file open. Raise the limit of open files "
                        "(ulimit -Hn). To run without this protection: --protect none");
        if (r == -EACCES)
                return error_cure(reterr, r,
                                  "A command may have removed your permissions on a directory on "
                                  "the way. Restore them: chmod -R u+rwX %s",
                                  workspace->source);
        return r;
}

/* Takes the fd of the guard's file or directory, which is a submodule's .git or will be pinned. */
static void guard_take(const LaunchPlan *plan, PlanGuard *guard, int fd, const struct stat *st) {
        guard->pinned = true;
        guard->device = st->st_dev;
        guard->inode = st->st_ino;
        guard->directory = S_ISDIR(st->st_mode);
        guard->fd = fd;
        if (!guard->submodule)
                guard_remember(plan, guard, st);
}

static int look_at_guard(const LaunchPlan *plan, PlanGuard *guard, const PlanMount *workspace,
                         Error *reterr) {
        _cleanup_close_ int fd = open_guarded(workspace->fd, guard->path);
        struct stat st = { 0 };
        int r = fd < 0 ? -errno : fstat(fd, &st) < 0 ? -errno : 0;

        if (r == 0 && S_ISLNK(st.st_mode))
                return refuse_link(guard, workspace, reterr);
        /* git does not enter a submodule through a symlink or a file. */
        if (guard->submodule && (r == -ELOOP || r == -ENOTDIR))
                return 0;
        if (r == -ELOOP)
                return refuse_link(guard, workspace, reterr);
        if (r == -ENOTDIR) {
                r = guard_file(workspace->fd, guard->path, &st, &fd);
                if (r == 0 && check_git_file(plan, workspace, guard->path, reterr) < 0)
                        return -EINVAL;
        } else if (r == 0 && guard->submodule && S_ISREG(st.st_mode) &&
                   check_git_file(plan, workspace, guard->path, reterr) < 0) {
                return -EINVAL;
        }
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return refuse_guard(guard, workspace, r, reterr);
        if (S_ISREG(st.st_mode) && st.st_nlink > 1)
                return guards_refuse_shared(workspace, guard->path, reterr);
        guard_take(plan, guard, TAKE_FD(fd), &st);
        return 0;
}

static int reserve_guards(LaunchPlan *plan, size_t more, Error *reterr) {
        PlanGuard *guards;
        int r;

        if (plan->guards_count + more > GUARDS_MAX) {
                r = error_set(reterr, ERROR_POLICY, 0,
                              "cannot protect more than %d paths of the workspace", GUARDS_MAX);
                return error_cure(reterr, r, "To run without this protection: --protect none");
        }
        guards = reallocarray(plan->guards, plan->guards_count + more + 1, sizeof(*guards));
        if (!guards)
                return error_oom(reterr);
        plan->guards = guards;
        return 0;
}

int guards_add(LaunchPlan *plan, const PlanMount *workspace, const char *path, Error *reterr) {
        int r = guard_holds(plan, path) ? 1 : reserve_guards(plan, 1, reterr);

        if (r == 0)
                r = plan_add_guard(plan, path, reterr);
        if (r == 0)
                r = look_at_guard(plan, &plan->guards[plan->guards_count - 1], workspace, reterr);
        return r < 0 ? r : 0;
}

/* --- submodules --- */

/* Refuses an index. If a command had damaged the index, it would have been set aside after the run
 * (guard.c), so the caller has made this index. */
static int refuse_index(const PlanMount *workspace, int errnum, Error *reterr) {
        const bool ours = errnum == EBADMSG || errnum == E2BIG;
        int r = error_set(reterr, ERROR_POLICY, ours ? 0 : errnum,
                          "cannot find the submodules of %s: its .git/index %s", workspace->source,
                          errnum == EBADMSG ? "has a form that git never writes"
                          : errnum == E2BIG ? "is larger than holt reads"
                                            : "cannot be read");

        return error_cure(reterr, r,
                          "Let git create a new index; staged changes are lost: rm .git/index && "
                          "git reset\nTo run without this protection: --protect none");
}

/* Refuses a sparse directory that exists on the disk: only git can tell which repositories it would
 * enter there. */
static int refuse_tree(const PlanMount *workspace, const char *path, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot find the submodules of %s: %s is a sparse directory in the "
                          "index, but exists on the disk",
                          workspace->source, streq(path, ".") ? "a parent directory" : path);

        return error_cure(reterr, r,
                          "Let git write its entries into the index: git sparse-checkout reapply "
                          "--no-sparse-index\nTo run without this protection: --protect none");
}

static int guards_tree(const PlanMount *workspace, const char *path, RepositoryLinks *found,
                       Error *reterr) {
        const RepositoryTree tree = repository_tree(workspace);

        if (!repository_works(found, repository_path_work(path)))
                return refuse_index(workspace, E2BIG, reterr);
        return repository_tree_there(&tree, path) ? refuse_tree(workspace, path, reterr) : 0;
}

/* Guards one submodule that was found. git goes on from there, so this may find more. */
static int guards_submodule(LaunchPlan *plan, const PlanMount *workspace, size_t index,
                            RepositoryLinks *found, GuardsLooks *looks, Error *reterr) {
        const RepositoryTree tree = repository_tree(workspace);
        int r = reserve_guards(plan, found->links.count - index, reterr);
        PlanGuard *guard;
        char *path;

        if (r < 0)
                return r;
        if (!repository_works(found, repository_path_work(found->links.items[index])))
                return refuse_index(workspace, E2BIG, reterr);
        guard = &plan->guards[plan->guards_count];
        path = str_format("%s/.git", found->links.items[index]);
        if (!path)
                return error_oom(reterr);
        *guard = (PlanGuard){ .path = path, .fd = FD_NONE, .submodule = true };
        plan->guards_count++;
        r = look_at_guard(plan, guard, workspace, reterr);
        if (r < 0 || !guard->pinned)
                return r;
        r = repository_links(&tree, path, found);
        if (repository_is_closed(r))
                return guards_repository_closed(workspace, r, reterr);
        return guards_config_of(plan, workspace, path, looks, reterr);
}

/* Guards the submodules of the repository in the workspace, and of those above it. The list grows
 * while it is walked. */
static int guards_submodules(LaunchPlan *plan, const PlanMount *workspace, GuardsLooks *looks,
                             Error *reterr) {
        _cleanup_(repository_links_clear)
                RepositoryLinks found = { .plan = plan,
                                          .ret_plain = plan->unfiltered ? NULL
                                                                        : &plan->plain_indexes,
                                          .work_max = REPOSITORY_WORK_MAX };
        const RepositoryTree tree = repository_tree(workspace);
        int r = repository_links(&tree, ".git", &found);

        if (!repository_is_closed(r) && r < 0)
                return refuse_index(workspace, -r, reterr);
        if (r == 0)
                r = repository_links_above(&tree, &found);
        if (r < 0)
                return guards_repository_closed(workspace, r, reterr);
        for (size_t i = 0; r == 0 && i < found.links.count; i++)
                r = guards_submodule(plan, workspace, i, &found, looks, reterr);
        for (size_t i = 0; r == 0 && i < found.trees.count; i++)
                r = guards_tree(workspace, found.trees.items[i], &found, reterr);
        plan->links_work = found.work;
        return r;
}

/* --- a bare repository --- */

/* Protects a bare repository. git takes a directory for a repository if it has HEAD, objects and
 * refs (gitrepository-layout(5)). HEAD is protected, but if it exists already, the command can make
 * the other two. So all files that are protected in .git are protected at the top too. So is the
 * index, whose gitlinks would lead from a work tree elsewhere back into this directory. */
static int add_bare(LaunchPlan *plan, Error *reterr) {
        const size_t asked = plan->guards_count;
        int r = 0;

        r = reserve_guards(plan, asked + 1, reterr);
        for (size_t i = 0; r == 0 && i < asked; i++)
                if (str_starts(plan->guards[i].path, ".git/"))
                        r = plan_add_guard(plan, plan->guards[i].path + strlen(".git/"), reterr);
        return r == 0 ? plan_add_guard(plan, "index", reterr) : r;
}

/* --- strays --- */

/* Notes the caller's own strays, which are not set aside after the run. */
static int guards_strays(LaunchPlan *plan, const PlanMount *workspace, Error *reterr) {
        int r = strays_find(plan, workspace->fd, NULL, &plan->strays);

        if (r != -E2BIG)
                return r < 0 ? error_oom(reterr) : 0;
        r = error_set(reterr, ERROR_POLICY, 0,
                      "cannot protect the repository of %s: it contains more than holt can check",
                      workspace->source);
        return error_cure(reterr, r,
                          "Let git pack the refs (git pack-refs --all), and look for symlinks in "
                          "it that you have not made (find .git -type l).\nTo run without this "
                          "protection: --protect none");
}

/* --- together --- */

/* Drops a repeated guard. If .git is a file, the guards of all paths below it end at that file. */
static void drop_repeated(LaunchPlan *plan, size_t *index) {
        PlanGuard *guard = &plan->guards[*index];

        for (size_t i = 0; guard->pinned && i < *index; i++)
                if (plan->guards[i].pinned && streq(plan->guards[i].path, guard->path)) {
                        free(guard->path);
                        free(guard->text);
                        fd_close(guard->fd);
                        memmove(guard, guard + 1, (--plan->guards_count - *index) * sizeof(*guard));
                        --*index;
                        return;
                }
}

/* Guards git's own paths. Without a repository here or above, only strays are left to find. */
static int guards_git(LaunchPlan *plan, const PlanMount *workspace, bool bare, Error *reterr) {
        GuardsLooks looks = { 0 };
        bool found;
        int r = guards_config(plan, workspace, bare, &looks, &found, reterr);

        if (r == 0 && found)
                r = guards_submodules(plan, workspace, &looks, reterr);
        strlist_clear(&looks.directories);
        return r == 0 ? guards_strays(plan, workspace, reterr) : r;
}

static int guards_prepare_mount(LaunchPlan *plan, const PlanMount *workspace, Error *reterr) {
        const bool git = plan_protects_git(plan);
        bool bare, missing;
        int r = 0;

        missing = faccessat(workspace->fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
                  errno == ENOENT;
        bare = git && faccessat(workspace->fd, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        if (bare)
                r = add_bare(plan, reterr);
        for (size_t i = 0; r == 0 && i < plan->guards_count; i++) {
                if (missing && str_starts(plan->guards[i].path, ".git/"))
                        continue;
                r = look_at_guard(plan, &plan->guards[i], workspace, reterr);
                if (r == 0)
                        drop_repeated(plan, &i);
        }
        return r < 0 || !git ? r : guards_git(plan, workspace, bare, reterr);
}

/* --- other mounts --- */

/* Whether the mount contains a repository at its top, or is one. A mount of a file is not a
 * repository. */
static bool guards_is_repository(const PlanMount *mount) {
        return mount->directory && (faccessat(mount->fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
                                    faccessat(mount->fd, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

/* Drops all guards except the one of .holt.json. If the mount is not a directory, drops that guard
 * too. */
static void drop_guards(LaunchPlan *plan, bool directory) {
        size_t left = 0;

        for (size_t i = 0; i < plan->guards_count; i++)
                if (directory && streq(plan->guards[i].path, ".holt.json"))
                        plan->guards[left++] = plan->guards[i];
                else
                        free(plan->guards[i].path);
        plan->guards_count = left;
}

/* Guards the other mounts: one that is mounted read-write may contain another repository of the
 * caller's. */
static int guards_others(LaunchPlan *plan, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->others_count; i++) {
                LaunchPlan *other = &plan->others[i];
                const PlanMount *mount;

                other->mounts = plan->mounts;
                other->mounts_count = plan->mounts_count;
                other->unfiltered = plan->unfiltered;
                mount = plan_workspace(other);
                if (!mount || !guards_is_repository(mount))
                        drop_guards(other, mount && mount->directory);
                if (mount)
                        r = guards_prepare_mount(other, mount, reterr);
        }
        return r;
}

int guards_prepare(LaunchPlan *plan, Error *reterr) {
        const PlanMount *workspace = plan_workspace(plan);
        int r = workspace ? guards_prepare_mount(plan, workspace, reterr) : 0;

        return r == 0 ? guards_others(plan, reterr) : r;
}
