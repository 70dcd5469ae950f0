/* SPDX-License-Identifier: Apache-2.0 */
/* The child's first half: it turns a copy of the host's mounts into the sandbox's own tree.
 *
 * Theory of operation. One tmpfs, the scratch, is mounted over the host's /proc, which no later
 * step needs. Its directory "root" becomes the new root. Its directories "tmp", "home" and so on
 * are bound to their places, so that one size bounds all private memory.
 *
 * First, all mount points in the root are made and the system is attached. Then one recursive
 * mount_setattr(2) makes all of that read-only. Then come the writable places, the devices and the
 * caller's own mounts. Finally the child calls pivot_root(2) and unmounts the host's tree. The
 * scratch lies in that tree, so both go at once: each unmounting waits for the other processors.
 *
 * The memory is the launcher's (clone.h), so nothing here allocates, logs, or calls a library. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "child/build.h"
#include "child/identity.h"

/* sys/mount.h and linux/mount.h cannot be included together. */
#define MNT_DETACH_FLAG 2
#define MS_BIND_FLAG 4096UL
#define MS_REC_FLAG 16384UL

enum { SYSTEM_PATH_MAX = 320 }; /* Bytes: NAME_MAX below a directory of tree_shown[]. */

ChildState child_state;

static bool build_degraded(const Launch *launch, Layer layer) {
        return launch->layers.missing & LAYER_BIT(layer);
}

/* --- identity --- */

static int write_file(const char *path, const char *text, Error *error) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        ssize_t n = -1;

        if (fd >= 0)
                n = write(fd, text, strlen(text));
        if (n < 0)
                return step_fail(error, LAYER_USER, errno, "cannot write", path);
        fd_close(fd);
        return 0;
}

/* Returns "1000 HOST 1\n"; stdio cannot be used here. */
static const char *map_line(unsigned host, char buf[32]) {
        char digits[12];
        size_t n = 0, at = 5;

        memcpy(buf, "1000 ", 5);
        static_assert(PLAN_AGENT_ID == 1000, "the text of the map contains this number");
        do {
                digits[n++] = (char)('0' + host % 10);
                host /= 10;
        } while (host);
        while (n > 0)
                buf[at++] = digits[--n];
        memcpy(buf + at, " 1\n", 4);
        return buf;
}

/* Maps the ids. A process that has just made its user namespace may map its own id, and only that
 * (user_namespaces(7)). So the launcher is not involved, and no round trip is needed. */
static int build_identity(Launch *launch, Error *error) {
        char line[32];
        int r;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* With this umask, the tree gets exactly the given modes. The command gets the caller's
         * umask back (confine.c). */
        child_state.umask = umask(022);
        r = write_file("/proc/self/uid_map", map_line(launch->identity.uid, line), error);
        if (r == 0)
                r = write_file("/proc/self/setgroups", "deny", error);
        if (r == 0)
                r = write_file("/proc/self/gid_map", map_line(launch->identity.gid, line), error);
        if (launch->identity.taken)
                identity_leave_maps(PLAN_AGENT_ID);
        return r;
}

/* --- the scratch and the root --- */

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

int build_directory(int dir_fd, const char *path, mode_t mode, Error *error) {
        if (mkdirat(dir_fd, path, mode) < 0 && errno != EEXIST)
                return step_fail(error, LAYER_MOUNT, errno, "cannot make the directory", path);
        return 0;
}

static int make_stub(int dir_fd, const char *path, mode_t mode, Error *error) {
        if (mknodat(dir_fd, path, S_IFREG | mode, 0) < 0 && errno != EEXIST)
                return step_fail(error, LAYER_MOUNT, errno, "cannot make the file", path);
        return 0;
}

const char *build_decimal(uint64_t value, char buf[24]) {
        size_t at = 23;

        buf[at] = '\0';
        do {
                buf[--at] = (char)('0' + value % 10);
                value /= 10;
        } while (value);
        return buf + at;
}

