/* SPDX-License-Identifier: Apache-2.0 */
#include "guards/watch-missing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"

#ifndef F_NOTIFY
#define F_NOTIFY 1026
#define DN_CREATE 0x00000004
#define DN_DELETE 0x00000008
#define DN_RENAME 0x00000010
#define DN_MULTISHOT 0x80000000
#endif

struct WatchMissing {
        WatchMissing *next;
        char *path;
        char *rest; /* The path below the directory of dir_fd. */
        int dir_fd; /* Borrowed. */
        int *fds;   /* Directories on the way that have appeared; each is watched. */
        size_t fds_count;
};

int watch_directory(int dir_fd) {
        const int what = (int)(DN_CREATE | DN_DELETE | DN_RENAME | DN_MULTISHOT);

        return fcntl(dir_fd, F_NOTIFY, what) < 0 ? -errno : 0;
}

static void missing_close(int *fds, size_t count) {
        for (size_t i = 0; i < count; i++)
                fd_close(fds[i]);
        free(fds);
}

WatchMissing *watch_missing_free(WatchMissing *list) {
        while (list) {
                WatchMissing *next = list->next;

                missing_close(list->fds, list->fds_count);
                free(list->path);
                free(list->rest);
                free(list);
                list = next;
        }
        return NULL;
}

int watch_missing_add(WatchMissing **list, const char *path, int dir_fd, const char *rest,
                      Error *reterr) {
        WatchMissing *missing = calloc(1, sizeof(*missing));

        if (!missing)
                return error_oom(reterr);
        *missing = (WatchMissing){
                .next = *list, .path = strdup(path), .rest = strdup(rest), .dir_fd = dir_fd
        };
        *list = missing;
        return missing->path && missing->rest ? 0 : error_oom(reterr);
}

/* Whether the entry is a symlink, which can lead anywhere. Any other entry that is not a directory
 * leads nowhere. */
static bool missing_is_link(int dir_fd, const char *name) {
        struct stat st;

        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? S_ISLNK(st.st_mode)
                                                                    : errno != ENOENT;
}

/* Watches the directory `name` and adds its fd to *fds. Returns 1 if it exists, 0 if no entry there
 * could lead to the path, or a negative errno. */
static int missing_enter(int dir_fd, const char *name, int **fds, size_t *count) {
        int *more = reallocarray(*fds, *count + 1, sizeof(**fds));
        int fd, r;

        if (!more)
                return -ENOMEM;
        *fds = more;
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
                return missing_is_link(dir_fd, name) ? -ELOOP : 0;
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        more[(*count)++] = fd;
        r = watch_directory(fd);
        return r < 0 ? r : 1;
}

/* Whether the path exists now. Each directory is watched before its entries are looked at, and the
 * old ones stay watched until then. */
static bool missing_is_made(WatchMissing *missing) {
        _cleanup_free_ char *rest = strdup(missing->rest);
        char *part = rest, *slash;
        size_t count = 0;
        int *fds = NULL, dir_fd = missing->dir_fd, r = rest ? 1 : -ENOMEM;

        while (r > 0 && (slash = strchr(part, '/'))) {
                *slash = '\0';
                r = missing_enter(dir_fd, part, &fds, &count);
                if (r > 0)
                        dir_fd = fds[count - 1];
                part = slash + 1;
        }
        missing_close(missing->fds, missing->fds_count);
        missing->fds = fds;
        missing->fds_count = count;
        return r < 0 || (r > 0 && path_may_exist(dir_fd, part));
}

const char *watch_missing_find_made(WatchMissing *list) {
        for (WatchMissing *missing = list; missing; missing = missing->next)
                if (missing_is_made(missing))
                        return missing->path;
        return NULL;
}
