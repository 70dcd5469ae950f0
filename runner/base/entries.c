/* SPDX-License-Identifier: Apache-2.0 */
#include "base/entries.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* struct linux_dirent64 of getdents64(2) is the libc's struct dirent on all 64-bit architectures.
 */
static_assert(offsetof(struct dirent, d_off) == 8 && offsetof(struct dirent, d_reclen) == 16 &&
                      offsetof(struct dirent, d_type) == 18 &&
                      offsetof(struct dirent, d_name) == 19,
              "the kernel's layout");

void entries_begin(Entries *e, int fd) {
        e->fd = fd;
        e->errnum = 0;
        e->at = e->end = 0;
}

/* Returns false at the end. A directory that was removed while it is open gives ENOENT and has no
 * entries. */
static bool entries_fill(Entries *e) {
        long n = syscall(SYS_getdents64, e->fd, e->data, sizeof(e->data));

        if (n < 0 && errno != ENOENT)
                e->errnum = errno;
        e->at = 0;
        e->end = n < 0 ? 0 : (size_t)n;
        return n > 0;
}

const struct dirent *entries_next(Entries *e) {
        const struct dirent *entry;

        if (e->at >= e->end && !entries_fill(e))
                return NULL;
        entry = (const struct dirent *)(const void *)(e->data + e->at);
        e->at += entry->d_reclen;
        return entry;
}
