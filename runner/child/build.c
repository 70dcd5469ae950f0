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
 * scratch lies in that tree, so both are unmounted at once. This saves time, because each
 * unmounting waits for the other processors.
 *
 * A thread does all of that. Meanwhile, the child itself makes the network namespace, gives up its
 * capabilities and loads the filter: the kernel needs as long for these as for the tree.
 *
 * The memory is the launcher's (clone.h), so nothing here allocates, logs, or calls a library. */
#include "child/build.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "child/identity.h"
#include "child/limits.h"
#include "child/thread.h"
#include "helpers/raw-call.h"

/* sys/mount.h and linux/mount.h cannot be included together. */
#define MNT_DETACH_FLAG 2

ChildState child_state;

enum { BUILDER_STACK_SIZE = 256 * 1024 }; /* Bytes; only those that are used take memory. */

/* The thread that builds the tree. */
static struct {
        ChildThread thread;
        Launch *launch;
        uint32_t mapped; /* Flag: the ids are mapped, or result is negative. */
        uint32_t ready;  /* Flag: only last_steps are left, or result is negative. */
        int result;      /* 0 or a negative errno, with launch->error. */
        int last;        /* The same for last_steps, with last_error; 1 until they have ended. */
        Error last_error;
} builder;

static char builder_stack[BUILDER_STACK_SIZE] __attribute__((aligned(64)));

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

        r = write_file("/proc/self/uid_map", map_line(launch->identity.uid, line), error);
        if (r == 0)
                r = write_file("/proc/self/setgroups", "deny", error);
        if (r == 0)
                r = write_file("/proc/self/gid_map", map_line(launch->identity.gid, line), error);
        if (launch->identity.taken)
                identity_leave_maps(PLAN_AGENT_ID);
        if (r == 0)
                child_flag_set(&builder.thread, &builder.mapped);
        return r;
}

/* --- entering the tree --- */

int build_pivot(Error *error) {
        return fchdir(child_state.root_fd) < 0 || sys_pivot_root(".", ".") < 0
                       ? step_fail(error, LAYER_MOUNT, errno, "cannot enter", "the new root")
                       : 0;
}

static int build_enter(Launch *launch, Error *error) {
        (void)launch;
        return build_pivot(error);
}

/* With both arguments ".", pivot_root(2) stacks the old root on the new one. MNT_DETACH takes it
 * off, with all mounts below it. The second call must fail with EINVAL: only the new root is left,
 * and it cannot be unmounted. Root of the host could unmount it, too, so this is not tried without
 * a new user namespace (locked). */
int build_leave(bool locked, Error *error) {
        long r = sys2(SYS_umount2, (long)"/", MNT_DETACH_FLAG);

        if (r == 0 && locked && sys2(SYS_umount2, (long)"/", MNT_DETACH_FLAG) != -EINVAL)
                r = -EBUSY;
        return r < 0 ? step_fail(error, LAYER_MOUNT, (int)-r, "cannot unmount", "the host's tree")
                     : 0;
}

static int build_host(Launch *launch, Error *error) {
        (void)launch;
        return build_leave(true, error);
}

/* Magic links are not followed: /proc/self/fd/N would lead through the launcher's own descriptors
 * to a directory of the host (CVE-2024-21626). The host's tree must have been unmounted: as long as
 * it is stacked on the root, ".." leads from the root into it. */
static int build_cwd(Launch *launch, Error *error) {
        const LaunchPlan *plan = launch->plan;
        const struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                                      .resolve = RESOLVE_NO_MAGICLINKS };
        const long fd = sys4(SYS_openat2, AT_FDCWD, (long)plan->cwd, (long)&how, sizeof(how));
        long r = fd < 0 ? fd : sys1(SYS_fchdir, fd);

        if (fd >= 0)
                (void)sys1(SYS_close, fd);
        if (r == 0)
                return 0;
        r = step_fail(error, LAYER_NONE, (int)-r,
                      plan->cwd_asked   ? "--cwd: cannot start in the sandbox's directory"
                      : plan->workspace ? "the workspace: cannot start in the sandbox's directory"
                                        : "cannot start in the sandbox's directory",
                      plan->cwd);
        return step_cure(
                error, (int)r,
                plan->cwd_asked
                        ? "Name a directory that exists inside; a relative path starts at the "
                          "workspace."
                        : "Name a directory that exists inside and may be entered: --cwd DIR");
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

