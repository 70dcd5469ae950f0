/* SPDX-License-Identifier: Apache-2.0 */
/* Where git's configs lead from outside of the command's reach back into the workspace: by
 * core.hooksPath, by includes, and by links among the hooks. What is there is as good as .git/hooks
 * and .git/config to whoever can change it, and is guarded as they are. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"
#include "guards/git-config.h"
#include "guards/guard.h"
#include "guards/guards.h"
#include "guards/repository.h"

enum {
        FILES_MAX = 200, /* of one repository, with what they include */
        DEPTH_MAX = 10,  /* git goes no further, either */
        LINKS_MAX = 40,  /* on one way: the kernel's own limit */

        /* Of all repositories: thousands of submodules have no more. */
        FILES_LOOKED_MAX = 20000,
        BYTES_LOOKED_MAX = 100 << 20,
        DIRECTORIES_LOOKED_MAX = 10000,
        ENTRIES_LOOKED_MAX = 200000,
};

typedef struct Search {
        LaunchPlan *plan;
        const PlanMount *workspace;
        const char *top; /* of the work tree: hooks run there */
        const char *git; /* its directory, or NULL */
        GuardsLooks *looks;
        unsigned files;
} Search;

/* The command may have made a repository in an earlier run, with the workspace or a part of it in
 * there, whose configs have no end. */
static int check_looks(const Search *search, Error *reterr) {
        const GuardsLooks *looks = search->looks;
        int r;

        if (looks->files <= FILES_LOOKED_MAX && looks->bytes <= BYTES_LOOKED_MAX &&
            looks->directories.count <= DIRECTORIES_LOOKED_MAX &&
            looks->entries <= ENTRIES_LOOKED_MAX)
                return 0;
        r = error_set(
                reterr, ERROR_POLICY, 0,
                "cannot tell where the git configs of %s lead: with their hooks they are more "
                "than holt looks at",
                search->workspace->source);
        return error_cure(reterr, r, "Give protection up for this run: --protect none");
}

/* --- one path --- */

/* What the command could put in the place of a part of the way, git would follow. */
static int refuse_way(const char *path, const char *why, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot protect what a git config leads to: the way goes through %s in "
                          "the workspace, %s",
                          path, why);

        return error_cure(
                reterr, r,
                "Write the real path there, without a link and \"..\", or give protection "
                "up for this run: --protect none");
}

/* A directory can't be moved that a guard is mounted in. */
static bool is_fixed(const LaunchPlan *plan, const char *inside) {
        if (inside[0] == '\0' || guard_holds(plan, inside))
                return true;
        for (size_t i = 0; i < plan->guards_count; i++)
                if (plan->guards[i].pinned && path_below(plan->guards[i].path, inside))
                        return true;
        return false;
}

typedef struct Way {
        const Search *search;
        char *at;   /* how far it goes: the kernel's path, "" for the root */
        char *rest; /* and what is left */
        unsigned links;
} Way;

static int go_up(Way *way, Error *reterr) {
        const char *inside = guards_within(way->search->workspace, way->at);
        char *slash = strrchr(way->at, '/');

        if (inside && !is_fixed(way->search->plan, inside))
                return refuse_way(way->at, "and then through \"..\"", reterr);
        if (slash)
                *slash = '\0';
        return 0;
}

/* Takes what the link at path, the next part, says. */
static int go_through(Way *way, const char *path, const char *target, Error *reterr) {
        const char *inside = guards_within(way->search->workspace, path);
        char *rest;

        if (inside && !guard_holds(way->search->plan, inside))
                return refuse_way(path, "it is a link", reterr);
        rest = str_format("%s/%s", target, way->rest);
        if (!rest)
                return error_oom(reterr);
        free(way->rest);
        way->rest = rest;
        if (target[0] == '/')
                way->at[0] = '\0';
        return 0;
}

/* What is not there is a part like any other: the command may make it. */
static int config_go_on(Way *way, const char *part, Error *reterr) {
        _cleanup_free_ char *path = NULL;
        char target[PATH_MAX];
        ssize_t n;

        if (part[0] == '\0' || streq(part, "."))
                return 0;
        if (streq(part, ".."))
                return go_up(way, reterr);
        path = str_format("%s/%s", way->at, part);
        if (!path)
                return error_oom(reterr);
        n = readlink(path, target, sizeof(target) - 1);
        if (n > 0 && way->links++ < LINKS_MAX) {
                target[n] = '\0';
                return go_through(way, path, target, reterr);
        }
        free(way->at);
        way->at = TAKE_PTR(path);
        return 0;
}

