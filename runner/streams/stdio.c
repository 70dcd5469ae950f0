/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/stdio.h"

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

#ifndef PIDFS_MAGIC
#define PIDFS_MAGIC 0x50494446
#endif
#ifndef MQUEUE_MAGIC
#define MQUEUE_MAGIC 0x19800202
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

void fd_facts(int fd, FdFacts *ret) {
        ret->flags = fcntl(fd, F_GETFL);
        if (ret->flags < 0 || fstat(fd, &ret->st) < 0)
                ret->st = (struct stat){ 0 };
}

void fd_facts_stdio(FdFacts ret[3]) {
        for (int fd = 0; fd <= 2; fd++)
                fd_facts(fd, &ret[fd]);
}

int fd_facts_access(const FdFacts *facts) {
        return facts->flags < 0 ? -1 : facts->flags & O_ACCMODE;
}

bool fd_facts_same_inode(const FdFacts *a, const FdFacts *b) {
        return a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
}

static bool stdio_is_among(unsigned long type, const unsigned long *types, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (types[i] == type)
                        return true;
        return false;
}

/* Whether a regular file holds only data. Some regular files are kernel objects. A namespace's file
 * gives access to the namespace, and writing to a file of /proc or /sys changes the host. The
 * command could open such a file again for writing (/proc/self/fd/0), so its mode must allow that
 * to nobody. A file system without any blocks belongs to the kernel, except for those in of_data:
 * they hold data without counting blocks. */
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

/* Whether a socket has exactly one peer, as a connected stream does. An Internet socket belongs to
 * the host's network and can be connected again. A local datagram socket can send to others. */
static bool is_harmless_socket(int fd) {
        struct sockaddr_un peer;
        socklen_t size = sizeof(int), peer_size = sizeof(peer);
        int domain = 0, type = 0;

        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
               getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type != SOCK_DGRAM &&
               getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0;
}

/* Whether the device is a pty. After a hangup, every ioctl on it fails with EIO. */
static bool is_pty(const struct stat *st) {
        /* See Documentation/admin-guide/devices.txt. */
        return major(st->st_rdev) >= 136 && major(st->st_rdev) <= 143;
}

/* Whether a device gives no access to the host. Devices are interfaces of the kernel: /dev/fuse,
 * /dev/kvm, /dev/net/tun, /dev/kmsg. The master of a pty can type into its terminal. A terminal has
 * a driver too, but the command gets another terminal in its place. */
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
        /* isatty() would not do: its errno differs between C libraries. */
        return tcgetattr(fd, &mode) == 0 || (errno == EIO && is_pty(st));
}

/* Refuses directories, which lead out (openat(0, "..")), and pidfds, which act on processes of the
 * host. */
static bool facts_are_harmless(int fd, const FdFacts *facts) {
        const struct stat *st = &facts->st;

        if (facts->flags < 0 || facts->flags & O_PATH)
                return false;
        if (S_ISREG(st->st_mode))
                return is_harmless_file(fd, st, facts->flags);
        if (S_ISSOCK(st->st_mode))
                return is_harmless_socket(fd);
        return S_ISCHR(st->st_mode) ? is_harmless_device(fd, st) : S_ISFIFO(st->st_mode);
}

bool stdio_is_harmless(int fd) {
        FdFacts facts;

        fd_facts(fd, &facts);
        return facts_are_harmless(fd, &facts);
}

/* Whether the fd was closed at the start. main() opens a placeholder for each closed fd from 0 to
 * 2. */
static bool is_closed(const FdFacts *facts) {
        return facts->flags < 0 || (facts->flags & O_PATH && S_ISCHR(facts->st.st_mode));
}

/* Replaces the placeholder by /dev/null. */
static int open_null(int fd) {
        (void)close(fd);
        return open("/dev/null", fd ? O_WRONLY : O_RDONLY) == fd ? 0 : -errno;
}

int stdio_refuse(int fd, Error *reterr) {
        static const char *const names[] = { "stdin", "stdout", "stderr" };

        const int r = error_set(
                reterr, ERROR_USAGE, 0,
                "%s may give the command a way out of the sandbox: it is not a pipe, a terminal, a "
                "connected local socket, a file on a disk, or a device such as /dev/null",
                names[fd]);

        return error_cure(reterr, r, "Put a pipe between them: ... | holt run ... | cat");
}

/* Replaces fd by /dev/null if it is closed. Returns 0 or a negative errno. */
static int stdio_fill(int fd, FdFacts *facts) {
        int r;

        fd_facts(fd, facts);
        if (!is_closed(facts))
                return 0;
        r = open_null(fd);
        fd_facts(fd, facts);
        return r;
}

int stdio_open(FdFacts *ret, Error *reterr) {
        for (int fd = 0; fd <= 2; fd++) {
                FdFacts facts;
                int r = stdio_fill(fd, &facts);

                if (r < 0)
                        return error_set(reterr, ERROR_SETUP, -r, "cannot open /dev/null");
                if (!facts_are_harmless(fd, &facts))
                        return stdio_refuse(fd, reterr);
                if (ret)
                        ret[fd] = facts;
        }
        return 0;
}
