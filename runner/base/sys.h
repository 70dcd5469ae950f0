/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that the oldest supported C libraries (glibc 2.31, musl 1.2) do not wrap, and
 * constants that are newer than their headers. Each wrapper returns -1 and sets errno, like the
 * libc. The number above each is the kernel version that brought the call. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

/* linux/fs_context and linux/mount.h of Linux 5.2; musl does not define them. */
#ifndef FSOPEN_CLOEXEC
#define FSOPEN_CLOEXEC 1
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif
#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif
#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* linux/mount.h defines this struct since Linux 5.12. holt has its own definition under another
 * name, because older headers do not define it. */
typedef struct MountAttr {
        uint64_t attr_set, attr_clr, propagation, userns_fd;
} MountAttr;

/* 5.2 */
static inline int sys_open_tree(int dirfd, const char *path, unsigned flags) {
        return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

/* 5.2 */
static inline int sys_move_mount(int from_fd, const char *from, int to_fd, const char *to,
                                 unsigned flags) {
        return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

/* 5.2 */
static inline int sys_fsopen(const char *type) {
        return (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

/* 5.2 */
static inline int sys_fsconfig(int fd, unsigned command, const char *key, const char *value) {
        return (int)syscall(SYS_fsconfig, fd, command, key, value, 0);
}

/* 5.2 */
static inline int sys_fsmount(int fd, unsigned attributes) {
        return (int)syscall(SYS_fsmount, fd, FSMOUNT_CLOEXEC, attributes);
}

/* 5.12 */
static inline int sys_mount_setattr(int fd, const char *path, unsigned flags,
                                    const MountAttr *attr) {
        return (int)syscall(SYS_mount_setattr, fd, path, flags, attr, sizeof(*attr));
}

static inline int sys_pivot_root(const char *new_root, const char *put_old) {
        return (int)syscall(SYS_pivot_root, new_root, put_old);
}

/* 5.6 */
static inline int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t mode,
                              uint64_t resolve) {
        struct open_how how = { .flags = flags, .mode = mode, .resolve = resolve };

        return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/* 5.6. Opens a path that may come from an attacker: it cannot leave dir_fd, and no link is
 * followed. O_CLOEXEC is added. */
static inline int sys_open_beneath(int dir_fd, const char *path, int flags) {
        return sys_openat2(dir_fd, path, (uint64_t)(unsigned)(flags | O_CLOEXEC), 0,
                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* 5.3 */
static inline int sys_pidfd_open(pid_t pid) {
        return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* 5.1 */
static inline int sys_pidfd_send_signal(int pidfd, int signal) {
        return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

static inline int sys_execveat(int fd, const char *path, const char *const *argv,
                               const char *const *env, int flags) {
        return (int)syscall(SYS_execveat, fd, path, argv, env, flags);
}

static inline int sys_memfd_create(const char *name, unsigned flags) {
        return (int)syscall(SYS_memfd_create, name, flags);
}

static inline int sys_seccomp(unsigned operation, unsigned flags, const void *args) {
        return (int)syscall(SYS_seccomp, operation, flags, args);
}

/* Returns 0 if two fds of this process refer to the same open file, otherwise a positive number.
 * Returns -1 if the kernel has no CONFIG_KCMP or a container's filter forbids the call. */
static inline int sys_same_file(int fd, int other_fd) {
        return (int)syscall(SYS_kcmp, getpid(), getpid(), 0 /* KCMP_FILE */, fd, other_fd);
}

/* The start of struct statx of statx(2), up to the last member used here. linux/stat.h defines it,
 * but cannot be included next to musl's sys/stat.h since musl 1.2.5. */
typedef struct SysStatx {
        uint32_t mask, blksize;
        uint64_t attributes;
        uint8_t rest[240];
} SysStatx;
static_assert(sizeof(SysStatx) == 256, "the kernel writes all of it");

/* Whether path is the root of a mount in the mount namespace of dir_fd (Linux 5.8). "" means dir_fd
 * itself. A symlink is not followed. Returns 1, 0 or a negative errno. */
static inline int sys_is_mount_root(int dir_fd, const char *path) {
        enum { ATTR_MOUNT_ROOT = 0x2000 };
        SysStatx st = { 0 };

        if (syscall(SYS_statx, dir_fd, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, 0, &st) < 0)
                return -errno;
        return (st.attributes & ATTR_MOUNT_ROOT) != 0;
}

/* Repeats write(2) until everything is written. Returns 0 or the negative errno. */
static inline int sys_write_all(int fd, const char *data, size_t length) {
        while (length > 0) {
                ssize_t n = write(fd, data, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                length -= (size_t)n;
        }
        return 0;
}

/* Opens /dev/null for each of fd 0 to 2 that is closed. Otherwise the next file to be opened, such
 * as a keeper's socket, would get that number, and messages would be written to it. O_PATH makes
 * the replacement neither readable nor writable. */
static inline void sys_keep_places(void) {
        for (int fd = 0; fd <= 2; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        (void)!open("/dev/null", O_PATH | O_CLOEXEC);
}
