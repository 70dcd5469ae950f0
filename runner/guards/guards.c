/* SPDX-License-Identifier: Apache-2.0 */
/* What of the protected paths is there, and of the submodules, whose .git is as good as the top's
 * own to whoever can change it.
 *
 * What is there will be mounted read-only over itself (build-mounts.c); what is not is looked for
 * when the command has ended (guard.c). */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own-limits.h"
#include "base/paths.h"
#include "base/sys.h"
#include "guards/guard.h"
#include "guards/guards.h"
#include "guards/repository.h"
#include "guards/strays.h"

enum {
        GUARDS_MAX = 20000,
        GUARD_FDS_FEW = 64, /* an fd above that shows that many are needed */
};

/* --- one path --- */

/* The fd stays open if the path is to be pinned. */
static int open_guarded(int workspace_fd, const char *path) {
        static bool raised;
        int fd = sys_open_beneath(workspace_fd, path, O_PATH | O_NOFOLLOW);

        if (raised || (fd < GUARD_FDS_FEW && !(fd < 0 && errno == EMFILE)))
                return fd;
        raised = true;
        open_files_raise();
        return fd >= 0 ? fd : sys_open_beneath(workspace_fd, path, O_PATH | O_NOFOLLOW);
}

/* The .git of a worktree or a submodule is a file that names another directory: where a part of the
 * path is a file, that file is what has to stay. */
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
                      "cannot tell what to protect in %s: a git config or index of it is held by a "
                      "lease of another process",
                      workspace->source);
        return error_cure(reterr, r,
                          "Another command in a sandbox may do that (/proc/locks says which): end "
                          "it, or wait for its end.");
}

/* Where the directory that a .git file names lies in the workspace itself, by whatever links, and
 * nothing protects it there, the command could write in it what the host's git runs. */
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
                      "cannot protect the repository of %s: %s is a file that leads to %s, in the "
                      "workspace",
                      workspace->source, path, leads);
        return error_cure(reterr, r,
                          "Keep the repository outside of the workspace or in .git itself, or give "
                          "protection up for this run: --protect none");
}

/* A link can't be mounted over, and what it leads to could be exchanged behind the guard. */
static int refuse_link(const PlanGuard *guard, const PlanMount *workspace, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, ELOOP,
                          "cannot protect %s in %s: it is a link, or below one", guard->path,
                          workspace->source);

        return error_cure(reterr, r,
                          "Put the real thing there, or give protection up for this run: "
                          "--protect none");
}

int guards_refuse_shared(const PlanMount *workspace, const char *path, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot protect %s in %s: the file has another name, which may be one in "
                          "the workspace",
                          path, workspace->source);

        return error_cure(reterr, r,
                          "Make it a file of its own (cp -p FILE NEW && mv NEW FILE), or give "
                          "protection up for this run: --protect none");
}

static int refuse_guard(const PlanGuard *guard, const PlanMount *workspace, int r, Error *reterr) {
        (void)error_set(reterr, ERROR_POLICY, -r, "cannot protect %s in %s", guard->path,
                        workspace->source);
        if (r == -EMFILE)
                return error_cure(reterr, r,
                                  "Holt keeps every protected file open: raise the limit of open "
                                  "files (ulimit -Hn), or give protection up for this run: "
                                  "--protect none");
        if (r == -EACCES)
                return error_cure(
                        reterr, r,
                        "A command may have closed a directory on the way. Open it again: "
                        "chmod -R u+rwX %s",
                        workspace->source);
        return r;
}

