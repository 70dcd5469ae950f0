/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

#include "streams/stdio.h"

#ifndef PIDFS_MAGIC
#define PIDFS_MAGIC 0x50494446
#endif
#ifndef MQUEUE_MAGIC
#define MQUEUE_MAGIC 0x19800202
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

static bool stdio_is_among(unsigned long type, const unsigned long *types, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (types[i] == type)
                        return true;
        return false;
}

/* A regular file may be an object of the kernel. A namespace's file passes the namespace on;
 * writing to a file of /proc or /sys changes the host. The command could open a file of these again
 * for writing (/proc/self/fd/0), so its mode must not allow that to anybody. A file system without
 * any blocks is the kernel's own, unless it is one of those that hold data and need not count it.
 */
static bool is_harmless_file(int fd, const struct stat *st, int flags) {
        static const unsigned long of_data[] = { TMPFS_MAGIC,      RAMFS_MAGIC,
                                                 HUGETLBFS_MAGIC,  OVERLAYFS_SUPER_MAGIC,
                                                 FUSE_SUPER_MAGIC, V9FS_MAGIC };
        static const unsigned long of_objects[] = { NSFS_MAGIC, PIDFS_MAGIC, ANON_INODE_FS_MAGIC,
                                                    BPF_FS_MAGIC, MQUEUE_MAGIC };
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return false;
        if (stdio_is_among((unsigned long)fs.f_type, of_objects, ELEMENTSOF(of_objects)))
                return false;
        if (fs.f_blocks > 0 ||
            stdio_is_among((unsigned long)fs.f_type, of_data, ELEMENTSOF(of_data)))
                return true;
        return (flags & O_ACCMODE) == O_RDONLY && (st->st_mode & (S_IROTH | 0222)) == S_IROTH;
}

/* A connected stream has one peer. An Internet socket belongs to the host's network and can be
 * connected anew; a local datagram socket can send to others. */
static bool is_harmless_socket(int fd) {
        struct sockaddr_un peer;
        socklen_t size = sizeof(int), peer_size = sizeof(peer);
        int domain = 0, type = 0;

        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
               getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type != SOCK_DGRAM &&
               getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0;
}

/* One that was hung up answers every ioctl by EIO. */
static bool is_pty(const struct stat *st) {
        /* See Documentation/admin-guide/devices.txt. */
        return major(st->st_rdev) >= 136 && major(st->st_rdev) <= 143;
}

/* A device is an interface of the kernel: /dev/fuse, /dev/kvm, /dev/net/tun, /dev/kmsg. Whoever has
 * the master of a pty types into that terminal. A terminal has a driver of its own, but the command
 * gets another in its place. */
static bool is_harmless_device(int fd, const struct stat *st) {
        enum { MEMORY = 1 };
        /* null, zero, full, random, urandom */
        static const unsigned memory_minors[] = { 3, 5, 7, 8, 9 };
        struct termios mode;
        unsigned number;

        for (size_t i = 0; i < ELEMENTSOF(memory_minors); i++)
                if (st->st_rdev == makedev(MEMORY, memory_minors[i]))
                        return true;
        if (ioctl(fd, TIOCGPTN, &number) == 0)
                return false;
        /* Not isatty(), whose errno differs between C libraries. */
        return tcgetattr(fd, &mode) == 0 || (errno == EIO && is_pty(st));
}

/* A directory leads out (openat(0, "..")); a pidfd acts on a process of the host. */
bool stdio_is_harmless(int fd) {
        const int flags = fcntl(fd, F_GETFL);
        struct stat st;

        if (flags < 0 || flags & O_PATH || fstat(fd, &st) < 0)
                return false;
        if (S_ISREG(st.st_mode))
                return is_harmless_file(fd, &st, flags);
        if (S_ISSOCK(st.st_mode))
                return is_harmless_socket(fd);
        return S_ISCHR(st.st_mode) ? is_harmless_device(fd, &st) : S_ISFIFO(st.st_mode);
}

/* Of a closed fd 0 to 2 main() has kept the place. */
static bool is_closed(int fd) {
        struct stat st;
        int flags = fcntl(fd, F_GETFL);

        return flags < 0 || (flags & O_PATH && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode));
}

/* /dev/null takes its place. */
static int open_null(int fd) {
        (void)close(fd);
        return open("/dev/null", fd ? O_WRONLY : O_RDONLY) == fd ? 0 : -errno;
}

int stdio_refuse(int fd, Error *reterr) {
        static const char *const names[] = { "stdin", "stdout", "stderr" };

        const int r = error_set(reterr, ERROR_USAGE, 0,
                                "%s is not a pipe, a terminal, a connected local socket, /dev/null "
                                "or the like, or a file of a disk, and may give the command a way "
                                "out of the sandbox",
                                names[fd]);

        return error_cure(reterr, r, "Put a pipe between: ... | holt run ... | cat");
}

int stdio_open(Error *reterr) {
        for (int fd = 0; fd <= 2; fd++) {
                if (is_closed(fd) && open_null(fd) < 0)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot open /dev/null");
                if (!stdio_is_harmless(fd))
                        return stdio_refuse(fd, reterr);
        }
        return 0;
}
