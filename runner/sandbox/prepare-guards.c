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

#include "base/paths.h"
#include "base/sys.h"
#include "sandbox/guard.h"
#include "sandbox/prepare.h"
#include "sandbox/repository.h"

enum { GUARDS_MAX = 20000 };

/* --- one path --- */

static int open_guarded(int workspace_fd, const char *path) {
        return sys_open_beneath(workspace_fd, path, O_PATH | O_NOFOLLOW);
}

/* The .git of a worktree or a submodule is a file that names another directory: where a part of the
 * path is a file, that file is what has to stay. */
static int guard_file(int workspace_fd, char *path, struct stat *ret) {
        for (size_t i = 1; path[i]; i++) {
                _cleanup_close_ int fd = FD_NONE;

                if (path[i] != '/')
                        continue;
                path[i] = '\0';
                fd = open_guarded(workspace_fd, path);
                if (fd < 0)
                        return -errno;
                if (fstat(fd, ret) == 0 && !S_ISDIR(ret->st_mode))
                        return 0;
                path[i] = '/';
        }
        return -ENOTDIR;
}

/* path, as the workspace has it: "" for the workspace itself, NULL for what lies elsewhere. */
static const char *within(const PlanMount *workspace, const char *path) {
        const char *const names[] = { workspace->source, workspace->real };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (path_below(path, names[i])) {
                        path += streq(names[i], "/") ? 0 : strlen(names[i]);
                        return *path == '/' ? path + 1 : path;
                }
        return NULL;
}

/* Where the directory that a .git file names lies in the workspace itself, by whatever links, and
 * nothing protects it there, the command could write in it what the host's git runs. */