/* If the child loads the filter early (confine.c), it can no longer set the limit of core files.
 * This thread has no filter. */
static int build_early_limits(Launch *launch, Error *error) {
        return confine_is_early(launch) ? limits_confine(launch, error) : 0;
}

static const Step build_steps[] = {
        { "take an identity without privilege", build_identity },
        { "clone the mounts of the policy", build_sources },
        { "make the private file system", build_scratch },
        { "make the root's directories", build_skeleton },
        { "show the limits", build_limits },
        { "attach the system", build_system },
        { "attach the certificates", build_trust },
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
        { "set the host name", build_hostname },
        { "set the limits", build_early_limits },
};

/* Unmounting takes long, because it waits for the other processors. So the child may go on before,
 * and use the libc again: these steps do not use it. */
static const Step last_steps[] = {
        { "leave the host's tree", build_host },
        { "enter the working directory", build_cwd },
};

static void builder_run(void *unused) {
        Launch *launch = builder.launch;

        (void)unused;
        builder.result = steps_run(build_steps, ELEMENTSOF(build_steps), launch, &launch->error);
        child_flag_set(&builder.thread, &builder.mapped);
        child_flag_set(&builder.thread, &builder.ready);
        if (builder.result == 0)
                builder.last = steps_run(last_steps, ELEMENTSOF(last_steps), launch,
                                         &builder.last_error);
}

/* Without a umask, the tree gets exactly the given modes. The command gets the caller's umask back
 * (confine.c). */
static void build_begin(Launch *launch) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        child_state.umask = umask(0);
        child_state.early = false;
        builder.thread.running = builder.mapped = builder.ready = 0;
        builder.launch = launch;
        builder.last = 1;
        build_network_prepare(launch);
}

/* The child's own part, while the thread builds the tree. It does not use the libc. */
static void build_meanwhile(Launch *launch) {
        if (!build_network_here() || !confine_is_early(launch))
                return;
        if (!child_flag_wait(&builder.thread, &builder.mapped))
                return;
        build_network_set();
        confine_early(launch);
}

static const Step network_steps[] = {
        { "enter the network", build_network },
};

static int fail_killed(Error *error) {
        int r = step_fail(error, LAYER_NONE, EPERM, "a system call filter outside holt has killed",
                          "the thread that builds the tree");

        return step_cure(error, r, "Let that filter allow the calls that make namespaces.");
}

int build_run(Launch *launch, Error *error) {
        build_begin(launch);
        if (launch_has_own_network(launch) &&
            child_thread_start(&builder.thread, builder_run, NULL, builder_stack,
                               sizeof(builder_stack))) {
                build_meanwhile(launch);
                if (!child_flag_wait(&builder.thread, &builder.ready))
                        return fail_killed(error);
        } else {
                builder_run(NULL);
                if (builder.result == 0 && launch_has_own_network(launch))
                        (void)build_network_here();
        }
        return builder.result < 0
                       ? builder.result
                       : steps_run(network_steps, ELEMENTSOF(network_steps), launch, error);
}

void build_wait(void) {
        child_thread_wait(&builder.thread);
}

/* The launcher may launch again, so its memory must not be used any more by then. */
int build_finish(int so_far, Error *error) {
        build_wait();
        if (so_far < 0 || builder.last == 0)
                return so_far;
        if (builder.last > 0)
                return fail_killed(error);
        *error = builder.last_error;
        return builder.last;
}
