/* SPDX-License-Identifier: Apache-2.0 */
/* The child's second half: it permanently gives up everything that building needed. seccomp comes
 * last if a policy changes the filter, since that may forbid calls that the other steps make. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/securebits.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/pass-fds.h"
#include "base/sys.h"
#include "child/landlock.h"
#include "child/limits.h"
#include "child/step.h"
#include "helpers/raw-call.h"
#include "policy/syscalls/syscalls.h"

#ifndef SECCOMP_FILTER_FLAG_NEW_LISTENER
#define SECCOMP_FILTER_FLAG_NEW_LISTENER (1UL << 3)
#endif

static bool confine_missing(const Launch *launch, Layer layer) {
        return launch->layers.missing & LAYER_BIT(layer);
}

/* --- capabilities --- */

/* Drops the capabilities of every set: bounding and ambient by prctl(2), the other three by
 * capset(2). SECBIT_NOROOT keeps a later exec by uid 0 from getting any back. SECBIT_KEEP_CAPS is
 * not locked: there is nothing to keep, and ping(8) fails if it cannot set that bit. */
static int confine_capabilities(Launch *launch, Error *error) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        const struct __user_cap_data_struct none[2] = { 0 };
        long r;

        (void)launch;
        for (long capability = 0; capability < 64; capability++) {
                r = sys5(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0);
                if (r == -EINVAL) /* The kernel knows no higher capability. */
                        break;
                if (r < 0)
                        return step_fail(error, LAYER_CAPABILITIES, (int)-r, "cannot drop",
                                         "the bounding set");
        }
        r = sys5(SYS_prctl, PR_SET_SECUREBITS,
                 SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                         SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                         SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
                 0, 0, 0);
        if (r < 0)
                return step_fail(error, LAYER_CAPABILITIES, (int)-r, "cannot set", "securebits");
        r = sys5(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (r == 0)
                r = sys2(SYS_capset, (long)&header, (long)none);
        if (r < 0)
                return step_fail(error, LAYER_CAPABILITIES, (int)-r, "cannot drop",
                                 "the capabilities");
        r = sys5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        return r < 0 ? step_fail(error, LAYER_CAPABILITIES, (int)-r, "cannot set", "no_new_privs")
                     : 0;
}

/* --- keys --- */

/* Leaves the caller's session keyring. The child inherits that keyring, and with it the keys. A new
 * keyring counts against the caller's quota. So holt replaces the keyring only if the command may
 * be able to call keyctl(2), which no preset allows. A kernel without keyrings fails with ENOSYS,
 * which is harmless. If a container's filter refuses the call (EPERM), it refuses it to the command
 * too. */
int confine_keys(Launch *launch, Error *error) {
        enum { JOIN_SESSION_KEYRING = 1 };

        if (!launch->plan->program && !confine_missing(launch, LAYER_SECCOMP))
                return 0;
        if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
            errno != EPERM)
                return step_fail(error, LAYER_CAPABILITIES, errno, "cannot leave",
                                 "the caller's session keyring");
        return 0;
}

/* --- seccomp --- */

/* Sends the notification fd, the terminal's master, the root and the mount namespace to the
 * launcher; each may be missing. The bits of the message's only byte tell the receiver which ones
 * are sent. */
static int send_fds(const Launch *launch, int listener_fd, Error *error) {
        const bool root = launch_gives_root(launch);
        const int all[LAUNCH_FDS] = { listener_fd, child_state.terminal_fd,
                                      root ? child_state.root_fd : FD_NONE,
                                      root ? child_state.mounts_fd : FD_NONE };
        uint8_t which = 0;
        struct iovec vector = { .iov_base = &which, .iov_len = 1 };
        struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
        int fds[LAUNCH_FDS];
        size_t count = 0;
        PassedFds passed;

        for (int i = 0; i < LAUNCH_FDS; i++)
                if (all[i] >= 0) {
                        fds[count++] = all[i];
                        which |= (uint8_t)(1U << i);
                }
        if (count == 0)
                return 0;
        static_assert((int)LAUNCH_FDS <= (int)PASS_FDS_MAX, "all fds fit into a message");
        pass_fds(&message, &passed, fds, count);
        if (sendmsg(launch->control_fd, &message, MSG_NOSIGNAL) != 1)
                return step_fail(error, LAYER_NONE, errno, "cannot hand over", "file descriptors");
        return 0;
}

