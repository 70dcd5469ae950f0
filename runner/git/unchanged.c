/* SPDX-License-Identifier: Apache-2.0 */
#include "git/unchanged.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdint.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/strings.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* File systems that note the change time of a write through a mapping: their page_mkwrite()
 * functions call file_update_time(). EXT4_SUPER_MAGIC is that of ext2 and ext3, too. An overlay is
 * not among them, because its upper directory may be on any file system. */
static const unsigned long noting[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                        F2FS_SUPER_MAGIC };

static bool is_noting(int fd) {
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(noting); i++)
                if ((unsigned long)fs.f_type == noting[i])
                        return true;
        return false;
}

/* Whether no process has the file open for writing, or mapped from such an open file (fcntl(2),
 * F_SETLEASE). A process that opens it for writing in this moment waits until the lease is given
 * back. The kernel would send SIGIO then, which ends a process; SIGCHLD is ignored. */
static bool has_no_writer(int fd) {
        const bool leased = fcntl(fd, F_SETSIG, SIGCHLD) == 0 &&
                            fcntl(fd, F_SETLEASE, F_RDLCK) == 0;

        return leased && fcntl(fd, F_SETLEASE, F_UNLCK) == 0;
}

bool unchanged_is_certain(int fd, const struct stat *st) {
        struct timespec now;

        return clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 &&
               now.tv_sec - st->st_ctim.tv_sec > UNCHANGED_AGE && is_noting(fd) &&
               has_no_writer(fd);
}

char *unchanged_identity(const struct stat *st, GitHash hash) {
        return str_format("%ju %ju %jd %jd.%09ld %d", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino,
                          (intmax_t)st->st_size, (intmax_t)st->st_ctim.tv_sec, st->st_ctim.tv_nsec,
                          hash);
}
