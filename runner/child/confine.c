/* SPDX-License-Identifier: Apache-2.0 */
/* The child's second half: it permanently gives up everything that building needed. seccomp comes
 * last, since it forbids calls that the other steps make. */
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

        (void)launch;
        for (unsigned long capability = 0; capability < 64; capability++)
                if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0) {
                        if (errno == EINVAL) /* The kernel knows no higher capability. */
                                break;
                        return step_fail(error, LAYER_CAPABILITIES, errno, "cannot drop",
                                         "the bounding set");
                }
        if (prctl(PR_SET_SECUREBITS,
                  SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                          SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                          SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
                  0, 0, 0) < 0)
                return step_fail(error, LAYER_CAPABILITIES, errno, "cannot set", "securebits");
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
            syscall(SYS_capset, &header, none) < 0)
                return step_fail(error, LAYER_CAPABILITIES, errno, "cannot drop",
                                 "the capabilities");
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return step_fail(error, LAYER_CAPABILITIES, errno, "cannot set", "no_new_privs");
        return 0;
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

int confine_seccomp(Launch *launch, Error *error) {
        bool notify = !confine_missing(launch, LAYER_NOTIFY);
        SyscallProgram program = choose_program(launch->plan, notify);
        struct sock_fprog filter = { .len = program.len,
                                     .filter = (struct sock_filter *)(uintptr_t)program.filter };
        int fd = FD_NONE, r;

        /* Under the filter, only calls that no policy can deny (@basic) may be made. The launcher
         * answers the others, but it sleeps until the exec. */
        (void)umask(child_state.umask);
        if (!confine_missing(launch, LAYER_SECCOMP)) {
                fd = sys_seccomp(SECCOMP_SET_MODE_FILTER,
                                 notify ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0, &filter);
                if (fd < 0)
                        return step_fail(error,
                                         notify && errno == EBUSY ? LAYER_NOTIFY : LAYER_SECCOMP,
                                         errno, "cannot load", "the filter");
                if (!notify)
                        fd = FD_NONE; /* The call returned a plain 0, not an fd. */
        }
        r = send_fds(launch, fd, error);
        fd_close(fd);
        return r;
}

static const Step confine_steps[] = {
        { "set the limits", limits_confine },
        { "leave the caller's keyring", confine_keys },
        { "drop every capability", confine_capabilities },
        { "confine files with Landlock", landlock_confine },
        { "load the system call filter", confine_seccomp },
};

int confine_view(Launch *launch, Error *error) {
        return send_fds(launch, FD_NONE, error);
}

int confine_run(Launch *launch, Error *error) {
        return steps_run(confine_steps, ELEMENTSOF(confine_steps), launch, error);
}
