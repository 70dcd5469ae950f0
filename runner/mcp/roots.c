/* SPDX-License-Identifier: Apache-2.0 */
/* The client is the user's own program. But it may read its roots from a file, such as an editor's
 * list of folders. A command in a sandbox may have written that file. So a root is never as wide as
 * a home directory, and never a place of keys and settings. session.create refuses more places, for
 * every workspace. */
#include "mcp/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/home.h"
#include "base/paths.h"
#include "mcp/uri.h"
#include "reach/wide.h"
#include "session/directory.h"

/* Returns the path of a file: URI on this host, or NULL. The caller owns it. */
static char *root_path(const char *uri) {
        static const char *const prefixes[] = { "file:///", "file://localhost/" };

        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++)
                if (str_starts(uri, prefixes[i]) && !strpbrk(uri, "?#"))
                        return uri_decode(uri + strlen(prefixes[i]) - 1);
        return NULL;
}

/* Writes the kernel's own path of a directory. Returns false if there is none. */
static bool root_real(const char *path, char ret[PATH_MAX]) {
        const int fd = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : FD_NONE;
        const bool known = fd >= 0 && path_of_fd(fd, ret) == 0;

        fd_close(fd);
        return known;
}

/* Whether path is a hidden directory of the caller's home, such as ~/.ssh, or lies directly in one,
 * such as ~/.config/gcloud. Some agents have their copies of a project deeper in one. */
static bool root_is_hidden(const char *path) {
        char home[PATH_MAX];
        const char *rest = root_real(home_path(), home) ? path_rest(path, home) : NULL, *slash;

        if (!rest || rest[0] != '.')
                return false;
        slash = strchr(rest, '/');
        return !slash || !strchr(slash + 1, '/');
}

/* Whether the sessions lie in path, or the path in them. */
static bool root_holds_sessions(const char *path) {
        char base[PATH_MAX], real[PATH_MAX];
        Error ignored;

        return session_base(base, &ignored) == 0 && root_real(base, real) &&
               (path_below(real, path) || path_below(path, real));
}

/* Returns NULL, or why the directory cannot be a root. path is the kernel's own name. */
static const char *root_wrong(const char *path, bool first) {
        if (streq(path, "/"))
                return "is the whole file system";
        if (home_lies_below(path))
                return "holds your home directory";
        if (path_is_wide(path))
                return "is too wide";
        if (root_is_hidden(path))
                return "is a hidden directory of your home";
        if (root_holds_sessions(path))
                return "holds holt's own files";
        /* In a policy, a path of the sandbox follows the colon. */
        if (!first && strchr(path, ':'))
                return "has a colon, which only the first root can have";
        return NULL;
}

static int root_refuse(const char *uri, const char *why, int errnum, Error *reterr) {
        char shown[256];

        return error_set(reterr, ERROR_POLICY, errnum, "the client's root \"%s\" %s",
                         str_quote(uri, shown, sizeof(shown)), why);
}

static int root_add(const char *uri, StrList *ret, Error *reterr) {
        _cleanup_free_ char *path = uri ? root_path(uri) : NULL;
        _cleanup_close_ int fd = FD_NONE;
        char real[PATH_MAX];
        const char *wrong;
        int r;

        if (!path)
                return root_refuse(uri ? uri : "", "is no file: URI of this host", 0, reterr);
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? -errno : path_of_fd(fd, real);
        if (r < 0)
                return root_refuse(uri, "cannot be opened", -r, reterr);
        wrong = root_wrong(real, ret->count == 0);
        if (wrong)
                return root_refuse(uri, wrong, 0, reterr);
        if (strlist_has(ret, real))
                return 0;
        return strlist_add(ret, real) < 0 ? error_oom(reterr) : 0;
}

int roots_read(const JsonValue *result, StrList *ret, Error *reterr) {
        const JsonValue *roots = json_member(result, "roots");
        size_t count = 0;

        if (!roots || json_type(roots) != JSON_ARRAY)
                return error_set(reterr, ERROR_POLICY, 0, "the client has sent no list of roots");
        for (const JsonValue *root = json_first(roots); root; root = json_next(root)) {
                int r = ++count > ROOTS_MAX
                                ? error_set(reterr, ERROR_LIMIT, 0,
                                            "the client has more than %d roots", ROOTS_MAX)
                                : root_add(json_member_string(root, "uri"), ret, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}
