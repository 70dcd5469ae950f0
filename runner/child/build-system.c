/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches the parts of the host's system, /proc and the devices. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "child/build.h"

/* sys/mount.h and linux/mount.h cannot be included together. */
#define MS_BIND_FLAG 4096UL
#define MS_REC_FLAG 16384UL

enum { SYSTEM_PATH_MAX = 320 }; /* Bytes: NAME_MAX below a directory of tree_shown[]. */

/* --- the system, read-only --- */

/* Covers a directory in an entry of the system. The directory may be gone since holt looked. */
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

int build_system(Launch *launch, Error *error) {
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

/* --- certificates --- */

/* The files from which programs read the certificates that they trust. Each is covered, where it
 * exists, if holt-gateway terminates TLS. */
static const struct {
        const char *path, *file;
} trust_files[] = {
        { "etc/ssl/certs/ca-certificates.crt", PLAN_CA_BUNDLE }, /* Debian, Ubuntu, Arch */
        { "etc/ssl/cert.pem", PLAN_CA_BUNDLE },
        { "etc/pki/tls/certs/ca-bundle.crt", PLAN_CA_BUNDLE }, /* Fedora */
        { "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", PLAN_CA_BUNDLE },
        { "etc/ca-certificates/extracted/tls-ca-bundle.pem", PLAN_CA_BUNDLE }, /* Arch */
        { "etc/ssl/certs/java/cacerts", PLAN_CA_JAVA },
        { "etc/pki/ca-trust/extracted/java/cacerts", PLAN_CA_JAVA },
        { "etc/ca-certificates/extracted/java-cacerts.jks", PLAN_CA_JAVA },
        { "etc/ssl/certs/java/cacerts.jks", PLAN_CA_JAVA },
};

/* Clones one of the files that holt has written. Nothing that leads out of the root is followed. */
static int clone_trust(const char *path) {
        _cleanup_close_ int fd = sys_open_beneath(child_state.root_fd, path, O_PATH);

        return fd < 0 ? FD_NONE
                      : sys_open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

/* Covers a file. One that another row has covered is covered again: a path may be a symlink to
 * another one. The tree of a caller may have something else than a file there, which stays. */
static int cover_trust(const char *path, const char *file, Error *error) {
        _cleanup_close_ int fd = sys_openat2(child_state.root_fd, path, O_PATH | O_CLOEXEC, 0,
                                             RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
        _cleanup_close_ int cover = FD_NONE;
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        cover = clone_trust(file);
        if (cover < 0 || sys_move_mount(cover, "", fd, "",
                                        MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot cover", path);
        return 0;
}

int build_trust(Launch *launch, Error *error) {
        int r = 0;

        for (size_t i = 0;
             r == 0 && launch->plan->tls_hosts.count > 0 && i < ELEMENTSOF(trust_files); i++)
                r = cover_trust(trust_files[i].path, trust_files[i].file + 1, error);
        return r;
}

/* --- /proc and /dev --- */

/* Masks an entry of /proc. Kernels differ in their entries; a missing one needs no mask. */
static int mask_proc(int proc_fd, const TreeProc *row, Error *error) {
        const MountAttr read_only = { .attr_set = MOUNT_ATTR_RDONLY };
        struct stat st;

        if (!row->masked) {
                int r = build_clone_to(proc_fd, row->name, proc_fd, row->name, &read_only, error);

                if (r != -ENOENT)
                        return r;
                error->text[0] = '\0';
                return 0;
        }
        if (fstatat(proc_fd, row->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        return build_clone_to(child_state.scratch_fd, S_ISDIR(st.st_mode) ? "hidden.d" : "hidden",
                              proc_fd, row->name, &read_only, error);
}

int build_proc(Launch *launch, Error *error) {
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
 * times or owner needs one, and must fail because the nodes are the host's own. */
int build_devices(Launch *launch, Error *error) {
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
