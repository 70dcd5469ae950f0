/* SPDX-License-Identifier: Apache-2.0 */
#include "bwrap/start.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pass-fds.h"
#include "base/sys.h"
#include "base/time.h"
#include "child/clone.h"
#include "child/step.h"
#include "helpers/reaper-protocol.h"
#include "policy/assembly.h"
#include "sandbox/diagnose.h"
#include "sandbox/probe.h"
#include "sandbox/sealed-program.h"

/* The built helpers/reaper.c. */
extern const char holt_reaper_start[], holt_reaper_end[];

/* The data that the child needs to execute the command. */
typedef struct BwrapChild {
        Launch *launch;
        int reaper_fd, event_fd;
        int control_fd;    /* the launcher's end of launch->control_fd, or FD_NONE */
        const char **argv; /* the reaper's words: "bwrap", the numbers, the program, the command */
        char numbers[1024];
} BwrapChild;

/* --- preparing --- */

/* Copies the caller's seccomp programs into a file that the reaper reads. */
static int filters_copy(const Assembly *a, int fd, Error *reterr) {
        static char program[BPF_MAXINSNS * sizeof(struct sock_filter) + 1];

        for (size_t i = 0; i < a->filters_count; i++) {
                size_t length = 0;
                ssize_t n = 1;
                uint32_t count;

                while (n != 0 && length < sizeof(program)) {
                        n = read(a->filter_fds[i], program + length, sizeof(program) - length);
                        if (n < 0 && errno != EINTR)
                                return error_set(reterr, ERROR_USAGE, errno,
                                                 "cannot read a seccomp program");
                        length += n > 0 ? (size_t)n : 0;
                }
                count = (uint32_t)(length / sizeof(struct sock_filter));
                if (length == 0 || length % sizeof(struct sock_filter) || count > BPF_MAXINSNS)
                        return error_set(reterr, ERROR_USAGE, 0,
                                         "a seccomp program must consist of instructions of 8 "
                                         "bytes, at most 4096");
                if (sys_write_all(fd, (const char *)&count, sizeof(count)) < 0 ||
                    sys_write_all(fd, program, length) < 0)
                        return error_set(reterr, ERROR_SETUP, errno,
                                         "cannot copy a seccomp program");
        }
        return 0;
}

static int prepare_filters(Assembly *a, Error *reterr) {
        a->filters_fd = FD_NONE;
        if (a->filters_count == 0)
                return 0;
        a->filters_fd = sys_memfd_create("bwrap-seccomp", MFD_CLOEXEC);
        return a->filters_fd < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot copy a seccomp program")
                       : filters_copy(a, a->filters_fd, reterr);
}

/* Gives --info-fd to the child through a socket. This process must not hold it, because the caller
 * may read it to its end while this process sleeps. */
static int prepare_info(Assembly *a, Error *reterr) {
        int pair[2];

        a->info_socket = FD_NONE;
        if (a->info_fd < 0)
                return 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
            send_with_fd(pair[0], "", 1, a->info_fd, 0) != 1)
                return error_set(reterr, ERROR_SETUP, errno, "cannot hand over --info-fd");
        (void)close(pair[0]);
        (void)close(a->info_fd);
        a->info_socket = pair[1];
        return 0;
}

/* Enters the namespaces that the caller names, before anything is made in them. */
static int prepare_namespaces(const Assembly *a, Error *reterr) {
        if (a->userns_fd >= 0 && syscall(SYS_setns, a->userns_fd, CLONE_NEWUSER) < 0)
                return error_set(reterr, ERROR_SETUP, errno,
                                 "cannot enter the user namespace of --userns");
        if (a->pidns_fd >= 0 && syscall(SYS_setns, a->pidns_fd, CLONE_NEWPID) < 0)
                return error_set(reterr, ERROR_SETUP, errno,
                                 "cannot enter the pid namespace of --pidns");
        return 0;
}

/* Whether this process can make namespaces without a user namespace of its own. */
static bool is_privileged(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { 0 };

        return geteuid() == 0 && syscall(SYS_capget, &header, data) == 0 &&
               data[0].effective & 1U << CAP_SYS_ADMIN;
}

/* --- the child --- */

