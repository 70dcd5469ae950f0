/* SPDX-License-Identifier: Apache-2.0 */
#include "base/beneath.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/paths.h"
#include "base/sys.h"

enum { LINKS_MAX = 40 }; /* the kernel's own limit */

/* Opens the directory that path leads to, and follows links. real becomes the path by which the
 * kernel knows the directory. */
static int open_real(const char *path, char real[PATH_MAX], int *ret_fd) {
        _cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : path_of_fd(fd, real);

        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

static bool is_untrusted(const char *real, const StrList *untrusted) {
        for (size_t i = 0; i < untrusted->count; i++) {
                char other[PATH_MAX];
                int fd = FD_NONE;

                if (open_real(untrusted->items[i], other, &fd) < 0)
                        continue;
                fd_close(fd);
                if (path_below(real, other))
                        return true;
        }
        return false;
}

static int open_rest(int dir_fd, const char *rest, int flags, mode_t mode, bool local) {
        /* Without O_NONBLOCK, opening a FIFO would block until somebody writes to it. */
        int more = flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK;
        int fd = sys_openat2(dir_fd, rest, (uint64_t)(unsigned)(flags | more), mode,
                             RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
                                     (local ? RESOLVE_NO_XDEV : 0));

        return fd < 0 ? -errno : fd;
}

/* The state of a walk along a path. */
typedef struct Walk {
        int dir_fd;
        char rest[PATH_MAX];
        unsigned links;
        int flags;  /* the caller's flags, and O_DIRECTORY if the path ends in a slash */
        bool local; /* do not look up names in file systems of other hosts */
} Walk;

/* Types of file systems in which a look-up may reach another host or a daemon (statfs(2)). */
static const unsigned remote_types[] = {
        0x187,      /* autofs */
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB 2 */
        0x5346414f, /* AFS */
        0x6b414653, /* kAFS */
        0x73757245, /* Coda */
        0x00c36400, /* Ceph */
        0x01021997, /* 9p */
        0x65735546, /* FUSE */
};

/* Whether dir_fd is in such a file system. The root directory's own does not count, unless it is
 * autofs. */
static bool is_remote(int dir_fd) {
        struct stat dir, root;
        struct statfs fs;

        if (fstatfs(dir_fd, &fs) < 0 || fstat(dir_fd, &dir) < 0 || stat("/", &root) < 0)
                return true;
        for (size_t i = 0; i < ELEMENTSOF(remote_types); i++)
                if ((unsigned)fs.f_type == remote_types[i])
                        return dir.st_dev != root.st_dev || fs.f_type == 0x187;
        return false;
}

static int walk_from_root(Walk *walk) {
        fd_close(walk->dir_fd);
        walk->dir_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return walk->dir_fd < 0 ? -errno : 0;
}

/* Removes the next name from the rest and returns it in name; "" at the end. */
static int beneath_walk_take(Walk *walk, char name[NAME_MAX + 1]) {
        const char *start = walk->rest + strspn(walk->rest, "/");
        const size_t length = strcspn(start, "/");
        const char *next = start + length + strspn(start + length, "/");

        if (length > NAME_MAX)
                return -ENAMETOOLONG;
        memcpy(name, start, length);
        name[length] = '\0';
        if (start[length] == '/' && !next[0])
                walk->flags |= O_DIRECTORY;
        memmove(walk->rest, next, strlen(next) + 1);
        return 0;
}

/* Applies the kernel's rule of fs.protected_symlinks: in a directory such as /tmp, a link of
 * another user is not followed. */
static bool is_foreign_link(int dir_fd, const struct stat *link) {
        struct stat dir;

        return fstat(dir_fd, &dir) < 0 ||
               ((dir.st_mode & (S_ISVTX | S_IWOTH)) == (S_ISVTX | S_IWOTH) &&
                link->st_uid != geteuid() && link->st_uid != dir.st_uid);
}

/* Puts the text of a link in front of the rest. */
static int beneath_walk_link(Walk *walk, int link_fd, const struct stat *link) {
        char text[PATH_MAX];
        ssize_t n = readlinkat(link_fd, "", text, sizeof(text) - 1);
        const size_t rest = strlen(walk->rest), slash = rest > 0;

        if (n <= 0)
                return n < 0 ? -errno : -ENOENT;
        if (++walk->links > LINKS_MAX)
                return -ELOOP;
        if (is_foreign_link(walk->dir_fd, link))
                return -EACCES;
        if ((size_t)n + slash + rest >= sizeof(walk->rest))
                return -ENAMETOOLONG;
        memmove(walk->rest + n + slash, walk->rest, rest + 1);
        memcpy(walk->rest, text, (size_t)n);
        if (slash)
                walk->rest[n] = '/';
        return walk->rest[0] == '/' ? walk_from_root(walk) : 0;
}

static bool is_in_proc(int fd) {
        struct statfs fs;

        return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Walks one step. Returns 1 if more steps follow, 0 with *ret set to the file, or a negative errno.
 * The kernel follows a link in /proc, because the link's text need not name its target, and nobody
 * inside can have made the link. */
static int walk_step(Walk *walk, const char *name, mode_t mode, int *ret) {
        const bool last = !walk->rest[0], follows = is_in_proc(walk->dir_fd);
        _cleanup_close_ int fd = openat(walk->dir_fd, name,
                                        O_PATH | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW));
        struct stat st = { 0 };

        if (fd < 0 && (!last || errno != ENOENT))
                return -errno;
        if (fd >= 0 && fstat(fd, &st) < 0)
                return -errno;
        if (fd >= 0 && S_ISLNK(st.st_mode) && !(last && walk->flags & O_NOFOLLOW)) {
                int r = beneath_walk_link(walk, fd, &st);

                return r < 0 ? r : 1;
        }
        if (last) {
                *ret = openat(walk->dir_fd, name,
                              walk->flags | O_CLOEXEC | (follows ? 0 : O_NOFOLLOW), mode);
                return *ret < 0 ? -errno : 0;
        }
        (void)close(walk->dir_fd);
        walk->dir_fd = TAKE_FD(fd);
        return 1;
}

/* Reads each link and walks its text, because a link of the caller's may lead into an untrusted
 * directory. Links in the root directory (/home, /tmp) belong to the system and are trusted. */
static int walk_open(Walk *walk, const StrList *untrusted, mode_t mode, int *ret) {
        char name[NAME_MAX + 1], real[PATH_MAX], rest[NAME_MAX + 1 + PATH_MAX];
        int r = beneath_walk_take(walk, name);

        if (r < 0)
                return r;
        if (!name[0] || streq(name, ".")) {
                if (walk->rest[0])
                        return 1;
                *ret = openat(walk->dir_fd, ".", walk->flags | O_CLOEXEC, mode);
                return *ret < 0 ? -errno : 0;
        }
        if (walk->local && is_remote(walk->dir_fd))
                return -EREMOTE;
        r = streq(name, "..") ? 0 : path_of_fd(walk->dir_fd, real);
        if (r < 0)
                return r;
        if (streq(name, "..") || streq(real, "/") || !is_untrusted(real, untrusted))
                return walk_step(walk, name, mode, ret);
        (void)snprintf(rest, sizeof(rest), "%s%s%s", name, walk->rest[0] ? "/" : "", walk->rest);
        *ret = open_rest(walk->dir_fd, rest, walk->flags, mode, walk->local);
        return *ret < 0 ? *ret : 0;
}

static int beneath_walk(Walk *walk, const char *path, const StrList *untrusted, mode_t mode) {
        int fd = FD_NONE, r;

        if (strlen(path) >= sizeof(walk->rest))
                return -ENAMETOOLONG;
        (void)strcpy(walk->rest, path);
        r = walk_from_root(walk);
        for (r = r < 0 ? r : 1; r > 0;)
                r = walk_open(walk, untrusted, mode, &fd);
        fd_close(walk->dir_fd);
        return r < 0 ? r : fd;
}

int beneath_open_local(const char *path, const StrList *untrusted) {
        Walk walk = { .dir_fd = FD_NONE, .flags = O_PATH, .local = true };

        return beneath_walk(&walk, path, untrusted, 0);
}

int beneath_open(const char *path, const StrList *untrusted, int flags, mode_t mode) {
        Walk walk = { .dir_fd = FD_NONE, .flags = flags };
        int fd;

        /* Most paths contain no link, so one call opens them. */
        if (flags & O_PATH) {
                fd = sys_openat2(AT_FDCWD, path, (uint64_t)(unsigned)(flags | O_CLOEXEC), 0,
                                 RESOLVE_NO_SYMLINKS);
                if (fd >= 0)
                        return fd;
        }
        if (untrusted->count == 0) {
                fd = open(path, flags | O_CLOEXEC, mode);
                return fd < 0 ? -errno : fd;
        }
        return beneath_walk(&walk, path, untrusted, mode);
}
