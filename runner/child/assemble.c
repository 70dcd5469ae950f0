/* SPDX-License-Identifier: Apache-2.0 */
/* Assembles a tree step by step (policy/assembly.h), in place of build.c.
 *
 * Theory of operation. The new root is an empty directory of a tmpfs, the scratch, which covers the
 * host's /proc. All sources are cloned before that, so they may lie in /proc. Then the steps run in
 * their order. A place inside may contain what the caller has bound there, for example symlinks of
 * an untrusted workspace. So it is looked up in the new root, which no symlink leaves. A source is
 * a path of the caller, and is looked up once, like any program of the caller does it.
 *
 * A step changes nothing on the host, except for missing mount points in writable binds, as in
 * bubblewrap. Afterwards the child enters the root, and confines itself (assemble-end.c). */
#include "child/assemble.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/pass-fds.h"

#define MS_SLAVE_FLAG (1UL << 19) /* as MS_PRIVATE_FLAG in build.h */

AssembleState assemble_state;

/* --- the parent --- */

/* A parent that has ended before the first call causes no signal. */
void assemble_die_with_parent(const Assembly *a) {
        struct pollfd parent = { .fd = a->parent_fd, .events = POLLIN };

        if (!a->die_with_parent)
                return;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (poll(&parent, 1, 0) > 0)
                syscall(SYS_exit_group, 1);
}

/* --- the beginning --- */

static int assemble_begin(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;

        assemble_state = (AssembleState){ .users_fd = FD_NONE };
        child_state.terminal_fd = FD_NONE;
        assemble_die_with_parent(a);
        child_state.umask = umask(0);
        assemble_state.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (assemble_state.proc_fd < 0)
                return step_fail(error, LAYER_NONE, errno, "cannot open", "/proc");
        return 0;
}

/* --- telling the caller --- */

/* The namespaces in the order in which bubblewrap names them. The mount namespace is always new. */
static const struct {
        uint64_t flag;
        const char *name, *link;
} told_namespaces[] = {
        { CLONE_NEWCGROUP, "cgroup", "self/ns/cgroup" }, { CLONE_NEWIPC, "ipc", "self/ns/ipc" },
        { CLONE_NEWNS, "mnt", "self/ns/mnt" },           { CLONE_NEWNET, "net", "self/ns/net" },
        { CLONE_NEWPID, "pid", "self/ns/pid" },          { CLONE_NEWUTS, "uts", "self/ns/uts" },
};

/* Appends to a text of 1,024 bytes. */
static void info_add(char *text, const char *more) {
        (void)strncat(text, more, 1023 - strlen(text));
}

static void info_write(int fd, const Assembly *a, const char *pid, const char *start,
                       const char *between, const char *end) {
        char text[1024], number[24];
        struct stat st;

        text[0] = '\0';
        info_add(text, start);
        info_add(text, "\"child-pid\": ");
        info_add(text, pid);
        for (size_t i = 0; i < ELEMENTSOF(told_namespaces); i++) {
                const uint64_t flag = told_namespaces[i].flag;

                if ((flag != CLONE_NEWNS && !(a->namespaces & flag)) ||
                    fstatat(assemble_state.proc_fd, told_namespaces[i].link, &st, 0) < 0)
                        continue;
                info_add(text, between);
                info_add(text, "\"");
                info_add(text, told_namespaces[i].name);
                info_add(text, "-namespace\": ");
                info_add(text, build_decimal(st.st_ino, number));
        }
        info_add(text, end);
        (void)sys_write_all(fd, text, strlen(text));
}

/* Tells the caller the process and its namespaces, before anything waits for the caller. */
static int assemble_inform(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;
        char pid[24] = "", byte;
        int info_fd = FD_NONE, r;

        if (a->info_fd < 0 && a->status_fd < 0)
                return 0;
        if (a->info_fd >= 0 && receive_with_fd(a->info_socket, &byte, 1, &info_fd, 0) != 1)
                return step_fail(error, LAYER_NONE, errno, "cannot receive", "--info-fd");
        r = build_network(launch, error);
        if (r < 0)
                return r;
        if (readlinkat(assemble_state.proc_fd, "self", pid, sizeof(pid) - 1) <= 0)
                return step_fail(error, LAYER_NONE, errno, "cannot read", "/proc/self");
        if (info_fd >= 0)
                info_write(info_fd, a, pid, "{\n    ", ",\n    ", "\n}\n");
        if (a->status_fd >= 0)
                info_write(a->status_fd, a, pid, "{ ", ", ", " }\n");
        fd_close(info_fd); /* the caller may read until its end */
        return 0;
}

/* --- identity --- */

static int identity_write(const char *path, const char *text, Error *error) {
        _cleanup_close_ int fd = openat(assemble_state.proc_fd, path, O_WRONLY | O_CLOEXEC);

        return fd < 0 || write(fd, text, strlen(text)) < 0
                       ? step_fail(error, LAYER_USER, errno, "cannot write, in /proc:", path)
                       : 0;
}

/* Maps one id. */
static int identity_map(const char *path, uint64_t inside, uint64_t outside, Error *error) {
        char line[64] = "", number[24];

        (void)strncat(line, build_decimal(inside, number), 24);
        (void)strncat(line, " ", 2);
        (void)strncat(line, build_decimal(outside, number), 24);
        (void)strncat(line, " 1\n", 4);
        return identity_write(path, line, error);
}

