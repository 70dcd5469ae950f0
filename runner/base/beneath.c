/* SPDX-License-Identifier: Apache-2.0 */
#include "base/beneath.h"

#include <errno.h>
#include <string.h>

#include "base/paths.h"
#include "base/sys.h"

/* Opens the directory that path leads to through whatever links, and asks the kernel for its own
 * path. */
static int open_real(const char *path, char real[PATH_MAX], int *ret_fd) {
        _cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : path_of_fd(fd, real);

        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

static bool is_untrusted(const char *real, const StrList *untrusted) {
        for (size_t i = 0; i < untrusted->count; i++) {
                char other[PATH_MAX];
                int fd = FD_NONE;

                if (open_real(untrusted->items[i], other, &fd) < 0)
                        continue;
                fd_close(fd);
                if (path_below(real, other))
                        return true;
        }
        return false;
}

static int open_rest(int dir_fd, const char *rest, int flags, mode_t mode) {
        /* A fifo may lie there, which must not hold us. */
        int more = flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK;
        int fd = sys_openat2(dir_fd, rest, (uint64_t)(unsigned)(flags | more), mode,
                             RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

        return fd < 0 ? -errno : fd;
}

int beneath_open(const char *path, const StrList *untrusted, int flags, mode_t mode) {
        char part[PATH_MAX], real[PATH_MAX];
        int fd;

        /* Mostly there is no link on the whole way, and nothing to ask about. */
        if (flags & O_PATH) {
                fd = sys_openat2(AT_FDCWD, path, (uint64_t)(unsigned)(flags | O_CLOEXEC), 0,
                                 RESOLVE_NO_SYMLINKS);
                if (fd >= 0)
                        return fd;
        }
        for (size_t i = 1; untrusted->count > 0 && path[i] && i < sizeof(part); i++) {
                _cleanup_close_ int dir_fd = FD_NONE;
                int r;

                if (path[i] != '/')
                        continue;
                memcpy(part, path, i);
                part[i] = '\0';
                r = open_real(part, real, &dir_fd);
                if (r < 0)
                        return r;
                if (is_untrusted(real, untrusted))
                        return open_rest(dir_fd, path + i + 1, flags, mode);
        }
        fd = open(path, flags | O_CLOEXEC, mode);
        return fd < 0 ? -errno : fd;
}