static int go_all(Way *way, Error *reterr) {
        int r = 0;

        if (!way->at || !way->rest)
                return error_oom(reterr);
        while (r == 0 && way->rest[0] != '\0') {
                const size_t length = strcspn(way->rest, "/");
                _cleanup_free_ char *part = strndup(way->rest, length);
                char *rest = way->rest + length;

                if (!part)
                        return error_oom(reterr);
                rest += strspn(rest, "/");
                memmove(way->rest, rest, strlen(rest) + 1);
                r = config_go_on(way, part, reterr);
        }
        return r;
}

/* Whether path is the kernel's own already, as far as it is there: no link is on the way, and no
 * "..". Most are, and one call tells. */
static bool config_is_plain(const char *path) {
        const size_t length = strlen(path);
        int fd;

        if (strstr(path, "/../") || (length >= 3 && streq(path + length - 3, "/..")))
                return false;
        fd = sys_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0,
                         RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        if (fd < 0)
                return errno == ENOENT;
        fd_close(fd);
        return true;
}

/* The kernel's path of what is at path, or of where it would be, in *ret. It is refused where the
 * command could have git end elsewhere: no link on the way may lie in the workspace, but where
 * nobody can change it, nor a directory that ".." is behind. */
static int find_way(const Search *search, const char *path, char **ret, Error *reterr) {
        Way way = { .search = search };
        int r;

        if (config_is_plain(path)) {
                *ret = path_join("/", path);
                return *ret ? 0 : error_oom(reterr);
        }
        way.at = strdup("");
        way.rest = strdup(path);
        r = go_all(&way, reterr);
        if (r == 0)
                *ret = way.at[0] ? TAKE_PTR(way.at) : strdup("/");
        free(way.at);
        free(way.rest);
        return r < 0 || *ret ? r : error_oom(reterr);
}

static int refuse_top(const char *path, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot protect %s: a git config has it, the whole workspace, for hooks",
                          path);

        return error_cure(reterr, r,
                          "Keep hooks in a directory of their own, or give protection up for this "
                          "run: --protect none");
}

static int guard_one(const Search *search, const char *path, Error *reterr) {
        const char *inside = guards_within(search->workspace, path);

        if (inside && inside[0] == '\0')
                return refuse_top(path, reterr);
        return inside ? guards_add(search->plan, search->workspace, inside, reterr) : 0;
}

static int guard_path(const Search *search, const char *path, Error *reterr) {
        _cleanup_free_ char *real = NULL;
        int r = find_way(search, path, &real, reterr);

        return r == 0 ? guard_one(search, real, reterr) : r;
}

/* As git does (git-config(1), "pathname"). What "..", by whatever links, leads to is left to who
 * opens it. */
static int config_resolve(const char *base, const char *value, char **ret, Error *reterr) {
        const char *home = getenv("HOME");
        const bool unknown = value[0] == '~' || str_starts(value, "%(prefix)/");
        int r;

        if (str_starts(value, "~/") && home && home[0] == '/')
                *ret = str_format("%s/%s", home, value + 2);
        else if (!unknown)
                *ret = value[0] == '/' ? strdup(value) : str_format("%s/%s", base, value);
        if (unknown && !*ret) {
                r = error_set(reterr, ERROR_POLICY, 0,
                              "cannot tell where a git config leads by the path %s", value);
                return error_cure(reterr, r,
                                  "Write it out there from the root, or give protection up for "
                                  "this run: --protect none");
        }
        return *ret ? 0 : error_oom(reterr);
}

/* One that need not be there is a path like any other. Without any git looks at the root. */
static const char *value_path(const char *value) {
        static const char optional[] = ":(optional)";

        return str_starts(value, optional) ? value + strlen(optional) : value;
}

/* --- hooks --- */

/* What git never runs. */
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
        path = target[0] == '/' ? strdup(target) : str_format("%s/%s", dir, target);
        return path ? guard_path(search, path, reterr) : error_oom(reterr);
}

static int look_at_entries(const Search *search, DIR *dir, const char *path, Error *reterr) {
        struct dirent *entry;
        int r = 0;

        while (r == 0 && (entry = readdir(dir))) {
                search->looks->entries++;
                r = check_looks(search, reterr);
                if (r == 0 && !is_sample(entry->d_name))
                        r = look_at_hook(search, dirfd(dir), path, entry->d_name, reterr);
        }
        return r;
}

/* The directory itself is guarded, or out of reach. Links in it lead from where it really is. */
static int look_at_hooks(const Search *search, const char *path, Error *reterr) {
        StrList *looked = &search->looks->directories;
        DIR *dir = opendir(path);
        char real[PATH_MAX];
        int r = 0;

        if (!dir)
                return 0;
        if (path_of_fd(dirfd(dir), real) < 0)
                (void)snprintf(real, sizeof(real), "%s", path);
        if (!strlist_has(looked, real))
                r = strlist_add(looked, real) < 0 ? error_oom(reterr)
                                                  : look_at_entries(search, dir, real, reterr);
        (void)closedir(dir);
        return r;
}