static SyscallProgram choose_program(const LaunchPlan *plan, bool notify) {
        if (!plan->program)
                return syscalls_builtin(plan->syscall_preset, notify);
        if (notify)
                return (SyscallProgram){ plan->program, plan->program_length };
        return (SyscallProgram){ plan->program_quiet, plan->program_quiet_length };
}

/* Stores the fd that reports refused calls, or FD_NONE. */
static int confine_load_filter(const Launch *launch, int *ret_fd, Error *error) {
        const bool notify = !confine_missing(launch, LAYER_NOTIFY);
        const SyscallProgram program = choose_program(launch->plan, notify);
        const struct sock_fprog filter = {
                .len = program.len, .filter = (struct sock_filter *)(uintptr_t)program.filter
        };
        long fd;

        *ret_fd = FD_NONE;
        if (confine_missing(launch, LAYER_SECCOMP))
                return 0;
        fd = sys3(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                  notify ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0, (long)&filter);
        if (fd < 0)
                return step_fail(error, notify && fd == -EBUSY ? LAYER_NOTIFY : LAYER_SECCOMP,
                                 (int)-fd, "cannot load", "the filter");
        if (notify)
                *ret_fd = (int)fd;
        return 0;
}

/* Under the filter, only calls that no policy can deny (@basic) may be made. The launcher answers
 * the others, but it sleeps until the exec. */
int confine_seccomp(Launch *launch, Error *error) {
        int fd, r;

        (void)umask(child_state.umask);
        r = confine_load_filter(launch, &fd, error);
        if (r == 0)
                r = send_fds(launch, fd, error);
        fd_close(fd);
        return r;
}

int confine_view(Launch *launch, Error *error) {
        return send_fds(launch, FD_NONE, error);
}

/* --- all --- */

/* The thread that builds the tree needs a descriptor until its end. */
static int confine_open_files(Launch *launch, Error *error) {
        build_wait();
        return limits_files(launch, error);
}

static const Step confine_steps[] = {
        { "set the limits", limits_confine },
        { "leave the caller's keyring", confine_keys },
        { "drop every capability", confine_capabilities },
        { "confine files with Landlock", landlock_confine },
        { "set the limit of open files", confine_open_files },
        { "load the system call filter", confine_seccomp },
};

/* --- in two parts --- */

/* The kernel compiles a filter when it is loaded, which takes a fifth of the time that the tree
 * takes. So the child of most launches loads it on another processor, while a thread builds the
 * tree (build.c). The filter then applies to the child's later steps, too. Both presets allow the
 * calls of these steps, but a policy's own filter may not. */

static struct {
        Error error;
        int result, listener_fd;
} early;

bool confine_is_early(const Launch *launch) {
        const LaunchPlan *plan = launch->plan;

        return launch_has_own_network(launch) && launch->setup_fd < 0 && launch->gateway_fd < 0 &&
               !launch->view && !plan->program && plan->cpus == 0 &&
               !confine_missing(launch, LAYER_SECCOMP);
}

static int early_seccomp(Launch *launch, Error *error) {
        return confine_load_filter(launch, &early.listener_fd, error);
}

static const Step early_steps[] = {
        { "drop every capability", confine_capabilities },
        { "load the system call filter", early_seccomp },
};

void confine_early(Launch *launch) {
        child_state.early = true;
        early.result = steps_run(early_steps, ELEMENTSOF(early_steps), launch, &early.error);
}

static int late_finish(Launch *launch, Error *error) {
        (void)umask(child_state.umask);
        return send_fds(launch, early.listener_fd, error);
}

static const Step late_steps[] = {
        { "confine files with Landlock", landlock_confine },
        { "set the limit of open files", confine_open_files },
        { "hand over the system call filter", late_finish },
};

int confine_run(Launch *launch, Error *error) {
        if (!child_state.early)
                return steps_run(confine_steps, ELEMENTSOF(confine_steps), launch, error);
        if (early.result < 0) {
                *error = early.error;
                return early.result;
        }
        return steps_run(late_steps, ELEMENTSOF(late_steps), launch, error);
}
