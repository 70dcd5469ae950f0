/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

enum { NAMES_TRIED = 1000 };

static const char suffix[] = ".holt-untrusted";

/* Renames NAME in dir_fd to NAME.holt-untrusted, or NAME.holt-untrusted.2 and so on; dir is for the
 * report. */
static int set_aside(int dir_fd, const char *dir, const char *name, StrList *moved, Error *reterr) {
        for (int i = 1; i < NAMES_TRIED; i++) {
                _cleanup_free_ char *aside = i == 1 ? str_format("%s%s", name, suffix)
                                                    : str_format("%s%s.%d", name, suffix, i);

                if (!aside)
                        return error_oom(reterr);
                if (syscall(SYS_renameat2, dir_fd, name, dir_fd, aside, RENAME_NOREPLACE) == 0)
                        return strlist_take(moved, str_format("%s%s", dir, aside)) < 0
                                       ? error_oom(reterr)
                                       : 0;
                if (errno != EEXIST)
                        break;
        }
        return error_set(reterr, ERROR_SETUP, errno,
                         "cannot set %s%s aside, which the command has made and which the policy "
                         "protects",
                         dir, name);
}

/* One step of sweep_one(): the part called name in dir_fd, of which more is to come. Returns 1 with
 * the directory in *ret_fd, 0 when nothing is there, or a negative errno; -ENOTDIR or -EACCES mean
 * that what is there is no directory that one can look into, and so may be anything to somebody
 * with more rights. */
static int descend(int dir_fd, const char *name, int *ret_fd) {
        int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (faccessat(fd, ".", X_OK, AT_EACCESS) < 0) {
                int r = -errno;

                fd_close(fd);
                return r;
        }
        *ret_fd = fd;
        return 1;
}

static bool is_there(int dir_fd, const char *name) {
        struct stat st;

        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* Follows path part by part. What goes aside is the last part, or the first that is a link, a file
 * or a directory that can't be looked into. */
static int sweep_one(int workspace_fd, const char *path, StrList *moved, Error *reterr) {
        _cleanup_close_ int dir_fd = openat(workspace_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *rest = strdup(path), *dir = NULL;
        char *part = rest;

        if (!rest)
                return error_oom(reterr);
        for (;;) {
                size_t length = strcspn(part, "/");
                bool last = part[length] == '\0';
                int fd = FD_NONE, r = 0;

                part[length] = '\0';
                if (!last) {
                        r = descend(dir_fd, part, &fd);
                        if (r == 0)
                                return 0;
                } else if (!is_there(dir_fd, part)) {
                        return 0;
                }
                if (last || r < 0)
                        break;
                fd_close(dir_fd);
                dir_fd = fd;
                part += length + 1;
        }
        dir = strndup(path, (size_t)(part - rest));
        return dir ? set_aside(dir_fd, dir, part, moved, reterr) : error_oom(reterr);
}

int guard_sweep(const LaunchPlan *plan, int workspace_fd, StrList *moved, Error *reterr) {
        int result = 0;

        for (size_t i = 0; i < plan->guards_count; i++) {
                int r = plan->guards[i].pinned ? 0
                                               : sweep_one(workspace_fd, plan->guards[i].path,
                                                           moved, result ? NULL : reterr);

                if (r < 0 && result == 0)
                        result = r;
        }
        return result;
}
