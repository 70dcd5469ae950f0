/* SPDX-License-Identifier: Apache-2.0 */
#include "session/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "session/directory.h"

#define OWNER_NAME "owner"

void owner_clear(Owner *owner) {
        owner->dir_fd = fd_close(owner->dir_fd);
        owner->hold_fd = fd_close(owner->hold_fd);
}

int owner_make(const char *path, Owner *ret, Error *reterr) {
        Owner owner = OWNER_NONE;
        int r = 0;

        owner.dir_fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (owner.dir_fd < 0 || mkfifoat(owner.dir_fd, OWNER_NAME, 0600) < 0)
                r = error_set(reterr, ERROR_SETUP, errno, "cannot make %s/" OWNER_NAME, path);
        /* With write access alone, open() would wait for a reader, the keeper (fifo(7)). */
        if (r == 0)
                owner.hold_fd = openat(owner.dir_fd, OWNER_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (r == 0 && owner.hold_fd < 0)
                r = error_set(reterr, ERROR_SETUP, errno, "cannot open %s/" OWNER_NAME, path);
        if (r < 0)
                owner_clear(&owner);
        else
                *ret = owner;
        return r;
}

/* Nobody ever writes to the FIFO. Its end means that no process has it open for writing. */
static bool owner_has_ended(int fd) {
        char byte;

        return read(fd, &byte, 1) == 0;
}

static int open_fifo(int dir_fd) {
        return openat(dir_fd, OWNER_NAME, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

int owner_watch(int dir_fd, int *ret_fd, Error *reterr) {
        _cleanup_close_ int fd = open_fifo(dir_fd);

        *ret_fd = FD_NONE;
        if (fd < 0)
                return errno == ENOENT ? 0
                                       : error_set(reterr, ERROR_SETUP, errno,
                                                   "cannot tell who owns the session");
        if (owner_has_ended(fd)) {
                (void)error_set(reterr, ERROR_MISSING, 0,
                                "the session belonged to a client that has gone");
                return error_cure(reterr, -ENOENT,
                                  "holt removes it when the next session is created or served. To "
                                  "remove it now: holt rm.");
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}

bool owner_is_gone(int dir_fd) {
        _cleanup_close_ int fd = open_fifo(dir_fd);

        return fd >= 0 && owner_has_ended(fd);
}

int owner_take_away(const char *name, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE;
        int r;

        if (session_open(name, &dir_fd, NULL, NULL) < 0 || !owner_is_gone(dir_fd))
                return 0;
        r = session_remove(name, dir_fd, reterr);
        return r == -ENOENT ? 0 : r;
}