static void numbers_add(char *text, long number) {
        char digits[24];
        char *end = text + strlen(text), *d = digits;

        if (number < 0)
                *end++ = '-';
        for (unsigned long rest = (unsigned long)(number < 0 ? -number : number);; rest /= 10) {
                *d++ = (char)('0' + rest % 10);
                if (rest < 10)
                        break;
        }
        while (d > digits)
                *end++ = *--d;
        *end++ = ',';
        *end = '\0';
}

/* Lets the descriptor survive the execution of the reaper, which then closes it to the command. */
static void numbers_pass(BwrapChild *child, int fd) {
        if (fd >= 0)
                (void)fcntl(fd, F_SETFD, 0);
        numbers_add(child->numbers, fd);
}

static void execute_reaper(BwrapChild *child, Error *error) {
        const LaunchPlan *plan = child->launch->plan;
        const Assembly *a = plan->assembly;

        numbers_pass(child, child->event_fd);
        numbers_pass(child, a->filters_fd);
        numbers_add(child->numbers, a->die_with_parent);
        for (size_t i = 0; i < a->locks_count; i++)
                numbers_pass(child, a->lock_fds[i]);
        if (a->sync_fd >= 0)
                numbers_pass(child, a->sync_fd);
        child->argv[1] = child->numbers;
        (void)sys_execveat(child->reaper_fd, "", child->argv, (const char *const *)plan->env.items,
                           AT_EMPTY_PATH);
        (void)step_fail(error, LAYER_NONE, errno, "cannot execute", "the reaper");
}

static void bwrap_child_main(void *arg) {
        BwrapChild *child = arg;
        Launch *launch = child->launch;
        Error *error = &launch->error;
        int r = assemble_run(launch, error);

        if (r == 0)
                r = assemble_confine(launch, error);
        if (r == 0 && launch->plan->assembly->reaps)
                execute_reaper(child, error);
        else if (r == 0)
                (void)assemble_execute(launch->plan->assembly->argv[0], child->argv + 3,
                                       (const char *const *)launch->plan->env.items, error);
        syscall(SYS_exit_group, 1);
        __builtin_unreachable();
}

/* --- starting --- */

static int make_child_argv(const Assembly *a, const char ***ret) {
        size_t count = 0;
        const char **argv;

        while (a->argv[count])
                count++;
        argv = calloc(count + 4, sizeof(*argv));
        if (!argv)
                return -ENOMEM;
        argv[0] = "bwrap";
        argv[2] = a->argv[0];
        memcpy(argv + 3, a->argv, count * sizeof(*argv));
        if (a->argv0)
                argv[3] = a->argv0;
        *ret = argv;
        return 0;
}

/* The network namespace is made by the child (build-network.c). */
static uint64_t clone_flags(const Assembly *a) {
        return (a->namespaces & ~(uint64_t)CLONE_NEWNET) | CLONE_NEWNS;
}

/* Receives the fd for seccomp notifications, which the child has sent before it executed anything.
 */
static int receive_listener(const BwrapChild *child, BwrapSandbox *sandbox, Error *reterr) {
        char which;

        if (child->control_fd < 0 || child->launch->layers.missing & LAYER_BIT(LAYER_NOTIFY))
                return 0;
        return receive_with_fd(child->control_fd, &which, 1, &sandbox->listener_fd, MSG_DONTWAIT) ==
                                       1 &&
                               sandbox->listener_fd >= 0
                       ? 0
                       : error_set(reterr, ERROR_SETUP, EPROTO, "the sandbox did not start");
}

/* Starts the child. Namespaces that the caller wants only if possible are left out if the kernel
 * refuses them. */
static int start_child(BwrapChild *child, BwrapSandbox *sandbox, Error *reterr) {
        Launch *launch = child->launch;
        Assembly *a = launch->plan->assembly;
        pid_t pid = clone_vfork(clone_flags(a), bwrap_child_main, child, &sandbox->pidfd);

        if (pid < 0 && a->cgroup_try && a->namespaces & CLONE_NEWCGROUP) {
                a->namespaces &= ~(uint64_t)CLONE_NEWCGROUP;
                pid = clone_vfork(clone_flags(a), bwrap_child_main, child, &sandbox->pidfd);
        }
        if (pid < 0 && a->user_try && a->namespaces & CLONE_NEWUSER) {
                a->namespaces &= ~(uint64_t)CLONE_NEWUSER;
                pid = clone_vfork(clone_flags(a), bwrap_child_main, child, &sandbox->pidfd);
        }
        if (pid < 0) {
                int r = error_layer(reterr, LAYER_USER, -pid, "cannot make namespaces");

                (void)r;
                return reterr ? diagnose(reterr) : pid;
        }
        sandbox->pid = pid;
        if (!launch->error.text[0])
                return receive_listener(child, sandbox, reterr);
        if (reterr)
                *reterr = launch->error;
        return reterr ? diagnose(reterr) : -launch->error.errnum;
}

