/* SPDX-License-Identifier: Apache-2.0 */
/* Hides the files of the workspace that match a pattern.
 *
 * An earlier run may have made any entry of the workspace. So the walk goes from directory to
 * directory by descriptors, follows no symlink, and is bounded. If it cannot see a part that the
 * command could see, that is an error. It does not enter .git: hiding a file there would break git
 * rather than keep a secret. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/glob.h"
#include "base/paths.h"
#include "base/sys.h"
#include "guards/hidden.h"

typedef struct GlobSearch {
        LaunchPlan *plan;
        const PlanMount *workspace;
        Glob *globs[HIDDEN_GLOBS_MAX]; /* One pattern with braces makes several globs. */
        size_t of[HIDDEN_GLOBS_MAX];   /* For each glob: the index of its pattern in the plan. */
        size_t count;
        StrList found;                 /* Relative to the workspace. */
        size_t by[HIDDEN_MATCHES_MAX]; /* For each path found: the same index. */
        size_t matched;                /* The index of the last pattern that has matched. */
        size_t entries;
        char path[PATH_MAX]; /* The current path, relative to the workspace. */
} GlobSearch;

/* The patterns' states in one directory (glob.h). */
typedef struct GlobStates {
        uint64_t of[HIDDEN_GLOBS_MAX];
} GlobStates;

static int search_refuse(const GlobSearch *search, const char *what, const char *cure, int errnum,
                         Error *reterr) {
        char quoted[512];
        int r = error_set(reterr, ERROR_POLICY, errnum, "%s: %s",
                          str_quote(search->plan->globs[0].origin, quoted, sizeof(quoted)), what);

        return error_cure(reterr, r, "%s", cure);
}

static int search_refuse_directory(const GlobSearch *search, int errnum, Error *reterr) {
        char quoted[512], name[512];
        int r = error_set(reterr, ERROR_POLICY, errnum,
                          "%s: cannot look for matches in the directory %s",
                          str_quote(search->plan->globs[0].origin, quoted, sizeof(quoted)),
                          search->path[0] ? str_quote(search->path, name, sizeof(name)) : ".");

        return error_cure(reterr, r,
                          "Give yourself permission to read it, or hide it as a whole: --hide "
                          "DIRECTORY");
}

/* --- matches --- */

static int search_add(GlobSearch *search, const char *path, Error *reterr) {
        if (strlist_has(&search->found, path))
                return 0;
        if (search->found.count == HIDDEN_MATCHES_MAX)
                return search_refuse(search, "the patterns match more than 128 files",
                                     "Hide the directories that contain them.", 0, reterr);
        search->by[search->found.count] = search->matched;
        return strlist_add(&search->found, path) < 0 ? error_oom(reterr) : 0;
}

/* Returns the target of a symlink, relative to the workspace, if it is a file in it. An absolute
 * symlink counts by its path inside. Owned by the caller, or NULL. */
