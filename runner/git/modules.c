/* SPDX-License-Identifier: Apache-2.0 */
#include "git/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/entries.h"
#include "base/paths.h"
#include "git/config.h"
#include "git/repository.h"

enum { DEPTH_MAX = 64 }; /* A name may contain slashes, and a submodule may have submodules. */

typedef struct Modules {
        const char *top;
        StrList *found;
} Modules;

static int git_modules_find_in(const Modules *modules, int git_fd, const char *git,
                               unsigned int depth);
static int find_below(const Modules *modules, int dir_fd, const char *dir, unsigned int depth);

/* Adds the work tree of a submodule. git resolves core.worktree from the directory of the config
 * (git-config(1)). */
static int git_modules_add_tree(const Modules *modules, const char *git, const char *value) {
        _cleanup_free_ char *tree = path_join(git, value);
        const char *path;

        if (!tree)
                return -ENOMEM;
        if (!path_below(tree, modules->top) || streq(tree, modules->top))
                return 0;
        path = tree + (streq(modules->top, "/") ? 0 : strlen(modules->top)) + 1;
        return strlist_has(modules->found, path) ? 0 : strlist_add(modules->found, path);
}

/* Returns 1 if a config exists: then this is a git directory and not just a part of a name. */
static int add_module(const Modules *modules, int git_fd, const char *git) {
        _cleanup_(git_config_clear) GitConfig config = { 0 };
        _cleanup_free_ char *bytes = NULL;
        size_t size;
        int r = repository_read(git_fd, "config", GIT_CONFIG_SIZE_MAX, &bytes, &size);

        if (r == -ENOENT || r == -EBADMSG) /* A submodule may be called "config". */
                return 0;
        if (r < 0)
                return repository_is_closed(r) ? r : 1;
        r = git_config_read(bytes, size, &config) == -ENOMEM ? -ENOMEM : 0;
        for (size_t i = 0; r == 0 && i < config.worktrees.count; i++)
                r = git_modules_add_tree(modules, git, config.worktrees.items[i]);
        return r < 0 ? r : 1;
}

/* Looks at the directory `name` in dir: a git directory, or the first part of a submodule's
 * name. */
static int git_modules_look_at(const Modules *modules, int dir_fd, const char *dir,
                               const char *name, unsigned int depth) {
        _cleanup_close_ int fd = openat(dir_fd, name,
                                        O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_free_ char *path = NULL;
        int r;

        if (fd < 0)
                return 0;
        path = path_join(dir, name);
        r = path ? add_module(modules, fd, path) : -ENOMEM;
        if (r < 0)
                return r;
        return r == 1 ? git_modules_find_in(modules, fd, path, depth)
                      : find_below(modules, fd, path, depth);
}

static int find_below(const Modules *modules, int dir_fd, const char *dir, unsigned int depth) {
        _cleanup_close_ int fd = depth > DEPTH_MAX
                                         ? -ELOOP
                                         : openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _uninitialized_ Entries entries;
        const struct dirent *entry;
        int r = 0;

        if (fd < 0)
                return 0;
        entries_begin(&entries, fd);
        while (r == 0 && (entry = entries_next(&entries)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        r = git_modules_look_at(modules, fd, dir, entry->d_name, depth + 1);
        return r;
}

/* Finds the submodules of a git directory. */
static int git_modules_find_in(const Modules *modules, int git_fd, const char *git,
                               unsigned int depth) {
        _cleanup_close_ int fd = openat(git_fd, "modules",
                                        O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_free_ char *path = NULL;

        if (fd < 0)
                return 0;
        path = path_join(git, "modules");
        return path ? find_below(modules, fd, path, depth + 1) : -ENOMEM;
}

int git_modules_find(int git_fd, const char *git, const char *top, StrList *ret) {
        const Modules modules = { .top = top, .found = ret };

        return git_modules_find_in(&modules, git_fd, git, 0);
}