static int look_at_guard(const LaunchPlan *plan, PlanGuard *guard, const PlanMount *workspace,
                         Error *reterr) {
        _cleanup_close_ int fd = open_guarded(workspace->fd, guard->path);
        struct stat st = { 0 };
        int r = fd < 0 ? -errno : fstat(fd, &st) < 0 ? -errno : 0;

        if (r == 0 && S_ISLNK(st.st_mode))
                return refuse_link(guard, workspace, reterr);
        /* git enters no submodule through a link or a file. */
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
        if (r < 0 && r != -ENOENT)
                return refuse_guard(guard, workspace, r, reterr);
        if (r == 0 && S_ISREG(st.st_mode) && st.st_nlink > 1)
                return guards_refuse_shared(workspace, guard->path, reterr);
        guard->pinned = r == 0;
        guard->device = r == 0 ? st.st_dev : 0;
        guard->inode = r == 0 ? st.st_ino : 0;
        guard->directory = r == 0 && S_ISDIR(st.st_mode);
        guard->fd = r == 0 ? TAKE_FD(fd) : FD_NONE;
        return 0;
}

static int reserve_guards(LaunchPlan *plan, size_t more, Error *reterr) {
        PlanGuard *guards;
        int r;

        if (plan->guards_count + more > GUARDS_MAX) {
                r = error_set(reterr, ERROR_POLICY, 0,
                              "cannot protect more than %d paths of the workspace", GUARDS_MAX);
                return error_cure(reterr, r, "Give protection up for this run: --protect none");
        }
        guards = reallocarray(plan->guards, plan->guards_count + more + 1, sizeof(*guards));
        if (!guards)
                return error_oom(reterr);
        plan->guards = guards;
        return 0;
}

static int guards_add_guard(LaunchPlan *plan, const char *path, Error *reterr) {
        char *copy = strdup(path);

        if (!copy)
                return error_oom(reterr);
        plan->guards[plan->guards_count++] = (PlanGuard){ .path = copy, .fd = FD_NONE };
        return 0;
}

int guards_add(LaunchPlan *plan, const PlanMount *workspace, const char *path, Error *reterr) {
        int r = guard_holds(plan, path) ? 1 : reserve_guards(plan, 1, reterr);

        if (r == 0)
                r = guards_add_guard(plan, path, reterr);
        if (r == 0)
                r = look_at_guard(plan, &plan->guards[plan->guards_count - 1], workspace, reterr);
        return r < 0 ? r : 0;
}

/* --- submodules --- */

/* What the command has made of an index is set aside after its run (guard.c): this one is the
 * caller's. */
static int refuse_index(const PlanMount *workspace, int errnum, Error *reterr) {
        const bool ours = errnum == EBADMSG || errnum == E2BIG;
        int r = error_set(reterr, ERROR_POLICY, ours ? 0 : errnum,
                          "cannot tell the submodules of %s: its .git/index %s", workspace->source,
                          errnum == EBADMSG ? "is none that git writes"
                          : errnum == E2BIG ? "is larger than holt reads"
                                            : "can't be read");

        return error_cure(reterr, r,
                          "Have git make a new one, without what is staged: rm .git/index && git "
                          "reset\nOr give protection up for this run: --protect none");
}

/* Nobody but git can tell what it would enter there. */
static int refuse_tree(const PlanMount *workspace, const char *path, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot tell the submodules of %s: the index has %s as a sparse "
                          "directory, and there is something in its place",
                          workspace->source, streq(path, ".") ? "what is above it" : path);

        return error_cure(reterr, r,
                          "Have git write into the index what is in it: git sparse-checkout "
                          "reapply --no-sparse-index\nOr give protection up for this run: "
                          "--protect none");
}

static int guards_tree(const PlanMount *workspace, const char *path, RepositoryLinks *found,
                       Error *reterr) {
        const RepositoryTree tree = repository_tree(workspace);

        if (!repository_works(found, repository_path_work(path)))
                return refuse_index(workspace, E2BIG, reterr);
        return repository_tree_there(&tree, path) ? refuse_tree(workspace, path, reterr) : 0;
}

/* One of what was found. git goes on from there, so that more may be found. */
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

/* The submodules of the repository that the workspace is, and of those that it lies in. Their list
 * grows while it is walked. */
