/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the places in the workspace to which git configs outside of the command's reach lead. They
 * lead there by core.hooksPath, by includes, and by links among the hooks. Whoever can change such
 * a place can have git run code, just as with .git/hooks and .git/config. So these places are
 * guarded like them. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/entries.h"
#include "base/paths.h"
#include "base/sys.h"
#include "git/config.h"
#include "git/repository.h"
#include "guards/config-way.h"
#include "guards/guard.h"
#include "guards/guards.h"

enum {
        FILES_MAX = 200, /* Config files of one repository, included files counted. */
        DEPTH_MAX = 10,  /* git itself follows no more includes. */

        /* Limits for all repositories together. Even thousands of submodules stay below them. */
        FILES_LOOKED_MAX = 20000,
        BYTES_LOOKED_MAX = 100 << 20,
        DIRECTORIES_LOOKED_MAX = 10000,
        ENTRIES_LOOKED_MAX = 200000,
};

typedef struct Search {
        LaunchPlan *plan;
        const PlanMount *workspace;
        const char *top; /* Top directory of the work tree; hooks run there. */
        const char *git; /* The repository's directory, or NULL. */
        GuardsLooks *looks;
        unsigned files;
} Search;

/* Enforces the limits on the search. In an earlier run, the command may have made a repository that
 * contains the workspace, with an endless number of configs. */
static int check_looks(const Search *search, Error *reterr) {
        const GuardsLooks *looks = search->looks;
        int r;

        if (looks->files <= FILES_LOOKED_MAX && looks->bytes <= BYTES_LOOKED_MAX &&
            looks->directories.count <= DIRECTORIES_LOOKED_MAX &&
            looks->entries <= ENTRIES_LOOKED_MAX)
                return 0;
        r = error_set(reterr, ERROR_POLICY, 0,
                      "cannot find out where the git configs of %s lead: they have more files and "
                      "hooks than holt can check",
                      search->workspace->source);
        return error_cure(reterr, r, "To run without this protection: --protect none");
}

/* --- one path --- */

static int refuse_top(const char *path, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot protect %s: a git config names it as the directory of hooks, but "
                          "it is the whole workspace",
                          path);

        return error_cure(reterr, r,
                          "Keep hooks in a directory of their own. To run without this protection: "
                          "--protect none");
}

static int guard_one(const Search *search, const char *path, Error *reterr) {
        const char *inside = guards_within(search->workspace, path);

        if (inside && inside[0] == '\0')
                return refuse_top(path, reterr);
        return inside ? guards_add(search->plan, search->workspace, inside, reterr) : 0;
}

static int guard_path(const Search *search, const char *path, Error *reterr) {
        _cleanup_free_ char *real = NULL;
        int r = config_find_way(search->plan, search->workspace, path, &real, reterr);

        return r == 0 ? guard_one(search, real, reterr) : r;
}

/* Resolves a path as git does (git-config(1), "pathname"). The result may contain ".." and
 * symlinks, which are left to config_find_way(). */
static int config_resolve(const char *base, const char *value, char **ret, Error *reterr) {
        const char *home = getenv("HOME");
        const bool unknown = value[0] == '~' || str_starts(value, "%(prefix)/");
        int r;

        if (str_starts(value, "~/") && home && home[0] == '/')
                *ret = path_child(home, value + 2);
        else if (!unknown)
                *ret = value[0] == '/' ? strdup(value) : path_child(base, value);
        if (unknown && !*ret) {
                r = error_set(reterr, ERROR_POLICY, 0,
                              "cannot find out where the path %s in a git config leads", value);
                return error_cure(reterr, r,
                                  "Write it as an absolute path in that config. To run without "
                                  "this protection: --protect none");
        }
        return *ret ? 0 : error_oom(reterr);
}

/* Removes the mark of an optional path, which is guarded like any other. An empty value makes git
 * look at the root. */
static const char *value_path(const char *value) {
        static const char optional[] = ":(optional)";

        return str_starts(value, optional) ? value + strlen(optional) : value;
}

/* --- hooks --- */

/* Whether the file is a sample, which git never runs. */
static bool is_sample(const char *name) {
        const size_t length = strlen(name), suffix = strlen(".sample");

        return name[0] == '.' || (length > suffix && streq(name + length - suffix, ".sample"));
}

