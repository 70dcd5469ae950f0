/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves a path that a git config names, part by part. The kernel would resolve it too, but it
 * does not tell which symlinks it has followed, and fails if the file does not exist. */
#include "guards/config-way.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "base/sys.h"
#include "guards/guard.h"
#include "guards/guards.h"

enum {
        LINKS_MAX = 40, /* Symlinks on one path; the kernel's own limit. */
};

/* Refuses a path with a part that the command could replace: git would follow the replacement. */
static int refuse_way(const char *path, const char *why, Error *reterr) {
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "cannot protect a path that a git config names: it goes through %s in "
                          "the workspace, %s",
                          path, why);

        return error_cure(reterr, r,
                          "Write the real path into the config, without symlinks and \"..\". To "
                          "run without this protection: --protect none");
}

/* Whether the directory stays in its place: nobody can move a directory that has a guard mounted in
 * it. */
static bool is_fixed(const LaunchPlan *plan, const char *inside) {
        if (inside[0] == '\0' || guard_holds(plan, inside))
                return true;
        for (size_t i = 0; i < plan->guards_count; i++)
                if (plan->guards[i].pinned && path_below(plan->guards[i].path, inside))
                        return true;
        return false;
}

typedef struct Way {
        const LaunchPlan *plan;
        const PlanMount *workspace;
        char *at;   /* The path resolved so far, as the kernel names it; "" is the root. */
        char *rest; /* The rest of the path, still to resolve. */
        unsigned links;
} Way;

static int go_up(Way *way, Error *reterr) {
        const char *inside = guards_within(way->workspace, way->at);
        char *slash = strrchr(way->at, '/');

        if (inside && !is_fixed(way->plan, inside))
                return refuse_way(way->at, "followed by \"..\"", reterr);
        if (slash)
                *slash = '\0';
        return 0;
}

/* Follows the symlink at path, which points to target. */
static int go_through(Way *way, const char *path, const char *target, Error *reterr) {
        const char *inside = guards_within(way->workspace, path);
        char *rest;

        if (inside && !guard_holds(way->plan, inside))
                return refuse_way(path, "which is a symlink", reterr);
        rest = path_child(target, way->rest);
        if (!rest)
                return error_oom(reterr);
        free(way->rest);
        way->rest = rest;
        if (target[0] == '/')
                way->at[0] = '\0';
        return 0;
}

/* Follows one part of the path. A part that does not exist is treated like any other, because the
 * command may create it. */
static int config_go_on(Way *way, const char *part, Error *reterr) {
        _cleanup_free_ char *path = NULL;
        char target[PATH_MAX];
        ssize_t n;

        if (part[0] == '\0' || streq(part, "."))
                return 0;
        if (streq(part, ".."))
                return go_up(way, reterr);
        path = path_child(way->at, part);
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

/* Whether the existing part of path is already the kernel's own: without symlinks and "..". Most
 * paths are, and one system call finds out. */
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

int config_find_way(const LaunchPlan *plan, const PlanMount *workspace, const char *path,
                    char **ret, Error *reterr) {
        Way way = { .plan = plan, .workspace = workspace };
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