static int guards_submodules(LaunchPlan *plan, const PlanMount *workspace, GuardsLooks *looks,
                             Error *reterr) {
        _cleanup_(repository_links_clear)
                RepositoryLinks found = { .work_max = REPOSITORY_WORK_MAX };
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

/* To git a directory is a repository by its HEAD, objects and refs (gitrepository-layout(5)). The
 * first of them is protected, but where it is there already the command can make the others. What
 * is protected in .git lies at the top then; so does the index, whose gitlinks would lead from a
 * work tree elsewhere back into this directory. */
static int add_bare(LaunchPlan *plan, Error *reterr) {
        const size_t asked = plan->guards_count;
        int r = 0;

        r = reserve_guards(plan, asked + 1, reterr);
        for (size_t i = 0; r == 0 && i < asked; i++)
                if (str_starts(plan->guards[i].path, ".git/"))
                        r = guards_add_guard(plan, plan->guards[i].path + strlen(".git/"), reterr);
        return r == 0 ? guards_add_guard(plan, "index", reterr) : r;
}

/* --- strays --- */

/* Those of the caller are not set aside after the run. */
static int guards_strays(LaunchPlan *plan, const PlanMount *workspace, Error *reterr) {
        int r = strays_find(plan, workspace->fd, NULL, &plan->strays);

        if (r != -E2BIG)
                return r < 0 ? error_oom(reterr) : 0;
        r = error_set(reterr, ERROR_POLICY, 0,
                      "cannot protect the repository of %s: there is more in it than holt looks at",
                      workspace->source);
        return error_cure(
                reterr, r,
                "Have git pack it (git pack-refs --all), and look for links in it that you "
                "have not made (find .git -type l)\nOr give protection up for this run: "
                "--protect none");
}

/* --- together --- */

/* Where .git is a file, guards of what would be in it all end at that file. */
static void drop_repeated(LaunchPlan *plan, size_t *index) {
        PlanGuard *guard = &plan->guards[*index];

        for (size_t i = 0; guard->pinned && i < *index; i++)
                if (plan->guards[i].pinned && streq(plan->guards[i].path, guard->path)) {
                        free(guard->path);
                        fd_close(guard->fd);
                        memmove(guard, guard + 1, (--plan->guards_count - *index) * sizeof(*guard));
                        --*index;
                        return;
                }
}

/* Where no repository is, nor above, there is nothing more. */
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
        bool bare;
        int r = 0;

        bare = git && faccessat(workspace->fd, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        if (bare)
                r = add_bare(plan, reterr);
        for (size_t i = 0; r == 0 && i < plan->guards_count; i++) {
                r = look_at_guard(plan, &plan->guards[i], workspace, reterr);
                if (r == 0)
                        drop_repeated(plan, &i);
        }
        return r < 0 || !git ? r : guards_git(plan, workspace, bare, reterr);
}

/* --- other mounts --- */

/* A repository lies at its top, or it is one. The top of what is a file is nothing. */
static bool guards_is_repository(const PlanMount *mount) {
        return mount->directory && (faccessat(mount->fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
                                    faccessat(mount->fd, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

/* Only holt's own file is left, or nothing if there is no directory for it. */
static void drop_guards(LaunchPlan *plan, bool directory) {
        size_t left = 0;

        for (size_t i = 0; i < plan->guards_count; i++)
                if (directory && streq(plan->guards[i].path, ".holt.json"))
                        plan->guards[left++] = plan->guards[i];
                else
                        free(plan->guards[i].path);
        plan->guards_count = left;
}

/* What is mounted read-write beside the workspace may be another repository of the caller's. */
static int guards_others(LaunchPlan *plan, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->others_count; i++) {
                LaunchPlan *other = &plan->others[i];
                const PlanMount *mount;

                other->mounts = plan->mounts;
                other->mounts_count = plan->mounts_count;
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
