/* SPDX-License-Identifier: Apache-2.0 */
/* Small macros that every room uses: ownership by cleanup attribute, sizes, likely-to-be-forgotten
 * casts. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))
#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))
#define _noreturn_ __attribute__((noreturn))
#define _unused_ __attribute__((unused))

/* Of a buffer that is filled before it is read: not zeroed first, as -ftrivial-auto-var-init does
 * with all. For large ones on paths that count. */
#if __has_attribute(uninitialized)
#define _uninitialized_ __attribute__((uninitialized))
#else
#define _uninitialized_
#endif

/* An fd that is not open. Not -1, so that an uninitialised or error value is told from a closed
 * one. */
#define FD_NONE (-9)

/* Gives the pointer away: the cleanup attribute of the variable then finds NULL. */
#define TAKE_PTR(p)                                                                                \
        ({                                                                                         \
                typeof(p) taken_ = (p);                                                            \
                (p) = NULL;                                                                        \
                taken_;                                                                            \
        })

#define TAKE_FD(fd)                                                                                \
        ({                                                                                         \
                int taken_ = (fd);                                                                 \
                (fd) = FD_NONE;                                                                    \
                taken_;                                                                            \
        })

static inline void freep(void *p) {
        free(*(void **)p);
}

/* close(2) that is legal on FD_NONE; returns FD_NONE for assignment. */
static inline int fd_close(int fd) {
        if (fd >= 0)
                (void)close(fd);
        return FD_NONE;
}

static inline void fd_closep(int *fd) {
        *fd = fd_close(*fd);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(fd_closep)
