/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the submodules that git would enter now, by the gitlinks of all indexes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "guards/guard-internal.h"

enum { WORK_GUARDS = 64 }; /* Comparing a path with this many guards is one unit of work. */

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
static void sweep_set_index_aside(Sweep *sweep) {
        _cleanup_close_ int git_fd = openat(sweep->tree.fd, ".git",
                                            O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (git_fd >= 0)
                sweep_set_aside(sweep, git_fd, ".git/", "index", "index");
}

/* Sets the index aside if it is not a valid index any more, or if something is in the place of a
 * sparse directory. The command may have added a repository of its own to the index. No sparse
 * directory existed at the start (guards.c), and only git can tell which gitlinks are in a tree
 * that the command made. */
static void sweep_index(Sweep *sweep) {
        if (repository_links(&sweep->tree, ".git", &sweep->found) == 0 && !has_tree(sweep))
                return;
        repository_links_clear(&sweep->found);
        sweep_set_index_aside(sweep);
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

/* Looks at one repository that git enters. A pinned repository is as it was at the start, and git
 * may enter further ones from there. */
static void sweep_link(Sweep *sweep, size_t index, size_t *next) {
        _cleanup_free_ char *path = str_format("%s/.git", sweep->found.links.items[index]);
        const PlanGuard link = { .path = path, .submodule = true };

        if (!path)
                return sweep_note(sweep, -ENOMEM);
        if (!guard_is_pinned(sweep, path, next))
                sweep_guard(sweep, &link);
        else {
                int r = repository_links(&sweep->tree, path, &sweep->found);

                sweep_note(sweep, repository_is_closed(r) || r == -E2BIG ? r : 0);
        }
}

/* Sets aside the entry at a sparse directory, because its index is out of reach. */
static void sweep_tree(Sweep *sweep, char *path) {
        const PlanGuard tree = { .path = path, .submodule = true };

        if (!streq(path, ".") && !guard_holds(sweep->plan, path))
                sweep_guard(sweep, &tree);
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
                        return sweep_set_index_aside(sweep);
                sweep_link(sweep, i, next);
        }
}

/* Sweeps the gitlinks of repositories above and of submodules, whose indexes the command cannot
 * write. has_tree() has checked the workspace's own sparse directories already. */
static void sweep_other_links(Sweep *sweep, size_t links, size_t trees, size_t *next) {
        const RepositoryLinks *found = &sweep->found;

        for (size_t i = links; i < found->links.count; i++) {
                if (!guard_goes_on(sweep, found->links.items[i]))
                        return sweep_note(sweep, -E2BIG);
                sweep_link(sweep, i, next);
        }
        for (size_t i = trees; i < found->trees.count; i++) {
                if (!guard_goes_on(sweep, found->trees.items[i]))
                        return sweep_note(sweep, -E2BIG);
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
void sweep_submodules(Sweep *sweep, size_t *more) {
        RepositoryLinks *found = &sweep->found;
        const size_t before = sweep->plan->links_work;
        size_t next = 0, own, trees;

        found->plan = sweep->plan;
        found->work = 0;
        found->work_max = before + *more + 1;
        sweep_index(sweep);
        own = found->links.count;
        trees = found->trees.count;
        spare_time(sweep);
        sweep_note(sweep, repository_links_above(&sweep->tree, found));
        sweep_own_links(sweep, own, &next);
        spare_time(sweep);
        sweep_other_links(sweep, own, trees, &next);
        if (found->work > before)
                *more -= found->work - before < *more ? found->work - before : *more;
        repository_links_clear(found);
}
