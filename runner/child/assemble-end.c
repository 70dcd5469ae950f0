/* SPDX-License-Identifier: Apache-2.0 */
/* The child's second half after assembling a tree: it locks the caller's files, gives up what the
 * caller did not ask for, and confines itself as far as a policy asks for it. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "child/assemble.h"
#include "child/landlock.h"
#include "child/limits.h"

/* --- locks --- */

/* The locks belong to this process, which becomes the reaper. An untrusted workspace may have a
 * FIFO at the place, and opening that must not wait. */
static int end_lock_files(Launch *launch, Error *error) {
        Assembly *a = launch->plan->assembly;
        struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

        for (size_t i = 0; i < a->locks_count; i++) {
                a->lock_fds[i] = open(a->locks[i], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (a->lock_fds[i] < 0)
                        return step_fail(error, LAYER_NONE, errno, "cannot open the lock file",
                                         a->locks[i]);
                if (fcntl(a->lock_fds[i], F_SETLK, &lock) < 0)
                        return step_fail(error, LAYER_NONE, errno, "cannot lock the file",
                                         a->locks[i]);
        }
        return 0;
}

/* --- user namespaces --- */

/* Enters another user namespace, below the one whose limit is now 1. So no process inside can make
 * a further one. */
static int end_disable_users(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;
        Assembly inner = *a;

        if (!a->disable_userns)
                return 0;
        if (assemble_state.users_fd < 0 || write(assemble_state.users_fd, "1", 1) != 1)
                return step_fail(error, LAYER_USER, errno, "cannot write",
                                 "/proc/sys/user/max_user_namespaces");
        inner.uid = getuid();
        inner.gid = getgid();
        if (syscall(SYS_unshare, CLONE_NEWUSER) < 0)
                return step_fail(error, LAYER_USER, errno, "cannot make",
                                 "a user namespace in which there is no other");
        return assemble_map_ids(&inner, (uid_t)inner.uid, (gid_t)inner.gid, error);
}

static int end_switch_user(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;

        if (a->userns2_fd >= 0 && syscall(SYS_setns, a->userns2_fd, CLONE_NEWUSER) < 0)
                return step_fail(error, LAYER_NONE, errno, "Setting userns2", "failed");
        if (a->assert_userns_disabled && syscall(SYS_unshare, CLONE_NEWUSER) == 0)
                return step_fail(error, LAYER_NONE, EPERM,
                                 "--assert-userns-disabled: user namespaces can", "still be made");
        return 0;
}

/* --- limits --- */

static int end_limits(Launch *launch, Error *error) {
        struct rlimit files;

        if (assemble_state.files && getrlimit(RLIMIT_NOFILE, &files) == 0) {
                files.rlim_cur = assemble_state.files;
                (void)setrlimit(RLIMIT_NOFILE, &files);
        }
        return launch->plan->assembly->confined ? limits_confine(launch, error) : 0;
}

/* --- capabilities --- */

enum { CAPS_HALVES = 2 };

static int caps_fail(const char *what, Error *error) {
        return step_fail(error, LAYER_CAPABILITIES, errno, "cannot drop", what);
}

/* Keeps `wanted` in every set, or less if the child has less. A command that is not uid 0 keeps
 * them only by its ambient set. */
static int caps_reduce(uint64_t wanted, Error *error) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[CAPS_HALVES] = { 0 };

        if (syscall(SYS_capget, &header, data) < 0)
                return caps_fail("capabilities", error);
        for (unsigned long i = 0; i < 64; i++)
                if (!(wanted >> i & 1) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0) {
                        if (errno == EINVAL) /* The kernel knows no higher capability. */
                                break;
                        if (errno != EPERM)
                                return caps_fail("the bounding set", error);
                }
        for (int half = 0; half < CAPS_HALVES; half++) {
                const uint32_t kept = (uint32_t)(wanted >> (32 * half)) & data[half].permitted;

                data[half] = (struct __user_cap_data_struct){ kept, kept, kept };
        }
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
            syscall(SYS_capset, &header, data) < 0)
                return caps_fail("capabilities", error);
        for (unsigned long i = 0; i < 64; i++)
                if (data[i / 32].permitted >> (i % 32) & 1 &&
                    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) < 0)
                        return caps_fail("capabilities to the ambient set", error);
        return 0;
}