static int bwrap_prepare(Launch *launch, Error *reterr) {
        Assembly *a = launch->plan->assembly;
        int r;

        a->parent_fd = FD_NONE;
        r = prepare_filters(a, reterr);

        if (r == 0)
                r = prepare_info(a, reterr);
        if (r == 0)
                r = prepare_namespaces(a, reterr);
        if (r < 0)
                return r;
        if (a->die_with_parent && (a->parent_fd = sys_pidfd_open(getpid())) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot open a pidfd");
        if (a->userns_fd < 0 && (!is_privileged() || a->user_try))
                a->namespaces |= CLONE_NEWUSER;
        if (a->cgroup_try)
                a->namespaces |= CLONE_NEWCGROUP;
        a->reaps = !a->as_pid_1 &&
                   (a->namespaces & CLONE_NEWPID || a->locks_count > 0 || a->sync_fd >= 0);
        launch->identity = (Identity){ .uid = geteuid(), .gid = getegid() };
        return 0;
}

/* The layers that neither the caller nor a policy asked for, for the report. */
static unsigned layers_left_out(const Assembly *a) {
        unsigned left = a->confined ? 0
                                    : LAYER_BIT(LAYER_SECCOMP) | LAYER_BIT(LAYER_NOTIFY) |
                                              LAYER_BIT(LAYER_LANDLOCK) | LAYER_BIT(LAYER_LIMITS);

        for (Layer layer = LAYER_USER; layer < LAYER_MAX; layer++) {
                const unsigned long flag = probe_namespace_flag(layer);

                if (flag && !((a->namespaces | CLONE_NEWNS) & flag))
                        left |= LAYER_BIT(layer);
        }
        return left;
}

/* Makes the ends of pipes and sockets, and the memory file of the reaper. */
static int bwrap_open(Launch *launch, BwrapChild *child, BwrapSandbox *sandbox, Error *reterr) {
        const Assembly *a = launch->plan->assembly;
        int pair[2], r = 0;

        if (a->confined) {
                if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                        return error_set(reterr, ERROR_SETUP, errno, "cannot make a socket pair");
                child->control_fd = pair[0];
                launch->control_fd = pair[1];
        }
        if (!a->reaps)
                return 0;
        r = sealed_file("holt-reaper", holt_reaper_start,
                        (size_t)(holt_reaper_end - holt_reaper_start), &child->reaper_fd, reterr);
        if (r < 0)
                return r;
        if (pipe2(pair, O_CLOEXEC) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a pipe");
        sandbox->event_fd = pair[0];
        child->event_fd = pair[1];
        return fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot prepare a pipe")
                       : 0;
}

/* The child's ends are closed here, whether it has started or not. */
int bwrap_start(Launch *launch, BwrapSandbox *ret, Error *reterr) {
        BwrapSandbox sandbox = { .pidfd = FD_NONE,
                                 .event_fd = FD_NONE,
                                 .listener_fd = FD_NONE,
                                 .report_fd = launch->plan->report_fd,
                                 .started = time_now_usec() };
        BwrapChild child = {
                .launch = launch, .reaper_fd = FD_NONE, .event_fd = FD_NONE, .control_fd = FD_NONE
        };
        const Assembly *a = launch->plan->assembly;
        int r = bwrap_prepare(launch, reterr);

        launch->layers.switched_off |= layers_left_out(a);
        if (r == 0 && make_child_argv(a, &child.argv) < 0)
                r = error_oom(reterr);
        if (r == 0)
                r = bwrap_open(launch, &child, &sandbox, reterr);
        if (r == 0)
                r = start_child(&child, &sandbox, reterr);
        fd_close(child.event_fd);
        fd_close(child.reaper_fd);
        fd_close(child.control_fd);
        launch->control_fd = fd_close(launch->control_fd);
        fd_close(a->filters_fd);
        fd_close(a->info_socket);
        fd_close(a->parent_fd);
        free(child.argv);
        *ret = sandbox;
        return r;
}
