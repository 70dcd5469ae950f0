/* SPDX-License-Identifier: Apache-2.0 */
/* Files that must be missing, unreadable or read-only inside. Nothing is ever written to a file of
 * the host: opening it for writing is proof enough. */
#include "hostile.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* A masked file of /proc is the null device or an empty file. */
static void not_null(int fd) {
        struct stat st;

        if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
                held("masked");
}

static void read_file(char **args) {
        int fd = open(args[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        char buf[8192]; /* /dev/kmsg gives only whole records. */
        ssize_t n;

        if (fd < 0)
                held("%s", errno_name(errno));
        not_null(fd);
        n = read(fd, buf, sizeof(buf));
        if (n < 0)
                held("%s", errno_name(errno));
        if (n == 0)
                held("empty");
        broken("read %zd bytes", n);
}

static void write_file(char **args) {
        int fd = open(args[0], O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0)
                held("%s", errno_name(errno));
        not_null(fd);
        broken("open for writing");
}

static void open_file(char **args) {
        got(open(args[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

static void create_file(char **args) {
        int fd = open(args[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

        if (fd >= 0)
                (void)unlink(args[0]);
        got(fd);
}

static void list_directory(char **args) {
        DIR *dir = opendir(args[0]);
        struct dirent *entry;

        if (!dir)
                held("%s", errno_name(errno));
        while ((entry = readdir(dir)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        broken("found %s", entry->d_name);
        held("empty");
}

static void move(char **args) {
        got(rename(args[0], args[1]));
}

static void swap(char **args) {
        got(syscall(SYS_renameat2, AT_FDCWD, args[0], AT_FDCWD, args[1], 2 /* RENAME_EXCHANGE */));
}

static void delete_file(char **args) {
        got(unlink(args[0]));
}

/* Makes a second name for a guarded file, without the guard. */
static void second_name(char **args) {
        got(link(args[0], args[1]));
}

static void device(const char *path, mode_t type, dev_t dev) {
        if (mknod(path, type | 0666, dev) < 0)
                held("%s", errno_name(errno));
        (void)unlink(path);
        broken("made it");
}

static void make_char_device(char **args) {
        device(args[0], S_IFCHR, makedev(1, 3));
}

static void make_block_device(char **args) {
        device(args[0], S_IFBLK, makedev(7, 0));
}

/* CVE-2019-5736: holds the program of a process by O_PATH, and opens it for writing once no process
 * runs it. */
static void overwrite_exe(char **args) {
        char path[64];
        int fd, w;

        fd = open(args[0], O_PATH | O_CLOEXEC);
        if (fd < 0)
                held("%s", errno_name(errno));
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        w = open(path, O_WRONLY | O_CLOEXEC);
        if (w < 0 && errno == ETXTBSY)
                broken("only that it runs stands in the way: ETXTBSY");
        got(w);
}

/* "Shocker": opens the root of the file system of args[0] by its inode number, whatever is mounted
 * over it. */
static void by_handle(char **args) {
        struct {
                uint32_t bytes;
                int32_t type;
                uint32_t inode, generation;
        } handle = { 8, 1 /* FILEID_INO32_GEN */, 2, 0 };
        int mount_fd = open(args[0], O_RDONLY | O_CLOEXEC);

        if (mount_fd < 0)
                untried("%s: %s", args[0], errno_name(errno));
        got(syscall(SYS_open_by_handle_at, mount_fd, &handle, O_RDONLY | O_CLOEXEC));
}

static const Attack attacks[] = {
        { "read", read_file, 1 },
        { "open", open_file, 1 },
        { "write", write_file, 1 },
        { "create", create_file, 1 },
        { "list", list_directory, 1 },
        { "rename", move, 2 },
        { "exchange", swap, 2 },
        { "unlink", delete_file, 1 },
        { "link", second_name, 2 },
        { "char-device", make_char_device, 1 },
        { "block-device", make_block_device, 1 },
        { "overwrite-exe", overwrite_exe, 1 },
        { "by-handle", by_handle, 1 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