static char *search_follow(const GlobSearch *search, int dir_fd, const char *name) {
        const PlanMount *workspace = search->workspace;
        _cleanup_free_ char *absolute = NULL;
        _cleanup_close_ int fd = FD_NONE;
        char link[PATH_MAX], real[PATH_MAX], top[PATH_MAX];
        const char *rest = search->path;
        struct stat st;
        ssize_t n = readlinkat(dir_fd, name, link, sizeof(link) - 1);

        if (n <= 0)
                return NULL;
        link[n] = '\0';
        if (link[0] == '/') {
                absolute = path_join("/", link);
                rest = absolute ? path_rest(absolute, workspace->target) : NULL;
        }
        if (!rest || !rest[0])
                return NULL;
        fd = sys_openat2(workspace->fd, rest, O_PATH | O_CLOEXEC, 0,
                         RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
        if (fd < 0 || fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
                return NULL;
        /* The fd of an id-mapped workspace is a mount of its own, with paths of its own. */
        if (path_of_fd(fd, real) < 0 || path_of_fd(workspace->fd, top) < 0)
                return NULL;
        rest = path_rest(real, top);
        return rest && rest[0] ? strdup(rest) : NULL;
}

static int search_add_entry(GlobSearch *search, int dir_fd, const char *name, mode_t type,
                            Error *reterr) {
        _cleanup_free_ char *target = NULL;

        if (!S_ISLNK(type))
                return search_add(search, search->path, reterr);
        target = search_follow(search, dir_fd, name);
        return target ? search_add(search, target, reterr) : 0;
}

/* Advances all patterns by one name of the path. Returns whether one of them matches; *ret_more
 * tells whether one may match below. The literal text of a pattern matches, too: "[id].js" is a
 * common name. */
static bool search_step(GlobSearch *search, const GlobStates *now, const char *name, bool directory,
                        GlobStates *ret, bool *ret_more) {
        bool found = false;

        *ret_more = false;
        for (size_t i = 0; i < search->count; i++) {
                PlanGlob *glob = &search->plan->globs[search->of[i]];

                ret->of[i] = now->of[i] ? glob_step(search->globs[i], now->of[i], name) : 0;
                if (glob_matches(search->globs[i], ret->of[i], directory) ||
                    streq(glob->pattern, search->path)) {
                        found = glob->found = true;
                        search->matched = search->of[i];
                }
                /* A literal path below may still match. */
                *ret_more |= ret->of[i] || path_below(glob->pattern, search->path);
        }
        return found;
}

/* --- the walk --- */

static int search_directory(GlobSearch *search, int fd, const GlobStates *states, unsigned depth,
                            Error *reterr);

/* Whether the directory is closed to the command. That holds if the caller may not enter it and
 * does not own it. An owner could restore rights that an earlier run has removed. */
static bool search_is_closed(int dir_fd, const char *name) {
        struct stat st;

        return faccessat(dir_fd, name, X_OK, AT_EACCESS) < 0 &&
               fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid != geteuid();
}

/* Opens a directory to list it. If it is closed to the command, *ret is FD_NONE. */
static int search_open(const GlobSearch *search, int dir_fd, const char *name, int *ret,
                       Error *reterr) {
        int errnum;

        *ret = sys_openat2(dir_fd, name,
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0,
                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        if (*ret >= 0)
                return 0;
        errnum = errno;
        if (errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP ||
            (errnum == EACCES && search_is_closed(dir_fd, name))) {
                *ret = FD_NONE;
                return 0;
        }
        return search_refuse_directory(search, errnum, reterr);
}

static int search_enter(GlobSearch *search, int dir_fd, const char *name, const GlobStates *states,
                        unsigned depth, Error *reterr) {
        int fd, r;

        if (streq(name, ".git"))
                return 0;
        if (depth == HIDDEN_DEPTH_MAX)
                return search_refuse(
                        search, "the workspace has directories nested more than 128 deep",
                        "Use a pattern without \"**\" that contains a slash.", 0, reterr);
        r = search_open(search, dir_fd, name, &fd, reterr);
        return r < 0 || fd < 0 ? r : search_directory(search, fd, states, depth + 1, reterr);
}

static mode_t entry_type(int dir_fd, const struct dirent *entry) {
        struct stat st;

        if (entry->d_type != DT_UNKNOWN)
                return (mode_t)DTTOIF(entry->d_type);
        return fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0
                                                                            : st.st_mode & S_IFMT;
}

static int search_entry(GlobSearch *search, int dir_fd, const struct dirent *entry,
                        const GlobStates *states, unsigned depth, Error *reterr) {
        const size_t length = strlen(search->path);
        const mode_t type = entry_type(dir_fd, entry);
        GlobStates next;
        bool more;
        int r = 0;

        if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                return 0;
        if (++search->entries > HIDDEN_ENTRIES_MAX)
                return search_refuse(search,
                                     "the workspace has more than 1000000 entries to look "
                                     "at",
                                     "Use a pattern without \"**\" that contains a slash, or hide "
                                     "directories.",
                                     0, reterr);
        if (length + strlen(entry->d_name) + 2 > sizeof(search->path))
                return search_refuse_directory(search, ENAMETOOLONG, reterr);
        (void)sprintf(search->path + length, "%s%s", length ? "/" : "", entry->d_name);
        if (search_step(search, states, entry->d_name, S_ISDIR(type), &next, &more))
                r = search_add_entry(search, dir_fd, entry->d_name, type, reterr);
        else if (more && S_ISDIR(type))
                r = search_enter(search, dir_fd, entry->d_name, &next, depth, reterr);
        search->path[length] = '\0';
        return r;
}

/* Takes ownership of fd. */
static int search_directory(GlobSearch *search, int fd, const GlobStates *states, unsigned depth,
                            Error *reterr) {
        DIR *directory = fdopendir(fd);
        const struct dirent *entry;
        int r = 0;

        if (!directory) {
                r = search_refuse_directory(search, errno, reterr);
                fd_close(fd);
                return r;
        }
        while (r == 0 && (errno = 0, entry = readdir(directory)) != NULL)
                r = search_entry(search, fd, entry, states, depth, reterr);
        if (r == 0 && errno != 0)
                r = search_refuse_directory(search, errno, reterr);
        (void)closedir(directory);
        return r;
}

static int search_fail_pattern(const GlobSearch *search, const PlanGlob *glob, int errnum,
                               Error *reterr) {
        if (errnum == ENOMEM)
                return error_oom(reterr);
        if (errnum == E2BIG)
                return search_refuse(search, "more than 64 patterns", "Use fewer patterns.", 0,
                                     reterr);
        return error_set(reterr, ERROR_POLICY, errnum, "%s: the pattern is not valid",
                         glob->origin);
}

static int search_begin_pattern(GlobSearch *search, size_t at, GlobStates *states) {
        _cleanup_(strlist_clear) StrList patterns = { 0 };
        int r = glob_expand(search->plan->globs[at].pattern, HIDDEN_GLOBS_MAX - search->count,
                            &patterns);

        for (size_t i = 0; r == 0 && i < patterns.count; i++) {
                r = glob_new(patterns.items[i], GLOB_ANYWHERE | GLOB_DOTS,
                             &search->globs[search->count]);
                if (r < 0)
                        return r;
                states->of[search->count] = glob_start(search->globs[search->count]);
                search->of[search->count++] = at;
        }
        return r;
}

static int search_begin(GlobSearch *search, GlobStates *ret, Error *reterr) {
        const LaunchPlan *plan = search->plan;
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->globs_count; i++) {
                r = search_begin_pattern(search, i, ret);
                if (r < 0)
                        r = search_fail_pattern(search, &plan->globs[i], -r, reterr);
        }
        return r;
}

static int search_workspace(GlobSearch *search, Error *reterr) {
        GlobStates states = { 0 };
        int fd = FD_NONE, r = search_begin(search, &states, reterr);

        if (r == 0)
                r = search_open(search, search->workspace->fd, ".", &fd, reterr);
        return r < 0 || fd < 0 ? r : search_directory(search, fd, &states, 0, reterr);
}

int hidden_globs_prepare(LaunchPlan *plan, Error *reterr) {
        const PlanMount *workspace = plan_workspace(plan);
        GlobSearch search = { .plan = plan, .workspace = workspace };
        int r;

        if (plan->globs_count == 0 || !workspace)
                return 0;
        r = search_workspace(&search, reterr);
        /* plan_hide() may reallocate the plan's mounts, so workspace->target must not be used
         * here. */
        for (size_t i = 0; r == 0 && i < search.found.count; i++) {
                _cleanup_free_ char *rest = str_format("/%s", search.found.items[i]);

                r = rest ? plan_hide(plan, plan->workspace, rest, plan->globs[search.by[i]].origin,
                                     reterr)
                         : error_oom(reterr);
        }
        for (size_t i = 0; i < search.count; i++)
                glob_free(search.globs[i]);
        strlist_clear(&search.found);
        return r;
}
