/* SPDX-License-Identifier: Apache-2.0 */
/* File systems, directories and files that are made for a tree that is being assembled. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "child/assemble.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

/* --- /proc --- */

#define PROC_ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Parts of /proc through which a privileged command could change the host. */
static const char *const proc_guarded[] = { "sys", "sysrq-trigger", "irq", "bus" };

int assemble_proc(Assembly *a, AssemblyStep *step, Error *error) {
        const MountAttr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
        const char *const options[] = { NULL };
        const MountAttr attr = { .attr_set = PROC_ATTRIBUTES, .propagation = MS_PRIVATE_FLAG };
        _cleanup_close_ int fd = TAKE_FD(step->mount_fd);
        int r;

        (void)a;
        if (fd < 0)
                r = build_filesystem("proc", options, PROC_ATTRIBUTES, &fd, LAYER_NONE, error);
        else
                r = sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0 ? -errno : 0;
        if (r < 0)
                return assemble_fail(step, -r, "cannot mount proc at", step->target, error);
        r = assemble_attach(step, fd, true, error);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(proc_guarded); i++)
                if (faccessat(fd, proc_guarded[i], W_OK, AT_EACCESS) == 0)
                        r = build_clone_to(fd, proc_guarded[i], fd, proc_guarded[i], &read_only,
                                           error);
        return r;
}

/* --- /dev --- */

static const char *const dev_nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };

static const struct {
        const char *name, *target;
} dev_links[] = {
        { "stdin", "/proc/self/fd/0" },  { "stdout", "/proc/self/fd/1" },
        { "stderr", "/proc/self/fd/2" }, { "fd", "/proc/self/fd" },
        { "core", "/proc/kcore" },       { "ptmx", "pts/ptmx" },
};

/* Binds a device of the host on a file of this name. */
static int dev_bind(int dev_fd, const char *source, const char *name, Error *error) {
        const MountAttr attr = { .attr_set = MOUNT_ATTR_NOSUID, .propagation = MS_PRIVATE_FLAG };
        int r = build_stub(dev_fd, name, 0444, error);

        return r < 0 ? r : build_clone_to(AT_FDCWD, source, dev_fd, name, &attr, error);
}

static int dev_fill(const Assembly *a, int dev_fd, Error *error) {
        char path[24];
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(dev_nodes); i++) {
                path[0] = '\0';
                (void)strncat(path, "/dev/", 6);
                (void)strncat(path, dev_nodes[i], 16);
                r = dev_bind(dev_fd, path, dev_nodes[i], error);
        }
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(dev_links); i++)
                r = build_link(dev_fd, dev_links[i].name, dev_links[i].target, error);
        if (r == 0)
                r = build_directory(dev_fd, "shm", 0755, error);
        if (r == 0)
                r = build_directory(dev_fd, "pts", 0755, error);
        return r == 0 && a->console ? dev_bind(dev_fd, a->console, "console", error) : r;
}

static int dev_add_terminals(int dev_fd, Error *error) {
        const char *const options[] = { "ptmxmode", "0666", "mode", "0620", NULL };
        _cleanup_close_ int fd = FD_NONE;
        int r = build_filesystem("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &fd,
                                 LAYER_DEV, error);

        return r < 0 ? r : build_attach(fd, dev_fd, "pts", error);
}

int assemble_dev(Assembly *a, AssemblyStep *step, Error *error) {
        const char *const options[] = { "mode", "0755", NULL };
        int fd = FD_NONE, r;

        r = build_filesystem("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd, LAYER_DEV,
                             error);
        if (r == 0)
                r = assemble_attach(step, fd, true, error);
        if (r == 0)
                r = dev_fill(a, fd, error);
        if (r == 0)
                r = dev_add_terminals(fd, error);
        if (r == 0)
                assemble_note_writable(fd);
        return r;
}

/* --- other file systems --- */

static const char *tmpfs_mode(mode_t mode, char buf[8]) {
        for (int i = 0; i < 4; i++)
                buf[i] = (char)('0' + (mode >> (9 - 3 * i) & 7));
        buf[4] = '\0';
        return buf;
}

int assemble_tmpfs(Assembly *a, AssemblyStep *step, Error *error) {
        char mode[8], size[24];
        const char *const options[] = { "mode", tmpfs_mode(step->mode, mode), "size",
                                        build_decimal(step->size, size), NULL };
        const char *const unlimited[] = { "mode", tmpfs_mode(step->mode, mode), NULL };
        int fd = FD_NONE, r;

        (void)a;
        r = build_filesystem("tmpfs", step->size ? options : unlimited,
                             MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd, LAYER_NONE, error);
        if (r < 0)
                return assemble_fail(step, -r, "cannot mount a tmpfs at", step->target, error);
        r = assemble_attach(step, fd, true, error);
        if (r == 0)
                assemble_note_writable(fd);
        return r;
}

