/* SPDX-License-Identifier: Apache-2.0 */
#include "reach/wide.h"

#include <string.h>

#include "base/paths.h"
#include "base/strings.h"

/* Directories that are too wide to be writable: they hold programs or settings of all users, or the
 * caller's own start-up files. */
static const struct {
        const char *path;
        bool below;         /* Directories below it are too wide too. */
        const char *except; /* Exception: directories below this one. */
} wide_paths[] = {
        { "/", false, NULL },          { "/bin", true, NULL },        { "/boot", true, NULL },
        { "/dev", true, "/dev/shm/" }, { "/etc", true, NULL },        { "/home", false, NULL },
        { "/lib", true, NULL },        { "/lib32", true, NULL },      { "/lib64", true, NULL },
        { "/media", false, NULL },     { "/mnt", false, NULL },       { "/opt", false, NULL },
        { "/proc", true, NULL },       { "/root", false, NULL },      { "/run", false, NULL },
        { "/sbin", true, NULL },       { "/srv", false, NULL },       { "/sys", true, NULL },
        { "/tmp", false, NULL },       { "/usr/local", false, NULL }, { "/usr/src", false, NULL },
        { "/usr", true, "/usr/src/" }, { "/var", false, NULL },       { "/var/lib", false, NULL },
        { "/var/spool", true, NULL },  { "/var/tmp", false, NULL },
};

/* Whether it is /run/user or a directory in it. Each belongs to one user and contains the sockets
 * of that user's services. */
static bool is_runtime_directory(const char *path) {
        static const char runtime[] = "/run/user";

        return path_below(path, runtime) &&
               !(path[strlen(runtime)] && strchr(path + sizeof(runtime), '/'));
}

bool path_is_wide(const char *path) {
        for (size_t i = 0; i < ELEMENTSOF(wide_paths); i++) {
                if (streq(path, wide_paths[i].path))
                        return true;
                if (wide_paths[i].below && path_below(path, wide_paths[i].path) &&
                    !(wide_paths[i].except && str_starts(path, wide_paths[i].except)))
                        return true;
        }
        return is_runtime_directory(path);
}