/* Root keeps its capabilities unless the caller or a policy says otherwise, like in bubblewrap. */
static int end_capabilities(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return step_fail(error, LAYER_CAPABILITIES, errno, "cannot set", "no_new_privs");
        if (launch->identity.uid == 0 && !a->capabilities_named && !a->confined)
                return 0;
        return caps_reduce(a->confined && !a->capabilities_named ? 0 : a->capabilities, error);
}

/* --- a policy's confinement --- */

/* The root is writable unless something covers it. */
static int end_landlock(Launch *launch, Error *error) {
        struct statvfs fs;
        int fd;

        if (!launch->plan->assembly->confined)
                return 0;
        fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstatvfs(fd, &fs) < 0)
                return step_fail(error, LAYER_LANDLOCK, errno, "cannot open", "/");
        if (!(fs.f_flag & ST_RDONLY) || assemble_state.everything) {
                child_state.writable_count = 0;
                assemble_note_writable(fd);
        } else {
                fd_close(fd);
        }
        return landlock_confine(launch, error);
}

static int end_limit_files(Launch *launch, Error *error) {
        return launch->plan->assembly->confined ? limits_files(launch, error) : 0;
}

/* A process can have only one filter that reports. If an outer one does, refused calls are not
 * counted. */
static int end_own_seccomp(Launch *launch, Error *error) {
        int r = confine_seccomp(launch, error);

        if (r != -EBUSY || error->layer != LAYER_NOTIFY)
                return r;
        error->text[0] = '\0';
        launch->layers.missing |= LAYER_BIT(LAYER_NOTIFY);
        return confine_seccomp(launch, error);
}

/* The process may end with its parent, and a change of capabilities or of the user namespace has
 * made the kernel forget that. */
static int end_seccomp(Launch *launch, Error *error) {
        const Assembly *a = launch->plan->assembly;

        assemble_die_with_parent(a);
        if (a->confined)
                return end_own_seccomp(launch, error);
        (void)umask(child_state.umask);
        return 0;
}

static int end_keys(Launch *launch, Error *error) {
        return launch->plan->assembly->confined ? confine_keys(launch, error) : 0;
}

/* --- the caller's seccomp programs --- */

/* Loads them here if no reaper does. */
static int end_filters(Launch *launch, Error *error) {
        static struct sock_filter program[BPF_MAXINSNS];
        const Assembly *a = launch->plan->assembly;
        off_t at = 0;
        uint32_t count;

        if (a->reaps || a->filters_fd < 0)
                return 0;
        while (pread(a->filters_fd, &count, sizeof(count), at) == (ssize_t)sizeof(count) &&
               count <= BPF_MAXINSNS) {
                const size_t size = count * sizeof(program[0]);
                const struct sock_fprog filter = { (unsigned short)count, program };

                if (pread(a->filters_fd, program, size, at + (off_t)sizeof(count)) != (ssize_t)size)
                        break;
                at += (off_t)(sizeof(count) + size);
                if (sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
                        return step_fail(error, LAYER_NONE, errno, "cannot load",
                                         "the caller's seccomp program");
        }
        return 0;
}

static const Step end_steps[] = {
        { "lock files", end_lock_files },
        { "disable user namespaces", end_disable_users },
        { "enter a user namespace", end_switch_user },
        { "set the limits", end_limits },
        { "leave the caller's keyring", end_keys },
        { "drop capabilities", end_capabilities },
        { "confine files with Landlock", end_landlock },
        { "set the limit of open files", end_limit_files },
        { "load the system call filter", end_seccomp },
        { "load the caller's filters", end_filters },
};

int assemble_confine(Launch *launch, Error *error) {
        return steps_run(end_steps, ELEMENTSOF(end_steps), launch, error);
}
