/* SPDX-License-Identifier: Apache-2.0 */
/* The single pieces of the sandbox's tree: file systems, mounts, directories, files and links. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "child/build.h"

/* --- file systems and mounts --- */

int build_filesystem(const char *type, const char *const *options, unsigned attributes, int *ret_fd,
                     Layer layer, Error *error) {
        int fs = sys_fsopen(type), mount = -1, saved;

        if (fs < 0)
                return step_fail(error, layer, errno, "cannot make a file system of type", type);
        for (; *options; options += 2)
                if (sys_fsconfig(fs, FSCONFIG_SET_STRING, options[0], options[1]) < 0)
                        return step_fail(error, layer, errno, "cannot set the mount option",
                                         options[0]);
        if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) == 0)
                mount = sys_fsmount(fs, attributes);
        saved = errno;
        fd_close(fs);
        if (mount < 0)
                return step_fail(error, layer, saved, "cannot mount a file system of type", type);
        *ret_fd = mount;
        return 0;
}

int build_attach(int mount_fd, int dir_fd, const char *target, Error *error) {
        if (sys_move_mount(mount_fd, "", dir_fd, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot attach a mount at", target);
        return 0;
}

int build_clone_to(int source_fd, const char *source, int target_fd, const char *target,
                   const MountAttr *attr, Error *error) {
        int fd = sys_open_tree(source_fd, source,
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

        if (fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot clone", source);
        if (attr && sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, attr) < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot set the flags of", source);
        return build_attach(fd, target_fd, target, error);
}

/* --- entries of a directory --- */

int build_directory(int dir_fd, const char *path, mode_t mode, Error *error) {
        if (mkdirat(dir_fd, path, mode) < 0 && errno != EEXIST)
                return step_fail(error, LAYER_MOUNT, errno, "cannot make the directory", path);
        return 0;
}

int build_stub(int dir_fd, const char *path, mode_t mode, Error *error) {
        if (mknodat(dir_fd, path, S_IFREG | mode, 0) < 0 && errno != EEXIST)
                return step_fail(error, LAYER_MOUNT, errno, "cannot make the file", path);
        return 0;
}

int build_link(int dir_fd, const char *path, const char *target, Error *error) {
        if (symlinkat(target, dir_fd, path) < 0 && errno != EEXIST)
                return step_fail(error, LAYER_MOUNT, errno, "cannot make the symlink", path);
        return 0;
}

/* A short write means that the caller's hard limit of file sizes was reached. */
int build_write_parts(int dir_fd, const char *path, const struct iovec *parts, int count,
                      Error *error) {
        int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        ssize_t n = fd < 0 ? -1 : writev(fd, parts, count);
        size_t size = 0;

        for (int i = 0; i < count; i++)
                size += parts[i].iov_len;
        if (n != (ssize_t)size)
                return step_fail(error, LAYER_MOUNT, n < 0 ? errno : EFBIG, "cannot write", path);
        fd_close(fd);
        return 0;
}

int build_write_text(int dir_fd, const char *path, const char *text, size_t size, Error *error) {
        const struct iovec part = { (void *)(uintptr_t)text, size };

        return build_write_parts(dir_fd, path, &part, 1, error);
}

/* --- mount points --- */

/* One step of build_target(): makes `name` in *dir_fd and enters it, unless it is the last part. */
static int make_part(int root_fd, int *dir_fd, const char *name, bool last, bool directory,
                     Error *error) {
        int r, fd;

        if (last && !directory)
                return build_stub(*dir_fd, name, 0644, error);
        r = build_directory(*dir_fd, name, 0755, error);
        if (r < 0 || last)
                return r;
        fd = sys_open_beneath(*dir_fd, name, O_PATH | O_DIRECTORY);
        if (fd < 0)
                return step_fail(error, LAYER_NONE, errno,
                                 errno == ELOOP ? "a symlink is in the way, at" : "cannot enter",
                                 name);
        if (*dir_fd != root_fd)
                fd_close(*dir_fd);
        *dir_fd = fd;
        return 0;
}

int build_target(int root_fd, const char *path, bool directory, Error *error) {
        char name[NAME_MAX + 1];
        int dir_fd = root_fd, r = 0;

        while (r == 0 && *path) {
                size_t length = strcspn(path, "/");

                if (length >= sizeof(name)) {
                        r = step_fail(error, LAYER_NONE, ENAMETOOLONG, "cannot make", path);
                        break;
                }
                memcpy(name, path, length);
                name[length] = '\0';
                path += length;
                path += *path == '/';
                r = make_part(root_fd, &dir_fd, name, *path == '\0', directory, error);
        }
        if (dir_fd != root_fd)
                fd_close(dir_fd);
        return r;
}

/* --- numbers --- */

const char *build_decimal(uint64_t value, char buf[24]) {
        size_t at = 23;

        buf[at] = '\0';
        do {
                buf[--at] = (char)('0' + value % 10);
                value /= 10;
        } while (value);
        return buf + at;
}