static int look_at_hook(const Search *search, int dir_fd, const char *dir, const char *name,
                        Error *reterr) {
        _cleanup_free_ char *path = NULL;
        char target[PATH_MAX];
        struct stat st;
        ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

        if (n < 0 && (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
                      st.st_nlink == 1))
                return 0;
        if (n < 0) {
                path = path_join(dir, name);
                return path ? guards_refuse_shared(search->workspace, path, reterr)
                            : error_oom(reterr);
        }
        target[n] = '\0';
        path = target[0] == '/' ? strdup(target) : path_child(dir, target);
        return path ? guard_path(search, path, reterr) : error_oom(reterr);
}

static int look_at_entries(const Search *search, int fd, const char *path, Error *reterr) {
        _uninitialized_ Entries entries;
        const struct dirent *entry;
        int r = 0;

        entries_begin(&entries, fd);
        while (r == 0 && (entry = entries_next(&entries))) {
                search->looks->entries++;
                r = check_looks(search, reterr);
                if (r == 0 && !is_sample(entry->d_name))
                        r = look_at_hook(search, fd, path, entry->d_name, reterr);
        }
        return r;
}

/* Follows the links in a directory of hooks. The directory itself is guarded or out of reach.
 * Relative links start at its real path. */
static int look_at_hooks(const Search *search, const char *path, Error *reterr) {
        StrList *looked = &search->looks->directories;
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char real[PATH_MAX];
        int r = 0;

        if (fd < 0)
                return 0;
        if (path_of_fd(fd, real) < 0)
                (void)snprintf(real, sizeof(real), "%s", path);
        if (!strlist_has(looked, real))
                r = strlist_add(looked, real) < 0 ? error_oom(reterr)
                                                  : look_at_entries(search, fd, real, reterr);
        return r;
}

static int guard_hooks(const Search *search, const char *path, Error *reterr) {
        int r = guard_path(search, path, reterr);

        return r == 0 ? look_at_hooks(search, path, reterr) : r;
}

/* Adds a directory of hooks. Since version 9, husky keeps its hooks in .husky/_, and each of them
 * runs the hook of the same name in .husky. So both directories are guarded. */
static int add_hooks_at(const Search *search, const char *base, const char *value, Error *reterr) {
        _cleanup_free_ char *path = NULL, *outer = NULL;
        int r = config_resolve(base, value, &path, reterr);
        const char *slash;

        if (r < 0 || !path)
                return r;
        slash = strrchr(path, '/');
        if (slash && streq(slash, "/_")) {
                outer = strndup(path, (size_t)(slash - path));
                r = outer ? guard_hooks(search, outer, reterr) : error_oom(reterr);
        }
        return r == 0 ? guard_hooks(search, path, reterr) : r;
}

/* Adds a value of core.hooksPath. git runs some hooks in its own directory, such as those of a push
 * to the repository. So a relative path is tried from there too. */
static int add_hooks(const Search *search, const char *value, Error *reterr) {
        int r;

        value = value_path(value);
        if (value[0] == '\0')
                return 0;
        r = add_hooks_at(search, search->top, value, reterr);
        if (r < 0 || !search->git || value[0] == '/' || value[0] == '~')
                return r;
        return add_hooks_at(search, search->git, value, reterr);
}

/* --- configs --- */

static int refuse_config(const char *path, int errnum, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot find out where the git config %s leads: %s", path,
                          errnum == EBADMSG ? "git itself could not read it"
                                            : "it contains or includes more than holt reads");

        return error_cure(reterr, r,
                          "Correct it: git config --list shows the line. To run without this "
                          "protection: --protect none");
}

/* Reads one config. A config that the caller cannot read is skipped, since the caller's git cannot
 * read it either. */
static int read_config(const Search *search, const char *path, GitConfig *ret, Error *reterr) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r = repository_read_fd(search->plan, open(path, O_PATH | O_CLOEXEC),
                                   GIT_CONFIG_SIZE_MAX, &text, &size);

        search->looks->files++;
        search->looks->bytes += size;
        if (check_looks(search, reterr) < 0)
                return -EINVAL;
        if (r == 0)
                r = git_config_read(text, size, ret);
        if (repository_is_closed(r))
                return guards_repository_closed(search->workspace, r, reterr);
        return r == -EBADMSG || r == -E2BIG ? refuse_config(path, -r, reterr) : 0;
}

static int config_follow(Search *search, const char *path, unsigned depth, Error *reterr);

static int config_follow_include(Search *search, const char *directory, const char *value,
                                 unsigned depth, Error *reterr) {
        _cleanup_free_ char *path = NULL;
        int r = config_resolve(directory, value_path(value), &path, reterr);

        if (r == 0)
                r = guard_path(search, path, reterr);
        return r < 0 ? r : config_follow(search, path, depth, reterr);
}

