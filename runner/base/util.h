/* SPDX-License-Identifier: Apache-2.0 */
/* Small macros that every folder uses, above all for ownership by the cleanup attribute. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))
#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))
#define _noreturn_ __attribute__((noreturn))

/* Marks a buffer that is always written before it is read, so that -ftrivial-auto-var-init does not
 * zero it first. Use it for large buffers on hot paths. */
#if __has_attribute(uninitialized)
#define _uninitialized_ __attribute__((uninitialized))
#else
#define _uninitialized_
#endif

/* The value of an fd that is not open. It is not -1, so that errors and uninitialised values stay
 * distinguishable. */
#define FD_NONE (-9)

/* Gives up ownership of the pointer: the variable's cleanup attribute then finds NULL. */
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

/* Calls each function of an array with these arguments, until one returns nonzero. The value is
 * that result, or 0. */
#define RUN_STEPS(steps, ...)                                                                      \
        ({                                                                                         \
                int step_result_ = 0;                                                              \
                for (size_t step_ = 0; step_result_ == 0 && step_ < ELEMENTSOF(steps); step_++)    \
                        step_result_ = (steps)[step_](__VA_ARGS__);                                \
                step_result_;                                                                      \
        })

static inline void freep(void *p) {
        free(*(void **)p);
}

/* close(2) that accepts FD_NONE. Returns FD_NONE for assignment. */
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