static int check_git_file(const LaunchPlan *plan, const PlanMount *workspace, const char *path,
                          Error *reterr) {
        _cleanup_free_ char *leads = NULL;
        _cleanup_close_ int git_fd = repository_open(workspace->fd, workspace->source, path,
                                                     &leads);
        const char *inside = leads ? within(workspace, leads) : NULL;
        char real[PATH_MAX];
        int r;

        if (!inside && git_fd >= 0 && path_of_fd(git_fd, real) == 0)
                inside = within(workspace, real);
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

static int prepare_guard(const LaunchPlan *plan, PlanGuard *guard, const PlanMount *workspace,
                         Error *reterr) {
        _cleanup_close_ int fd = open_guarded(workspace->fd, guard->path);
        struct stat st;
        int r = fd < 0 ? -errno : fstat(fd, &st) < 0 ? -errno : 0;

        if (r == 0 && S_ISLNK(st.st_mode))
                return refuse_link(guard, workspace, reterr);
        /* git enters no submodule through a link or a file. */
        if (guard->submodule && (r == -ELOOP || r == -ENOTDIR))
                return 0;
        if (r == -ELOOP)
                return refuse_link(guard, workspace, reterr);
        if (r == -ENOTDIR) {
                r = guard_file(workspace->fd, guard->path, &st);
                if (r == 0 && check_git_file(plan, workspace, guard->path, reterr) < 0)
                        return -EINVAL;
        } else if (r == 0 && guard->submodule && S_ISREG(st.st_mode) &&
                   check_git_file(plan, workspace, guard->path, reterr) < 0) {
                return -EINVAL;
        }
        if (r < 0 && r != -ENOENT)
                return error_set(reterr, ERROR_POLICY, -r, "cannot protect %s in %s", guard->path,
                                 workspace->source);
        guard->pinned = r == 0;
        guard->device = r == 0 ? st.st_dev : 0;
        guard->inode = r == 0 ? st.st_ino : 0;
        return 0;
}

/* --- submodules --- */

static int reserve_guards(LaunchPlan *plan, size_t more, Error *reterr) {
        PlanGuard *guards;
        int r;

        if (plan->guards_count + more > GUARDS_MAX) {
                r = error_set(reterr, ERROR_POLICY, 0,
                              "cannot protect more than %d submodules of the workspace",
                              GUARDS_MAX);
                return error_cure(reterr, r, "Give protection up for this run: --protect none");
        }
        guards = reallocarray(plan->guards, plan->guards_count + more + 1, sizeof(*guards));
        if (!guards)
                return error_oom(reterr);
        plan->guards = guards;
        return 0;
}

/* Of links, which are paths below a work tree, those that lie below skip there; outer is the path
 * of what is left in the workspace, "" or with a slash at the end. */
static int add_links(LaunchPlan *plan, const StrList *links, const char *skip, const char *outer,
                     Error *reterr) {
        const size_t length = strlen(skip);
        int r = reserve_guards(plan, links->count, reterr);

        for (size_t i = 0; r == 0 && i < links->count; i++) {
                const char *link = links->items[i];
                char *path;

                if (!str_starts(link, skip) || link[length] == '\0')
                        continue;
                path = str_format("%s%s/.git", outer, link + length);
                if (!path)
                        return error_oom(reterr);
                plan->guards[plan->guards_count++] = (PlanGuard){ .path = path, .submodule = true };
        }
        return r;
}

/* An index that git did not write tells nothing; the command's own is another matter (guard.c). */
static int add_links_of(LaunchPlan *plan, int git_fd, const char *skip, const char *outer,
                        IndexState *ret_state, Error *reterr) {
        _cleanup_(strlist_clear) StrList links = { 0 };
        int r = repository_links(git_fd, &links, ret_state);

        if (r == -ENOMEM)
                return error_oom(reterr);
        return r < 0 ? 0 : add_links(plan, &links, skip, outer, reterr);
}

/* Those of every repository that the workspace lies in: a .git between, which an earlier run may
 * have made, need not be one to git. */
static int add_from_above(LaunchPlan *plan, const PlanMount *workspace, Error *reterr) {
        _cleanup_free_ char *tree = strdup(workspace->real);
        int r = tree ? 0 : error_oom(reterr);

        while (r == 0) {
                _cleanup_close_ int git_fd = repository_open_above(tree);
                _cleanup_free_ char *below = NULL;
                _cleanup_(index_state_clear) IndexState ignored = { 0 };

                if (git_fd < 0)
                        return 0;
                below = str_format("%s/", workspace->real + strlen(tree) + 1);
                if (!below)
                        return error_oom(reterr);
                r = add_links_of(plan, git_fd, below, "", &ignored, reterr);
        }
        return r;
}

/* Of the sparse directories those where something is: guard.c lets them be. */
static void keep_there(StrList *trees, const PlanMount *workspace) {
        size_t kept = 0;

        for (size_t i = 0; i < trees->count; i++)
                if (repository_tree_there(workspace->fd, trees->items[i]))
                        trees->items[kept++] = trees->items[i];
                else
                        free(trees->items[i]);
        trees->count = kept;
}

/* The submodules of the repository that the workspace is, and of those that it lies in. */
static int add_submodules(Launch *launch, const PlanMount *workspace, Error *reterr) {
        _cleanup_close_ int git_fd = repository_open(workspace->fd, workspace->source, ".git",
                                                     NULL);
        int r = git_fd < 0 ? 0 : add_links_of(launch->plan, git_fd, "", "", &launch->index, reterr);

        keep_there(&launch->index.trees, workspace);
        return r < 0 ? r : add_from_above(launch->plan, workspace, reterr);
}

/* Those of a submodule: git goes on from there. */
static int add_nested(LaunchPlan *plan, const PlanMount *workspace, size_t index, Error *reterr) {
        const char *path = plan->guards[index].path;
        _cleanup_close_ int git_fd = repository_open(workspace->fd, workspace->source, path, NULL);
        _cleanup_free_ char *outer = strndup(path, strlen(path) - strlen(".git"));
        _cleanup_(index_state_clear) IndexState ignored = { 0 };

        if (!outer)
                return error_oom(reterr);
        return git_fd < 0 ? 0 : add_links_of(plan, git_fd, "", outer, &ignored, reterr);
}

/* --- a bare repository --- */

/* As gitrepository-layout(5) has it, and git looks for it. */
static bool is_bare(int workspace_fd) {
        static const char *const parts[] = { "HEAD", "objects", "refs" };

        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                if (faccessat(workspace_fd, parts[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        return false;
        return true;
}

/* What is protected in .git lies at the top then. */
static int add_bare(LaunchPlan *plan, Error *reterr) {
        const size_t asked = plan->guards_count;
        int r = reserve_guards(plan, asked, reterr);

        for (size_t i = 0; r == 0 && i < asked; i++) {
                char *path;

                if (!str_starts(plan->guards[i].path, ".git/"))
                        continue;
                path = strdup(plan->guards[i].path + strlen(".git/"));
                if (!path)
                        return error_oom(reterr);
                plan->guards[plan->guards_count++] = (PlanGuard){ .path = path };
        }
        return r;
}

/* --- together --- */

/* Where .git is a file, guards of what would be in it all end at that file. */
static void drop_repeated(LaunchPlan *plan, size_t *index) {
        PlanGuard *guard = &plan->guards[*index];

        for (size_t i = 0; guard->pinned && i < *index; i++)
                if (plan->guards[i].pinned && streq(plan->guards[i].path, guard->path)) {
                        free(guard->path);
                        memmove(guard, guard + 1, (--plan->guards_count - *index) * sizeof(*guard));
                        --*index;
                        return;
                }
}

/* The list grows while it is walked. */
static int prepare_submodules(Launch *launch, const PlanMount *workspace, Error *reterr) {
        LaunchPlan *plan = launch->plan;
        const size_t asked = plan->guards_count;
        int r = add_submodules(launch, workspace, reterr);

        for (size_t i = asked; r == 0 && i < plan->guards_count; i++) {
                r = prepare_guard(plan, &plan->guards[i], workspace, reterr);
                if (r == 0 && plan->guards[i].pinned)
                        r = add_nested(plan, workspace, i, reterr);
        }
        return r;
}

int prepare_guards(Launch *launch, Error *reterr) {
        LaunchPlan *plan = launch->plan;
        const PlanMount *workspace = plan_workspace(plan);
        const bool submodules = plan_protects_git(plan);
        int r = 0;

        if (!workspace)
                return 0;
        launch->workspace_fd = workspace->fd;
        if (submodules && is_bare(workspace->fd))
                r = add_bare(plan, reterr);
        for (size_t i = 0; r == 0 && i < plan->guards_count; i++) {
                r = prepare_guard(plan, &plan->guards[i], workspace, reterr);
                if (r == 0)
                        drop_repeated(plan, &i);
        }
        return r < 0 || !submodules ? r : prepare_submodules(launch, workspace, reterr);
}