static int config_follow(Search *search, const char *path, unsigned depth, Error *reterr) {
        _cleanup_(git_config_clear) GitConfig config = { 0 };
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *directory = strndup(path, slash ? (size_t)(slash - path) : 0);
        int r;

        if (!directory)
                return error_oom(reterr);
        if (++search->files > FILES_MAX || depth > DEPTH_MAX)
                return refuse_config(path, E2BIG, reterr);
        r = read_config(search, path, &config, reterr);
        for (size_t i = 0; r == 0 && i < config.hooks.count; i++)
                r = add_hooks(search, config.hooks.items[i], reterr);
        for (size_t i = 0; r == 0 && i < config.includes.count; i++)
                r = config_follow_include(search, directory, config.includes.items[i], depth + 1,
                                          reterr);
        return r;
}

/* --- repositories --- */

/* Follows the entry `name` of a repository's directory if it is a symlink, because it may lead back
 * into the workspace. Any other entry is protected by the policy already, or out of reach. *ret is
 * owned by the caller, and NULL if the entry does not exist. */
static int look_at_own(const Search *search, const char *directory, const char *name, char **ret,
                       Error *reterr) {
        _cleanup_free_ char *path = path_join(directory, name);
        struct stat st;
        int r = 0;

        if (!path)
                return error_oom(reterr);
        if (lstat(path, &st) < 0)
                return 0;
        if (S_ISLNK(st.st_mode))
                r = guard_path(search, path, reterr);
        *ret = r == 0 ? TAKE_PTR(path) : NULL;
        return r;
}

static int follow_own(Search *search, const char *directory, const char *name, Error *reterr) {
        _cleanup_free_ char *path = NULL;
        int r = look_at_own(search, directory, name, &path, reterr);

        return path ? config_follow(search, path, 0, reterr) : r;
}

/* Follows a config of the caller's. It may lie in the workspace, for example if the caller keeps
 * all settings in one project. */
static int follow_caller(Search *search, const char *directory, const char *name, Error *reterr) {
        _cleanup_free_ char *path = path_join(directory, name);
        int r = path ? guard_path(search, path, reterr) : error_oom(reterr);

        return r == 0 ? config_follow(search, path, 0, reterr) : r;
}

/* Follows the configs that apply to every repository. A variable in the environment replaces
 * another config (git(1)), but a git that runs elsewhere may not have that variable. So all are
 * followed. */
static int follow_global(Search *search, Error *reterr) {
        const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
        const bool has_xdg = xdg && xdg[0] == '/';
        const char *const places[][2] = {
                { "/etc", "gitconfig" },
                { home, ".gitconfig" },
                { has_xdg ? xdg : home, has_xdg ? "git/config" : ".config/git/config" },
                { getenv("GIT_CONFIG_SYSTEM"), "" },
                { getenv("GIT_CONFIG_GLOBAL"), "" },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(places); i++)
                if (places[i][0] && places[i][0][0] == '/')
                        r = follow_caller(search, places[i][0], places[i][1], reterr);
        return r;
}

static int follow_repository(Search *search, const char *directory, Error *reterr) {
        _cleanup_free_ char *hooks = NULL;
        int r = follow_own(search, directory, "config", reterr);

        if (r == 0)
                r = follow_own(search, directory, "config.worktree", reterr);
        if (r == 0)
                r = look_at_own(search, directory, "hooks", &hooks, reterr);
        return hooks ? look_at_hooks(search, hooks, reterr) : r;
}

static int refuse_common(const Search *search, const char *common, Error *reterr) {
        int r = error_set(
                reterr, ERROR_POLICY, 0,
                "cannot protect the repository of %s: its commondir leads to %s in the workspace",
                search->workspace->source, common);

        return error_cure(reterr, r,
                          "Keep the repository outside of the workspace or in .git itself. To run "
                          "without this protection: --protect none");
}

/* Follows the repository to which a worktree belongs. */
static int follow_common(Search *search, const char *directory, Error *reterr) {
        _cleanup_free_ char *file = path_join(directory, "commondir"), *text = NULL;
        _cleanup_free_ char *common = NULL, *real = NULL;
        const char *inside;
        size_t size;
        int r = file ? repository_read_fd(search->plan, open(file, O_PATH | O_CLOEXEC), PATH_MAX,
                                          &text, &size)
                     : -ENOMEM;

        if (r < 0)
                return repository_is_closed(r)
                               ? guards_repository_closed(search->workspace, r, reterr)
                               : 0;
        text[strcspn(text, "\r\n")] = '\0';
        common = text[0] == '/' ? strdup(text) : path_child(directory, text);
        if (!common)
                return error_oom(reterr);
        r = config_find_way(search->plan, search->workspace, common, &real, reterr);
        if (r < 0)
                return r;
        inside = guards_within(search->workspace, real);
        if (inside && !guard_holds(search->plan, inside) && !streq(inside, ".git"))
                return refuse_common(search, common, reterr);
        return follow_repository(search, real, reterr);
}