int assemble_mqueue(Assembly *a, AssemblyStep *step, Error *error) {
        const char *const options[] = { NULL };
        int fd = FD_NONE, r;

        (void)a;
        r = build_filesystem("mqueue", options, 0, &fd, LAYER_NONE, error);
        if (r < 0)
                return assemble_fail(step, -r, "cannot mount mqueue at", step->target, error);
        r = assemble_attach(step, fd, true, error);
        if (r == 0)
                assemble_note_writable(fd);
        return r;
}

/* --- directories and files --- */

int assemble_directory(Assembly *a, AssemblyStep *step, Error *error) {
        char trimmed[PATH_MAX];
        AssemblyStep copy = *step;
        const char *name;
        struct stat st;
        int dir_fd, r = assemble_trim(&copy, trimmed, error);

        (void)a;
        if (r < 0)
                return r;
        dir_fd = assemble_parent(&copy, &name, error);
        if (dir_fd < 0)
                return dir_fd;
        if (mkdirat(dir_fd, name, step->mode) < 0 &&
            (errno != EEXIST || fstatat(dir_fd, name, &st, 0) < 0 || !S_ISDIR(st.st_mode)))
                r = assemble_fail(step, errno, "cannot make the directory", step->target, error);
        fd_close(dir_fd);
        return r;
}

/* Copies everything that the step's descriptor contains to a new file. */
static int data_copy(const AssemblyStep *step, int fd, Error *error) {
        static char block[64 * 1024];

        for (;;) {
                ssize_t n = read(step->fd, block, sizeof(block));

                if (n == 0)
                        return 0;
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 || sys_write_all(fd, block, (size_t)n) < 0)
                        return assemble_fail(step, errno, "cannot write the file", step->target,
                                             error);
        }
}

int assemble_file(Assembly *a, AssemblyStep *step, Error *error) {
        const char *name;
        int dir_fd = assemble_parent(step, &name, error), fd, r;

        (void)a;
        if (dir_fd < 0)
                return dir_fd;
        /* An untrusted workspace may have a FIFO there, and opening that must not wait. */
        fd = openat(dir_fd, name,
                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                    step->mode);
        fd_close(dir_fd);
        if (fd < 0)
                return assemble_fail(step, errno, "cannot make the file", step->target, error);
        r = data_copy(step, fd, error);
        fd_close(fd);
        fd_close(step->fd);
        return r;
}

/* The file lies in the scratch, which is not visible inside, and is bound to its place. */
int assemble_data(Assembly *a, AssemblyStep *step, Error *error) {
        MountAttr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
        char name[32] = "data-", number[24];
        int fd, r;

        (void)strncat(name, build_decimal((uint64_t)(step - a->steps), number), 24);
        fd = openat(child_state.scratch_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                    step->mode);
        if (fd < 0)
                return assemble_fail(step, errno, "cannot make a file for", step->target, error);
        r = data_copy(step, fd, error);
        fd_close(fd);
        fd_close(step->fd);
        if (r < 0)
                return r;
        if (step->flags & ASSEMBLY_READ_ONLY)
                attr.attr_set |= MOUNT_ATTR_RDONLY;
        fd = sys_open_tree(child_state.scratch_fd, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (fd < 0 || sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
                return assemble_fail(step, errno, "cannot bind to", step->target, error);
        r = assemble_attach(step, fd, false, error);
        if (r == 0 && !(step->flags & ASSEMBLY_READ_ONLY))
                assemble_note_writable(fd);
        return r;
}

int assemble_symlink(Assembly *a, AssemblyStep *step, Error *error) {
        char present[PATH_MAX];
        const char *name;
        int dir_fd = assemble_parent(step, &name, error), r = 0;
        ssize_t n;

        (void)a;
        if (dir_fd < 0)
                return dir_fd;
        if (symlinkat(step->source, dir_fd, name) < 0) {
                r = errno;
                n = r == EEXIST ? readlinkat(dir_fd, name, present, sizeof(present)) : -1;
                if (n >= 0 && (size_t)n == strlen(step->source) &&
                    memcmp(present, step->source, (size_t)n) == 0)
                        r = 0;
                else
                        r = assemble_fail(step, r, "cannot make the symlink", step->target, error);
        }
        fd_close(dir_fd);
        return r;
}

/* fchmodat2(2) is younger than most kernels (Linux 6.6). Without it, the file must be readable. */
int assemble_chmod(Assembly *a, AssemblyStep *step, Error *error) {
        _cleanup_close_ int fd = assemble_open(step->target, O_PATH);
        _cleanup_close_ int readable = FD_NONE;

        (void)a;
        if (fd >= 0 && syscall(SYS_fchmodat2, fd, "", step->mode, AT_EMPTY_PATH) == 0)
                return 0;
        if (fd >= 0 && errno == ENOSYS)
                readable = assemble_open(step->target, O_RDONLY | O_NONBLOCK);
        return readable >= 0 && fchmod(readable, step->mode) == 0
                       ? 0
                       : assemble_fail(step, errno, "cannot set the permissions of", step->target,
                                       error);
}
