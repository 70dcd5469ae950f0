/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/probe.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "child/clone.h"
#include "child/landlock.h"

#ifndef SECCOMP_FILTER_FLAG_NEW_LISTENER
#define SECCOMP_FILTER_FLAG_NEW_LISTENER (1UL << 3)
#endif

/* The test that the child of a probe runs, and its result; the memory is shared. */
typedef struct Probe {
        int (*run)(const char **ret_step);
        const char *step;
        int errnum;
} Probe;

static int probe_fail(const char **ret_step, const char *step) {
        *ret_step = step;
        return -errno;
}

static int try_nothing(const char **ret_step) {
        (void)ret_step;
        return 0;
}

static int try_filesystem(const char *type, const char **ret_step) {
        int fs = sys_fsopen(type);

        if (fs < 0)
                return probe_fail(ret_step, "fsopen");
        if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
                return probe_fail(ret_step, "fsconfig");
        return sys_fsmount(fs, 0) < 0 ? probe_fail(ret_step, "fsmount") : 0;
}

static int try_mount(const char **ret_step) {
        const MountAttr attr = { .attr_set = MOUNT_ATTR_RDONLY };
        int fd = sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

        if (fd < 0)
                return probe_fail(ret_step, "open_tree");
        if (sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) < 0)
                return probe_fail(ret_step, "mount_setattr");
        if (sys_move_mount(fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return probe_fail(ret_step, "move_mount");
        return try_filesystem("tmpfs", ret_step);
}

static int try_proc(const char **ret_step) {
        return try_filesystem("proc", ret_step);
}

static int try_devpts(const char **ret_step) {
        return try_filesystem("devpts", ret_step);
}

static int try_landlock(const char **ret_step) {
        int abi = landlock_abi();

        *ret_step = "landlock_create_ruleset";
        return abi >= LANDLOCK_ABI_NEEDED ? 0 : -ENOSYS;
}

static int try_capabilities(const char **ret_step) {
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? probe_fail(ret_step, "no_new_privs")
                                                          : 0;
}

static int load_filter(unsigned flags, const char **ret_step) {
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog program = { .len = 1, .filter = &allow };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return probe_fail(ret_step, "no_new_privs");
        return sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, &program) < 0
                       ? probe_fail(ret_step, "seccomp")
                       : 0;
}

static int try_seccomp(const char **ret_step) {
        return load_filter(0, ret_step);
}

static int try_notify(const char **ret_step) {
        return load_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER, ret_step);
}

/* For each layer, the namespaces to enter and the test to run there. */
static const struct {
        unsigned long flags, own;
        int (*run)(const char **ret_step);
} probes[LAYER_MAX] = {
        [LAYER_NONE] = { 0, 0, try_nothing },
        [LAYER_USER] = { CLONE_NEWUSER, CLONE_NEWUSER, try_nothing },
        [LAYER_MOUNT] = { CLONE_NEWUSER | CLONE_NEWNS, CLONE_NEWNS, try_mount },
        [LAYER_PID] = { CLONE_NEWUSER | CLONE_NEWPID, CLONE_NEWPID, try_nothing },
        [LAYER_NET] = { CLONE_NEWUSER | CLONE_NEWNET, CLONE_NEWNET, try_nothing },
        [LAYER_IPC] = { CLONE_NEWUSER | CLONE_NEWIPC, CLONE_NEWIPC, try_nothing },
        [LAYER_UTS] = { CLONE_NEWUSER | CLONE_NEWUTS, CLONE_NEWUTS, try_nothing },
        [LAYER_CGROUP] = { CLONE_NEWUSER | CLONE_NEWCGROUP, CLONE_NEWCGROUP, try_nothing },
        [LAYER_PROC] = { CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, 0, try_proc },
        [LAYER_DEV] = { CLONE_NEWUSER | CLONE_NEWNS, 0, try_devpts },
        [LAYER_IDMAP] = { 0, 0, try_nothing }, /* Depends on the directory: see prepare-mounts.c. */
        [LAYER_LANDLOCK] = { 0, 0, try_landlock },
        [LAYER_CAPABILITIES] = { 0, 0, try_capabilities },
        [LAYER_SECCOMP] = { 0, 0, try_seccomp },
        [LAYER_NOTIFY] = { 0, 0, try_notify },
        [LAYER_LIMITS] = { 0, 0, try_nothing },
};

unsigned long probe_namespace_flag(Layer layer) {
        return probes[layer].own;
}

static void probe_child(void *arg) {
        Probe *probe = arg;

        probe->errnum = -probe->run(&probe->step);
        syscall(SYS_exit, 0);
        __builtin_unreachable();
}

int probe_layer(Layer layer, const char **ret_step) {
        Probe probe = { .run = probes[layer].run, .step = "clone" };
        pid_t pid = clone_vfork(probes[layer].flags, probe_child, &probe, NULL);

        *ret_step = probe.step;
        if (pid < 0)
                return pid;
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
        return -probe.errnum;
}
