/* SPDX-License-Identifier: Apache-2.0 */
/* The mount tree is the boundary for files. A process that can change it can unmask /proc, make
 * /usr writable, or see the files under a mount. */
#include "hostile.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

struct mount_attributes {
        uint64_t set, clear, propagation, userns;
};

static void mount_tmpfs(char **args) {
        got(mount("none", args[0], "tmpfs", 0, NULL));
}

static void mount_proc(char **args) {
        got(mount("none", args[0], "proc", 0, NULL));
}

static void mount_bind(char **args) {
        got(mount("/", args[0], NULL, MS_BIND | MS_REC, NULL));
}

static void remount_rw(char **args) {
        got(mount(NULL, args[0], NULL, MS_REMOUNT | MS_BIND, NULL));
}

static void unmount(char **args) {
        reached(umount2(args[0], MNT_DETACH));
}

static void pivot(char **args) {
        (void)args;
        reached(syscall(SYS_pivot_root, ".", "."));
}

static void change_root(char **args) {
        got(chroot(args[0]));
}

static void fs_open(char **args) {
        (void)args;
        got(syscall(CALL_fsopen, "tmpfs", 0));
}

static void fs_config(char **args) {
        (void)args;
        reached(syscall(CALL_fsconfig, -1, 6, NULL, NULL, 0));
}

static void fs_mount(char **args) {
        (void)args;
        reached(syscall(CALL_fsmount, -1, 0, 0));
}

static void fs_pick(char **args) {
        (void)args;
        got(syscall(CALL_fspick, AT_FDCWD, "/", 0));
}

static void tree_clone(char **args) {
        (void)args;
        got(syscall(CALL_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE));
}

static void tree_clone_attr(char **args) {
        struct mount_attributes attr = { 0 };

        (void)args;
        got(syscall(CALL_open_tree_attr, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE, &attr,
                    sizeof(attr)));
}

static void tree_move(char **args) {
        (void)args;
        reached(syscall(CALL_move_mount, -1, "", -1, "", 0));
}

static void tree_setattr(char **args) {
        struct mount_attributes attr = { .clear = 1 /* MOUNT_ATTR_RDONLY */ };

        got(syscall(CALL_mount_setattr, AT_FDCWD, args[0], 0, &attr, sizeof(attr)));
}

static const Attack attacks[] = {
        { "tmpfs", mount_tmpfs, 1 },
        { "proc", mount_proc, 1 },
        { "bind", mount_bind, 1 },
        { "remount-rw", remount_rw, 1 },
        { "umount", unmount, 1 },
        { "pivot-root", pivot, 0 },
        { "chroot", change_root, 1 },
        { "fsopen", fs_open, 0 },
        { "fsconfig", fs_config, 0 },
        { "fsmount", fs_mount, 0 },
        { "fspick", fs_pick, 0 },
        { "open-tree", tree_clone, 0 },
        { "open-tree-attr", tree_clone_attr, 0 },
        { "move-mount", tree_move, 0 },
        { "mount-setattr", tree_setattr, 1 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