static int follow_both(Search *search, const char *directory, Error *reterr) {
        int r = follow_repository(search, directory, reterr);

        return r == 0 ? follow_common(search, directory, reterr) : r;
}

/* Finds the directory of the repository whose .git is at path in the workspace. *ret is a path of
 * the host, because no path may lead to the mount that the fd is from. *ret is NULL if no
 * repository exists there. */
static int find_directory(const PlanMount *workspace, const char *path, char **ret, Error *reterr) {
        _cleanup_close_ int git_fd = repository_open(workspace->fd, workspace->real, path, ret);

        if (git_fd == -EAGAIN)
                return guards_repository_closed(workspace, git_fd, reterr);
        if (git_fd >= 0 && !*ret) {
                *ret = path_join(workspace->real, path);
                return *ret ? 0 : error_oom(reterr);
        }
        if (git_fd < 0) {
                free(*ret);
                *ret = NULL;
        }
        return 0;
}

static int guards_own(Search *search, bool bare, bool *found, Error *reterr) {
        const PlanMount *workspace = search->workspace;
        _cleanup_free_ char *directory = NULL;
        int r = find_directory(workspace, ".git", &directory, reterr);

        search->top = workspace->real;
        search->git = directory ? directory : bare ? workspace->real : NULL;
        *found = search->git;
        if (r == 0 && *found)
                r = follow_both(search, search->git, reterr);
        /* Followed even without a repository: another repository of the caller's uses these
         * configs. */
        return r == 0 ? follow_global(search, reterr) : r;
}

/* Whether the repository belongs to another user. Such a user could make an unreadable repository
 * in /tmp, for example, and then nobody could run anything below it. git itself ignores it
 * (safe.directory of git-config(1)). */
static bool is_strangers(int git_fd) {
        struct stat st;

        return fstat(git_fd, &st) == 0 && st.st_uid != 0 && st.st_uid != geteuid();
}

static int guards_above(Search *search, bool *found, Error *reterr) {
        _cleanup_free_ char *above = strdup(search->workspace->real);
        int r = above ? 0 : error_oom(reterr);

        while (above && r == 0) {
                _cleanup_close_ int git_fd = repository_open_above(above);
                char directory[PATH_MAX];

                if (git_fd == -EAGAIN)
                        return guards_repository_closed(search->workspace, git_fd, reterr);
                if (git_fd < 0 || path_of_fd(git_fd, directory) < 0)
                        return 0;
                *found = true;
                search->top = above[0] ? above : "/";
                search->git = directory;
                r = follow_both(search, directory, reterr);
                if (r < 0 && r != -ENOMEM && is_strangers(git_fd))
                        r = 0;
                if (r == 0)
                        r = follow_global(search, reterr);
                search->git = NULL;
        }
        return r;
}

int guards_config(LaunchPlan *plan, const PlanMount *workspace, bool bare, GuardsLooks *looks,
                  bool *ret_found, Error *reterr) {
        Search search = { .plan = plan, .workspace = workspace, .looks = looks };
        bool found = false;
        int r = guards_own(&search, bare, &found, reterr);

        search.git = NULL;
        if (r == 0)
                r = guards_above(&search, &found, reterr);
        *ret_found = found;
        return r;
}

/* git asks a submodule for its state by starting a git there, which runs the hook
 * post-index-change. */
int guards_config_of(LaunchPlan *plan, const PlanMount *workspace, const char *path,
                     GuardsLooks *looks, Error *reterr) {
        _cleanup_free_ char *directory = NULL, *git = path_join(workspace->real, path);
        _cleanup_free_ char *top = git ? path_join(git, "..") : NULL;
        Search search = { .plan = plan, .workspace = workspace, .top = top, .looks = looks };
        int r = top ? find_directory(workspace, path, &directory, reterr) : error_oom(reterr);

        search.git = directory;
        if (r == 0 && directory)
                r = follow_both(&search, directory, reterr);
        return r == 0 && directory ? follow_global(&search, reterr) : r;
}