/* Keeps the mount namespace for the launcher. */
static int note_namespace(const Launch *launch, Error *error) {
        if (!launch_gives_root(launch))
                return 0;
        child_state.mounts_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        if (child_state.mounts_fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot open", "/proc/self/ns/mnt");
        return 0;
}

static int build_scratch(Launch *launch, Error *error) {
        ChildState *state = &child_state;
        char size[24], number[24];
        /* An inode takes kernel memory that the size does not count. So there is one for each 4
         * KiB, and at least 16,384. */
        const uint64_t inodes = launch->plan->tmp_size / 4096;
        const char *const options[] = {
                "mode",      "0755",
                "nr_inodes", build_decimal(inodes > 16384 ? inodes : 16384, number),
                "size",      build_decimal(launch->plan->tmp_size, size),
                NULL
        };
        const char *const unlimited[] = { "mode", "0755", NULL };
        int r = note_namespace(launch, error);

        if (r == 0)
                r = build_filesystem("tmpfs", launch->plan->tmp_size ? options : unlimited,
                                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &state->scratch_fd,
                                     LAYER_MOUNT, error);
        if (r == 0)
                r = build_attach(state->scratch_fd, AT_FDCWD, "/proc", error);
        if (r == 0)
                r = build_directory(state->scratch_fd, "root", 0755, error);
        if (r == 0)
                r = build_directory(state->scratch_fd, "hidden.d", 0, error);
        if (r == 0)
                r = make_stub(state->scratch_fd, "hidden", 0, error);
        if (r < 0)
                return r;
        state->root_fd = sys_open_tree(state->scratch_fd, "root",
                                       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (state->root_fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot clone", "the new root");
        return build_attach(state->root_fd, state->scratch_fd, "root", error);
}

/* A short write means that the caller's hard limit of file sizes was reached. */
int build_write_text(int dir_fd, const char *path, const char *text, size_t size, Error *error) {
        int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        ssize_t n = fd < 0 ? -1 : write(fd, text, size);

        if (n != (ssize_t)size)
                return step_fail(error, LAYER_MOUNT, n < 0 ? errno : EFBIG, "cannot write", path);
        fd_close(fd);
        return 0;
}

static int make_link(int dir_fd, const char *path, const char *target, Error *error) {
        if (symlinkat(target, dir_fd, path) < 0 && errno != EEXIST)
                return step_fail(error, LAYER_MOUNT, errno, "cannot make the symlink", path);
        return 0;
}

static int make_nodes(int root_fd, Error *error) {
        for (size_t i = 0; i < tree_nodes_count; i++) {
                const TreeNode *node = &tree_nodes[i];
                int r = node->link ? make_link(root_fd, node->path, node->link, error)
                                   : build_directory(root_fd, node->path, 0755, error);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Writes the files of /etc. The root of a container image has its own programs. */
static int make_etc(const Launch *launch, int root_fd, Error *error) {
        for (size_t i = 0; i < tree_etc_files_count; i++) {
                const TreeFile *file = &tree_etc_files[i];
                char path[64] = "etc/", text[1024] = "";
                int r;

                (void)strncat(path, file->name, sizeof(path) - 5);
                (void)strncat(text, file->text, sizeof(text) - 1);
                if (file->program && !launch->plan->rootfs.source &&
                    access(file->program, X_OK) == 0)
                        (void)strncat(text, file->more, sizeof(text) - 1 - strlen(text));
                r = build_write_text(root_fd, path, text, strlen(text), error);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* One step of build_target(): makes `name` in *dir_fd and enters it, unless it is the last part. */
static int make_part(int *dir_fd, const char *name, bool last, bool directory, Error *error) {
        int r, fd;

        if (last && !directory)
                return make_stub(*dir_fd, name, 0644, error);
        r = build_directory(*dir_fd, name, 0755, error);
        if (r < 0 || last)
                return r;
        fd = sys_open_beneath(*dir_fd, name, O_PATH | O_DIRECTORY);
        if (fd < 0)
                return step_fail(error, LAYER_NONE, errno,
                                 errno == ELOOP ? "a symlink is in the way, at" : "cannot enter",
                                 name);
        fd_close(*dir_fd);
        *dir_fd = fd;
        return 0;
}

int build_target(int root_fd, const char *path, bool directory, Error *error) {
        _cleanup_close_ int dir_fd = openat(root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        char name[NAME_MAX + 1];

        if (dir_fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot open", "the new root");
        while (*path) {
                size_t length = strcspn(path, "/");
                int r;

                if (length >= sizeof(name))
                        return step_fail(error, LAYER_NONE, ENAMETOOLONG, "cannot make", path);
                memcpy(name, path, length);
                name[length] = '\0';
                path += length;
                path += *path == '/';
                r = make_part(&dir_fd, name, *path == '\0', directory, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int make_devices(int root_fd, Error *error) {
        for (size_t i = 0; i < tree_devices_count; i++) {
                char path[32] = "dev/";
                int r;

                (void)strncat(path, tree_devices[i], sizeof(path) - 5);
                r = make_stub(root_fd, path, 0666, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int make_system(const Launch *launch, int root_fd, Error *error) {
        for (size_t i = 0; i < launch->system.count; i++) {
                const SystemEntry *entry = &launch->system.entries[i];
                int r;

                if (entry->masked)
                        continue;
                if (entry->link)
                        r = make_link(root_fd, entry->path, entry->link, error);
                else if (entry->directory)
                        r = build_directory(root_fd, entry->path, 0755, error);
                else
                        r = make_stub(root_fd, entry->path, 0644, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Makes everything that must exist before the root becomes read-only. */
static int build_skeleton(Launch *launch, Error *error) {
        int root_fd = child_state.root_fd;
        int r = make_nodes(root_fd, error);

        if (r == 0)
                r = make_etc(launch, root_fd, error);
        if (r == 0)
                r = make_devices(root_fd, error);
        if (r == 0)
                r = make_system(launch, root_fd, error);
        for (size_t i = 0; r == 0 && i < launch->plan->mounts_count; i++) {
                const PlanMount *mount = &launch->plan->mounts[i];

                if (mount->flags & PLAN_IN_ROOT && !build_lasts(launch->plan, mount))
                        r = build_target(root_fd, mount->target + 1,
                                         mount->kind == PLAN_PRIVATE || mount->directory, error);
        }
        return r;
}

/* --- the system, read-only --- */

/* Covers a directory in an entry of the system. It may be gone since holt looked. */
static int build_mask(const SystemEntry *entry, Error *error) {
        int fd = sys_open_tree(child_state.scratch_fd, "hidden.d",
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        int r;

        if (fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot clone", "an empty directory");
        r = build_attach(fd, child_state.root_fd, entry->path, error);
        fd_close(fd);
        if (r != -ENOENT)
                return r;
        error->text[0] = '\0';
        return 0;
}

/* Attaches an entry of the host's own system by one call, where open_tree(2) needs three: most of
 * the sandbox's mounts are made here. Only root of the host could put a symlink in its place. The
 * working directory is the new root. Returns false if the kernel refuses the call, as in a
 * container that forbids mount(2) alone. */
static bool bind_entry(const SystemEntry *entry) {
        char source[SYSTEM_PATH_MAX + 1] = "/";

        if (strlen(entry->path) >= SYSTEM_PATH_MAX)
                return false;
        (void)strncat(source, entry->path, SYSTEM_PATH_MAX - 1);
        return syscall(SYS_mount, source, entry->path, NULL, MS_BIND_FLAG | MS_REC_FLAG, NULL) == 0;
}

/* Attaches an entry of the system, or covers it. A package manager may have removed a part of /etc
 * or /var since holt looked; then its place stays empty. */
static int build_entry(const SystemEntry *entry, int tree_fd, bool own, Error *error) {
        int fd, r;

        if (entry->link)
                return 0;
        if (entry->masked)
                return build_mask(entry, error);
        if (own && bind_entry(entry))
                return 0;
        fd = sys_open_tree(tree_fd, entry->path,
                           OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                                   AT_SYMLINK_NOFOLLOW);
        if (fd < 0 && errno == ENOENT && strchr(entry->path, '/'))
                return 0;
        if (fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot clone the system's",
                                 entry->path);
        r = build_attach(fd, child_state.root_fd, entry->path, error);
        fd_close(fd);
        return r;
}

static int build_system(Launch *launch, Error *error) {
        const MountAttr read_only = {
                .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                .propagation = MS_PRIVATE_FLAG,
        };
        const PlanMount *rootfs = &launch->plan->rootfs;
        const char *tree = rootfs->source ? rootfs->source : "/";
        int tree_fd = open(tree, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct stat st;
        bool own;

        if (tree_fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot open the system tree", tree);
        /* The same check as in clone_source() of build-mounts.c. */
        if (rootfs->source &&
            (fstat(tree_fd, &st) < 0 || st.st_dev != rootfs->device || st.st_ino != rootfs->inode))
                return step_fail(error, LAYER_NONE, ESTALE,
                                 "this was replaced while holt was starting:", tree);
        own = !rootfs->source && fchdir(child_state.root_fd) == 0;
        for (size_t i = 0; i < launch->system.count; i++) {
                int r = build_entry(&launch->system.entries[i], tree_fd, own, error);

                if (r < 0)
                        return r;
        }
        if (sys_mount_setattr(child_state.root_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only) <
            0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot make read-only",
                                 "the system tree");
        return 0;
}

/* --- /proc and /dev --- */

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

/* Masks an entry of /proc. Kernels differ in their entries; a missing one needs no mask. */
static int mask_proc(int proc_fd, const TreeProc *row, Error *error) {
        const MountAttr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
        struct stat st;

        if (fstatat(proc_fd, row->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        if (!row->masked)
                return build_clone_to(proc_fd, row->name, proc_fd, row->name, &read_only, error);
        return build_clone_to(child_state.scratch_fd, S_ISDIR(st.st_mode) ? "hidden.d" : "hidden",
                              proc_fd, row->name, &read_only, error);
}

static int build_proc(Launch *launch, Error *error) {
        const char *const options[] = { NULL };
        int proc_fd = -1, r;

        if (build_degraded(launch, LAYER_PROC))
                return 0;
        r = build_filesystem("proc", options,
                             MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &proc_fd,
                             LAYER_PROC, error);
        if (r == 0)
                r = build_attach(proc_fd, child_state.root_fd, "proc", error);
        for (size_t i = 0; r == 0 && i < tree_proc_count; i++)
                r = mask_proc(proc_fd, &tree_proc[i], error);
        return r == 0 ? build_limits_of_proc(launch, proc_fd, error) : r;
}

/* Binds the devices read-only. Writing to a device needs no writable mount. Changing its mode,
 * times or owner would need one, and the nodes are the host's own. */
static int build_devices(Launch *launch, Error *error) {
        const MountAttr attr = {
                .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
                .propagation = MS_PRIVATE_FLAG,
        };
        /* The host has 4,096 ptys and reserves 1,024 of them, so "max" bounds the sandbox's
         * share. */
        const char *const options[] = { "ptmxmode", "0666", "mode", "0620", "max", "256", NULL };
        int dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC), pts_fd = -1, r;

        (void)launch;
        if (dev_fd < 0)
                return step_fail(error, LAYER_DEV, errno, "cannot open", "/dev");
        for (size_t i = 0; i < tree_devices_count; i++) {
                char target[32] = "dev/";

                (void)strncat(target, tree_devices[i], sizeof(target) - 5);
                r = build_clone_to(dev_fd, tree_devices[i], child_state.root_fd, target, &attr,
                                   error);
                if (r < 0)
                        return r;
        }
        r = build_filesystem("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &pts_fd,
                             LAYER_DEV, error);
        return r < 0 ? r : build_attach(pts_fd, child_state.root_fd, "dev/pts", error);
}

/* --- entering the tree --- */

/* Unmounts the host's tree. With both arguments ".", pivot_root(2) stacks the old root on the new
 * one. MNT_DETACH takes it off, with all mounts below it. The second call must fail with EINVAL:
 * only the new root is left, and it cannot be unmounted. */
static int let_the_host_go(void) {
        if (syscall(SYS_umount2, ".", MNT_DETACH_FLAG) < 0)
                return -errno;
        return syscall(SYS_umount2, ".", MNT_DETACH_FLAG) < 0 && errno == EINVAL ? 0 : -EBUSY;
}

/* Magic links are not followed: /proc/self/fd/N would lead through the launcher's own descriptors
 * to a directory of the host (CVE-2024-21626). */
static int build_cwd(const LaunchPlan *plan, Error *error) {
        int fd = sys_openat2(AT_FDCWD, plan->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
                             RESOLVE_NO_MAGICLINKS);
        int r;

        if (fd >= 0 && fchdir(fd) == 0) {
                fd_close(fd);
                return 0;
        }
        r = step_fail(error, LAYER_NONE, errno,
                      plan->cwd_asked   ? "--cwd: cannot start in the sandbox's directory"
                      : plan->workspace ? "the workspace: cannot start in the sandbox's directory"
                                        : "cannot start in the sandbox's directory",
                      plan->cwd);
        return step_cure(
                error, r,
                plan->cwd_asked
                        ? "Name a directory that exists inside; a relative path starts at the "
                          "workspace."
                        : "Name a directory that exists inside and may be entered: --cwd DIR");
}

static int build_enter(Launch *launch, Error *error) {
        int r;

        if (fchdir(child_state.root_fd) < 0 || sys_pivot_root(".", ".") < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot enter", "the new root");
        r = let_the_host_go();
        if (r < 0)
                return step_fail(error, LAYER_MOUNT, -r, "cannot unmount", "the host's tree");
        return build_cwd(launch->plan, error);
}

/* Starts a session and opens the terminal. The session is init's own, so no process inside belongs
 * to a session, process group or terminal of the host. */
static int build_terminal(Launch *launch, Error *error) {
        const TerminalPlan *terminal = &launch->terminal;
        int master, slave, unlock = 0;

        child_state.terminal_fd = FD_NONE;
        (void)setsid();
        if (!terminal->fds)
                return 0;
        master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
                return step_fail(error, LAYER_DEV, errno, "cannot make a terminal at", "/dev/ptmx");
        slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (slave < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
                return step_fail(error, LAYER_DEV, errno, "cannot open the terminal at",
                                 "/dev/pts");
        (void)ioctl(slave, TCSETS, &terminal->mode);
        (void)ioctl(slave, TIOCSWINSZ, &terminal->size);
        for (int fd = 0; fd <= 2; fd++)
                if (terminal->fds & (1U << fd) && dup2(slave, fd) < 0)
                        return step_fail(error, LAYER_DEV, errno, "cannot hand over", "a terminal");
        child_state.terminal_fd = master;
        return 0;
}

static int build_output(Launch *launch, Error *error) {
        int r = output_place(launch->output);

        return r < 0 ? step_fail(error, LAYER_NONE, -r, "cannot hand over", "a pipe") : 0;
}

static int build_hostname(Launch *launch, Error *error) {
        const char *name = launch->plan->hostname;

        if (build_degraded(launch, LAYER_UTS))
                return 0;
        if (syscall(SYS_sethostname, name, strlen(name)) < 0)
                return step_fail(error, LAYER_UTS, errno, "cannot set", "the host name");
        return 0;
}

static const Step build_steps[] = {
        { "begin a network", build_network_begin },
        { "take an identity without privilege", build_identity },
        { "clone the mounts of the policy", build_sources },
        { "make the private file system", build_scratch },
        { "make the root's directories", build_skeleton },
        { "show the limits", build_limits },
        { "attach the system", build_system },
        { "mount /proc", build_proc },
        { "make /dev", build_devices },
        { "attach /tmp and the like", build_private },
        { "attach the session's root", build_lasting },
        { "attach the mounts of the policy", build_mounts },
        { "protect files", build_guards },
        { "hide files", build_hidden },
        { "enter the root", build_enter },
        { "make a terminal", build_terminal },
        { "take the output", build_output },
        { "enter the network", build_network },
        { "set the host name", build_hostname },
};

int build_run(Launch *launch, Error *error) {
        int r = steps_run(build_steps, ELEMENTSOF(build_steps), launch, error);

        /* The thread uses the launcher's memory, and the launcher may launch again. */
        if (r < 0)
                build_network_wait();
        return r;
}
