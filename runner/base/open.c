/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces open(2) of musl in holt, which links it statically. For O_CLOEXEC, musl makes a second
 * system call that only kernels before Linux 2.6.23 need: 31 of them in one start. openat(2) of
 * musl does not. */
#include <fcntl.h>
#include <stdarg.h>

#ifndef __GLIBC__

int open(const char *path, int flags, ...) {
        mode_t mode = 0;
        va_list args;

        va_start(args, flags);
        if (flags & O_CREAT)
                mode = va_arg(args, mode_t);
        va_end(args);
        return openat(AT_FDCWD, path, flags, mode);
}

#endif
