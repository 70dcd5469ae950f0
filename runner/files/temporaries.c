/* SPDX-License-Identifier: Apache-2.0 */
#include "files/temporaries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/sys.h"
#include "files/walk.h"

#define PREFIX ".holt-"
enum { DIGITS = 16, NOTES_MAX = 100000 };

bool temporary_is_name(const char *name) {
        return str_starts(name, PREFIX) && strlen(name) == strlen(PREFIX) + DIGITS &&
               strspn(name + strlen(PREFIX), "0123456789abcdef") == DIGITS;
}

/* An fd's name in /proc starts at the root of the tree of mounts that it is in: the sandbox's. */
void temporary_begin(const Files *files, int dir_fd, const char *name) {
        char path[PATH_MAX];

        if (files && files->notes_fd >= 0 && path_of_fd(dir_fd, path) == 0)
                (void)!symlinkat(path, files->notes_fd, name);
}

void temporary_end(const Files *files, const char *name) {
        if (files && files->notes_fd >= 0)
                (void)unlinkat(files->notes_fd, name, 0);
}

static int temporaries_add_name(void *data, int dir_fd, const char *name, unsigned char type) {
        (void)dir_fd;
        return type == DT_LNK && temporary_is_name(name) ? strlist_add(data, name) : 0;
}

int temporaries_list(const Files *files, StrList *ret) {
        uint64_t left = NOTES_MAX;

        return files->notes_fd < 0
                       ? 0
                       : walk_names(files->notes_fd, 0, &left, temporaries_add_name, ret);
}

int temporary_remove(Files *files, const char *name) {
        char directory[PATH_MAX];
        _cleanup_free_ char *path = NULL;
        ssize_t n = readlinkat(files->notes_fd, name, directory, sizeof(directory) - 1);
        Error ignored;
        int r;

        if (n < 0)
                return -errno;
        directory[n] = '\0';
        path = path_join(directory, name);
        if (!path)
                return -ENOMEM;
        r = files_remove(files, path, true, &ignored);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR)
                return r;
        temporary_end(files, name);
        return 0;
}