static int guard_hooks(const Search *search, const char *path, Error *reterr) {
        int r = guard_path(search, path, reterr);

        return r == 0 ? look_at_hooks(search, path, reterr) : r;
}

/* Those of husky since version 9 lie in .husky/_, and each runs the one of its name in .husky. */
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

/* git runs some in its own directory, as those of a push to it. */
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
        int r = error_set(reterr, ERROR_POLICY, 0, "cannot tell where the git config %s leads: %s",
                          path,
                          errnum == EBADMSG ? "it is none that git reads"
                                            : "it has, or includes, more than holt reads");

        return error_cure(reterr, r,
                          "Correct it (git config --list says where), or give protection up for "
                          "this run: --protect none");
}

/* What the caller can't read the caller's git can't, either. */
static int read_config(const Search *search, const char *path, GitConfig *ret, Error *reterr) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r = repository_read(AT_FDCWD, path, GIT_CONFIG_SIZE_MAX, &text, &size);

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

static int config_follow(Search *search, const char *path, unsigned depth, Error *reterr) {
        _cleanup_(git_config_clear) GitConfig config = { 0 };
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *directory = strndup(path, slash ? (size_t)(slash - path) : 0);
        int r = directory ? 0 : error_oom(reterr);

        if (r == 0 && (++search->files > FILES_MAX || depth > DEPTH_MAX))
                return refuse_config(path, E2BIG, reterr);
        if (r == 0)
                r = read_config(search, path, &config, reterr);
        for (size_t i = 0; r == 0 && i < config.hooks.count; i++)
                r = add_hooks(search, config.hooks.items[i], reterr);
        for (size_t i = 0; r == 0 && i < config.includes.count; i++) {
                _cleanup_free_ char *included = NULL;

                r = config_resolve(directory, value_path(config.includes.items[i]), &included,
                                   reterr);
                if (r == 0)
                        r = guard_path(search, included, reterr);
                if (r == 0)
                        r = config_follow(search, included, depth + 1, reterr);
        }
        return r;
}

/* --- repositories --- */

/* What a repository has of its own is protected as the policy says, or out of reach: but a link may
 * lead back. *ret is owned by the caller, NULL where nothing is there. */
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

/* Of the caller's, which may lie among the files of a project, as with those who keep all of their
 * settings in one. */
static int follow_caller(Search *search, const char *directory, const char *name, Error *reterr) {
        _cleanup_free_ char *path = path_join(directory, name);
        int r = path ? guard_path(search, path, reterr) : error_oom(reterr);

        return r == 0 ? config_follow(search, path, 0, reterr) : r;
}

/* What is asked of every repository: what the environment names is asked in place of another
 * (git(1)), and a git elsewhere may not have it. */
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
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot protect the repository of %s: its commondir leads to %s, in the "
                          "workspace",
                          search->workspace->source, common);

        return error_cure(reterr, r,
                          "Keep the repository outside of the workspace or in .git itself, or give "
                          "protection up for this run: --protect none");
}

/* The one that a worktree is of. */
static int follow_common(Search *search, const char *directory, Error *reterr) {
        _cleanup_free_ char *file = path_join(directory, "commondir"), *text = NULL;
        _cleanup_free_ char *common = NULL, *real = NULL;
        const char *inside;
        size_t size;
        int r = file ? repository_read(AT_FDCWD, file, PATH_MAX, &text, &size) : -ENOMEM;

        if (r < 0)
                return repository_is_closed(r)
                               ? guards_repository_closed(search->workspace, r, reterr)
                               : 0;
        text[strcspn(text, "\r\n")] = '\0';
        common = text[0] == '/' ? strdup(text) : str_format("%s/%s", directory, text);
        if (!common)
                return error_oom(reterr);
        r = find_way(search, common, &real, reterr);
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

/* Where the directory of the repository is whose .git is at path in the workspace: a path of the
 * host, since the fd may be of a mount that no path leads to. NULL where there is none. */
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
        /* Without a repository, too: one of the caller's elsewhere goes by them. */
        return r == 0 ? follow_global(search, reterr) : r;
}

/* Another user may make one in /tmp, say, that nobody can read, so that nobody could run anything
 * below. git does not go by it (safe.directory of git-config(1)). */
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

/* git asks a submodule for its state, by a git of its own in there: its post-index-change is run.
 */
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
