/* SPDX-License-Identifier: Apache-2.0 */
#include "base/private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

static int refuse_owner(const char *path, uid_t owner, Error *reterr) {
        (void)error_set(reterr, ERROR_SETUP, EPERM, "%s belongs to uid %u, and holt runs as uid %u",
                        path, owner, geteuid());
        return error_cure(reterr, -EPERM,
                          "Its owner could have holt obey a policy that you did not write. Be that "
                          "user, or set XDG_DATA_HOME to a directory of yours (under sudo HOME may "
                          "be another user's).\n"
                          "If the file is yours, take it over: chown");
}

static int refuse_mode(const char *path, mode_t mode, Error *reterr) {
        _cleanup_free_ char *word = str_word(path);

        (void)error_set(reterr, ERROR_SETUP, EPERM, "%s may be written by other users (mode %04o)",
                        path, (unsigned)mode & 07777);
        return error_cure(reterr, -EPERM,
                          "They could have holt obey a policy that you did not write. If you trust "
                          "what is in it: chmod go-w %s",
                          word ? word : "FILE");
}

int private_check(int dir_fd, const char *name, const char *path, Error *reterr) {
        struct stat st;

        if (fstatat(dir_fd, name, &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT
                               ? -ENOENT
                               : error_set(reterr, ERROR_SETUP, errno, "cannot look at %s", path);
        if (st.st_uid != geteuid())
                return refuse_owner(path, st.st_uid, reterr);
        if (S_ISLNK(st.st_mode)) {
                (void)error_set(reterr, ERROR_SETUP, EPERM, "%s is a symbolic link", path);
                return error_cure(reterr, -EPERM,
                                  "holt follows none there: set XDG_DATA_HOME to where the "
                                  "sessions are.");
        }
        return st.st_mode & (S_IWGRP | S_IWOTH) ? refuse_mode(path, st.st_mode, reterr) : 0;
}