int assemble_map_ids(const Assembly *a, uid_t uid, gid_t gid, Error *error) {
        int r = identity_map("self/uid_map", a->uid >= 0 ? (uint64_t)a->uid : uid, uid, error);

        if (r == 0)
                r = identity_write("self/setgroups", "deny", error);
        return r == 0 ? identity_map("self/gid_map", a->gid >= 0 ? (uint64_t)a->gid : gid, gid,
                                     error)
                      : r;
}

/* Waits until the caller writes a byte or closes its end. */
static void wait_for_caller(int fd) {
        char byte;

        while (fd >= 0 && read(fd, &byte, 1) < 0 && errno == EINTR)
                ;
}

static int assemble_identity(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;

        wait_for_caller(a->userns_block_fd);
        /* This must be opened in the namespace whose limit it is. */
        if (a->disable_userns)
                assemble_state.users_fd = openat(assemble_state.proc_fd,
                                                 "sys/user/max_user_namespaces",
                                                 O_WRONLY | O_CLOEXEC);
        if (!(a->namespaces & CLONE_NEWUSER) || a->userns_block_fd >= 0)
                return 0;
        return assemble_map_ids(a, launch->identity.uid, launch->identity.gid, error);
}

/* Without a new user namespace, mounts made here would also appear on the host. */
static int assemble_leave_peers(Launch *launch, Error *error) {
        const MountAttr attr = { .propagation = MS_SLAVE_FLAG };

        if (launch->plan->assembly->namespaces & CLONE_NEWUSER)
                return 0;
        return sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr) < 0
                       ? step_fail(error, LAYER_MOUNT, errno,
                                   "cannot separate the mounts from those of", "the host")
                       : 0;
}

/* --- the tree --- */

/* An --overlay-src has no effect alone. */
static int assemble_layer(Assembly *a, AssemblyStep *step, Error *error) {
        (void)a;
        (void)step;
        (void)error;
        return 0;
}

/* The function of each kind of step. */
static int (*const step_functions[])(Assembly *a, AssemblyStep *step, Error *error) = {
        [ASSEMBLY_BIND] = assemble_bind,       [ASSEMBLY_LAYER] = assemble_layer,
        [ASSEMBLY_OVERLAY] = assemble_overlay, [ASSEMBLY_PROC] = assemble_proc,
        [ASSEMBLY_DEV] = assemble_dev,         [ASSEMBLY_TMPFS] = assemble_tmpfs,
        [ASSEMBLY_MQUEUE] = assemble_mqueue,   [ASSEMBLY_DIRECTORY] = assemble_directory,
        [ASSEMBLY_FILE] = assemble_file,       [ASSEMBLY_DATA] = assemble_data,
        [ASSEMBLY_SYMLINK] = assemble_symlink, [ASSEMBLY_REMOUNT] = assemble_remount,
        [ASSEMBLY_CHMOD] = assemble_chmod,
};
static_assert(ELEMENTSOF(step_functions) == ASSEMBLY_KIND_MAX, "every kind of step has a function");

static int assemble_tree(Launch *launch, Error *error) {
        Assembly *a = launch->plan->assembly;
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->count; i++)
                r = step_functions[a->steps[i].kind](a, &a->steps[i], error);
        return r;
}

/* --- the end --- */

static int assemble_cwd(const Assembly *a, Error *error) {
        if (a->cwd) {
                *a->pwd = a->pwds[0];
                return chdir(a->cwd) < 0 ? step_fail(error, LAYER_NONE, errno,
                                                     "cannot change to the directory", a->cwd)
                                         : 0;
        }
        for (size_t i = 0; i < ELEMENTSOF(a->homes); i++)
                if (a->homes[i] && chdir(a->homes[i]) == 0) {
                        *a->pwd = a->pwds[i];
                        return 0;
                }
        return step_fail(error, LAYER_NONE, errno, "cannot change to the directory", "/");
}

static int assemble_enter(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;
        int r = build_pivot(error);

        if (r == 0)
                r = build_leave(a->namespaces & CLONE_NEWUSER, error);
        return r < 0 ? r : assemble_cwd(a, error);
}

/* The network is entered earlier if the caller has been told of it. */
static int assemble_network(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;

        return a->info_fd >= 0 || a->status_fd >= 0 ? 0 : build_network(launch, error);
}

static int assemble_hostname(Launch *launch, Error *error) {
        const char *name = launch->plan->assembly->hostname;

        return name && syscall(SYS_sethostname, name, strlen(name)) < 0
                       ? step_fail(error, LAYER_UTS, errno, "cannot set the host name", name)
                       : 0;
}

static int assemble_wait(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;

        (void)error;
        wait_for_caller(a->block_fd);
        if (a->new_session)
                (void)setsid();
        return 0;
}

static const Step assemble_steps[] = {
        { "begin", assemble_begin },
        { "begin a network", build_network_begin },
        { "tell the caller", assemble_inform },
        { "take an identity", assemble_identity },
        { "leave the host's mounts", assemble_leave_peers },
        { "clone the sources", assemble_sources },
        { "make the private file system", build_scratch },
        { "assemble the tree", assemble_tree },
        { "enter the root", assemble_enter },
        { "enter the network", assemble_network },
        { "set the host name", assemble_hostname },
        { "wait for the caller", assemble_wait },
};

int assemble_run(Launch *launch, Error *error) {
        int r = steps_run(assemble_steps, ELEMENTSOF(assemble_steps), launch, error);

        if (r < 0)
                build_network_wait();
        return r;
}
