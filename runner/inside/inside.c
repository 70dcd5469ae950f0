/* SPDX-License-Identifier: Apache-2.0 */
#include "inside/inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "inside/bridge.h"

#define HELPER_MODULE(name, path)                                                                  \
        extern const char holt_inside_##name[], holt_inside_##name##_end[];
#include "helpers/modules.h"
#undef HELPER_MODULE
#define HELPER_MODULE(name, path)                                                                  \
        { #name ".py", holt_inside_##name, holt_inside_##name##_end, 0644 },

extern const char holt_inside_tool[], holt_inside_tool_end[];

/* Each row is a directory, or a file of the nearest directory above it. */
static const struct {
        const char *name; /* A directory's path, or a file's name. */
        const char *begin, *end;
        unsigned mode;
} entries[] = {
        { BRIDGE_DIRECTORY, NULL, NULL, 0755 },
        { BRIDGE_DIRECTORY "/python", NULL, NULL, 0755 },
#include "helpers/modules.h"
        { BRIDGE_DIRECTORY "/bin", NULL, NULL, 0755 },
        { "holt-tool", holt_inside_tool, holt_inside_tool_end, 0755 },
};

/* Returns an fd or a negative errno. The directory may exist already. */
static int inside_make_directory(int root_fd, const char *path, unsigned mode) {
        char above[64];
        const char *name = strrchr(path, '/') + 1;
        _cleanup_close_ int above_fd = FD_NONE;
        int fd;

        (void)snprintf(above, sizeof(above), "%.*s", (int)(name - path - 1), path);
        above_fd = sys_open_beneath(root_fd, above + 1, O_PATH | O_DIRECTORY);
        if (above_fd < 0 || (mkdirat(above_fd, name, mode) < 0 && errno != EEXIST))
                return -errno;
        fd = sys_open_beneath(above_fd, name, O_PATH | O_DIRECTORY);
        return fd < 0 ? -errno : fd;
}

static int inside_make_file(int dir_fd, const char *name, const char *data, size_t length,
                            unsigned mode) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                        mode);
        int r;

        if (fd < 0)
                return -errno;
        r = sys_write_all(fd, data, length);
        if (r == 0 && fchmod(fd, mode) < 0)
                r = -errno;
        return r;
}

int inside_write(int root_fd, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE;
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(entries); i++) {
                if (entries[i].begin) {
                        r = inside_make_file(dir_fd, entries[i].name, entries[i].begin,
                                             (size_t)(entries[i].end - entries[i].begin),
                                             entries[i].mode);
                } else {
                        (void)fd_close(dir_fd);
                        dir_fd = inside_make_directory(root_fd, entries[i].name, entries[i].mode);
                        r = dir_fd < 0 ? dir_fd : 0;
                }
                if (r < 0)
                        r = error_set(reterr, ERROR_SETUP, -r, "cannot put \"%s\" into the sandbox",
                                      entries[i].name);
                if (r == -ENOSPC)
                        r = error_cure(reterr, r,
                                       "The helpers go to /run, whose size --tmp-size limits. "
                                       "Create the session with --tmp-size 1MiB or more.");
        }
        return r;
}
