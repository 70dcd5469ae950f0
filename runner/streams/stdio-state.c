/* SPDX-License-Identifier: Apache-2.0 */
/* Fds 0 to 2 share their open file descriptions with the caller's. So the status flags that the
 * command sets, and the locks that it takes, would outlive it. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/util.h"
#include "streams/stdio.h"

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

enum { LOCK_FLOCK = 1, LOCK_OFD = 2, LOCK_LEASE = 4, LOCK_ALL = 7 };

static struct {
        int flags;      /* The result of F_GETFL, or negative. */
        unsigned locks; /* LOCK_* bits, for a regular file. */
        bool is_file;
} noted[3] = { { .flags = -1 }, { .flags = -1 }, { .flags = -1 } };

/* Returns the kinds of locks on the open file description of fd. No system call tells them, but
 * /proc/self/fdinfo does (proc(5)). If it cannot be read, returns all kinds, so that no lock is
 * given up. */
static unsigned find_locks(int fd) {
        static const struct {
                const char *name;
                unsigned bit;
        } kinds[] = { { ": FLOCK ", LOCK_FLOCK },
                      { ": OFDLCK ", LOCK_OFD },
                      { ": LEASE ", LOCK_LEASE } };
        char path[32], text[2048];
        _cleanup_close_ int info_fd = FD_NONE;
        unsigned found = 0;
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
        info_fd = open(path, O_RDONLY | O_CLOEXEC);
        n = info_fd < 0 ? -1 : read(info_fd, text, sizeof(text) - 1);
        if (n < 0)
                return LOCK_ALL;
        text[n] = '\0';
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (strstr(text, kinds[i].name))
                        found |= kinds[i].bit;
        return found;
}

void stdio_note(const FdFacts facts[3]) {
        for (int fd = 0; fd <= 2; fd++) {
                noted[fd].flags = facts[fd].flags;
                noted[fd].is_file = S_ISREG(facts[fd].st.st_mode);
                noted[fd].locks = noted[fd].is_file ? find_locks(fd) : 0;
        }
}

/* Releasing a lock that nobody holds is harmless, so errors are ignored. */
static void stdio_unlock(int fd, unsigned locks) {
        struct flock all = { .l_type = F_UNLCK, .l_whence = SEEK_SET };

        if (locks & LOCK_FLOCK)
                (void)flock(fd, LOCK_UN);
        if (locks & LOCK_OFD)
                (void)fcntl(fd, F_OFD_SETLK, &all);
        if (locks & LOCK_LEASE)
                (void)fcntl(fd, F_SETLEASE, F_UNLCK);
}

void stdio_restore(unsigned except) {
        for (int fd = 0; fd <= 2; fd++) {
                if (except & 1U << fd || noted[fd].flags < 0)
                        continue;
                if (fcntl(fd, F_GETFL) != noted[fd].flags)
                        (void)fcntl(fd, F_SETFL, noted[fd].flags);
                if (noted[fd].is_file)
                        stdio_unlock(fd, LOCK_ALL & ~noted[fd].locks);
        }
}
