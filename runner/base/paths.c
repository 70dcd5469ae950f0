/* SPDX-License-Identifier: Apache-2.0 */
#include "base/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

/* Appends the parts of path to out, which is in normal form ("" for the root). out has room for
 * both and a slash. */
static void path_append(char *out, const char *path) {
        while (*path) {
                size_t length = strcspn(path, "/");

                if (length == 2 && memcmp(path, "..", 2) == 0) {
                        char *slash = strrchr(out, '/');

                        if (slash)
                                *slash = '\0';
                } else if (length > 0 && !(length == 1 && *path == '.')) {
                        size_t end = strlen(out);

                        out[end] = '/';
                        memcpy(out + end + 1, path, length);
                        out[end + 1 + length] = '\0';
                }
                path += length;
                path += *path == '/';
        }
}

char *path_join(const char *base, const char *path) {
        char *out = calloc(1, strlen(base) + strlen(path) + 4);

        if (!out)
                return NULL;
        if (path[0] != '/')
                path_append(out, base);
        path_append(out, path);
        if (!out[0])
                (void)strcpy(out, "/");
        return out;
}

char *path_child(const char *directory, const char *name) {
        const size_t length = strlen(directory), rest = strlen(name) + 1;
        char *out = malloc(length + 1 + rest);

        if (!out)
                return NULL;
        memcpy(out, directory, length);
        out[length] = '/';
        memcpy(out + length + 1, name, rest);
        return out;
}

bool path_below(const char *path, const char *prefix) {
        size_t length = strlen(prefix);

        if (streq(prefix, "/"))
                return true;
        return strncmp(path, prefix, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

const char *path_rest(const char *path, const char *prefix) {
        if (!path_below(path, prefix))
                return NULL;
        path += streq(prefix, "/") ? 0 : strlen(prefix);
        return path + (*path == '/');
}

bool path_may_exist(int dir_fd, const char *name) {
        struct stat st;

        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

int path_of_fd(int fd, char ret[PATH_MAX]) {
        char link[32];
        ssize_t n;

        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, ret, PATH_MAX - 1);
        ret[n < 0 ? 0 : n] = '\0';
        return n < 0 ? -errno : 0;
}

/* --- errors --- */

static const struct {
        int errnum;
        const char *cure;
} path_cures[] = {
        { ENOTDIR, "A part of the path is a file, not a directory: correct the path. To pass a "
                   "single file, use --ro or --rw." },
        { EACCES, "holt opens the path with your rights, and you have no access to it." },
        { ELOOP, "The path leads through a symlink in a directory that commands in a sandbox can "
                 "write. holt does not follow such links: pass the target's own path." },
};

int path_cure(const char *source, int r, Error *reterr) {
        char quoted[512];

        if (r == -ENOENT)
                return error_cure(reterr, r, "%s does not exist: create it, or correct the path.",
                                  str_quote(source, quoted, sizeof(quoted)));
        for (size_t i = 0; i < ELEMENTSOF(path_cures); i++)
                if (path_cures[i].errnum == -r)
                        return error_cure(reterr, r, "%s", path_cures[i].cure);
        return r;
}
