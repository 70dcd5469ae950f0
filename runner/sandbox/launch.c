/* SPDX-License-Identifier: Apache-2.0 */
#include "network/caller-env.h"
#include "sandbox/launch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/time.h"
#include "base/wait.h"
#include "child/clone.h"
#include "child/identity.h"
#include "child/landlock.h"
#include "child/step.h"
#include "guards/watch.h"
#include "helpers/init-protocol.h"
#include "sandbox/diagnose.h"
#include "sandbox/failure.h"
#include "sandbox/prepare.h"
#include "sandbox/probe.h"
#include "sandbox/sealed-program.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

enum { CLEAR_TIME = HOLT_WAIT(5000) }; /* Milliseconds in which a killed sandbox must end. */

/* The built helpers/init.c and, in holt-full, session-init.c. */
extern const char holt_init_start[], holt_init_end[];
#ifdef HOLT_FULL
extern const char holt_session_init_start[], holt_session_init_end[];
#endif

static const char *init_program(const LaunchPlan *plan, size_t *ret_size) {
#ifdef HOLT_FULL
        if (plan->root.source) {
                *ret_size = (size_t)(holt_session_init_end - holt_session_init_start);
                return holt_session_init_start;
        }
#endif
        (void)plan;
        *ret_size = (size_t)(holt_init_end - holt_init_start);
        return holt_init_start;
}

/* --- preparing --- */

static int open_init(Launch *launch, Error *reterr) {
        size_t size;
        const char *program = init_program(launch->plan, &size);

        return sealed_file("holt-init", program, size, &launch->init_fd, reterr);
}

/* Tests the layers that the caller allows to be missing; a layer that fails is left out. */
static void find_missing(Launch *launch) {
        for (Layer layer = LAYER_USER; layer < LAYER_MAX; layer++) {
                const char *step;

                if (launch->plan->degraded & LAYER_BIT(layer) && probe_layer(layer, &step) < 0)
                        launch->layers.missing |= LAYER_BIT(layer);
        }
        if (launch->layers.missing & LAYER_BIT(LAYER_SECCOMP))
                launch->layers.missing |= LAYER_BIT(LAYER_NOTIFY);
}

/* Blocks the signals for good: the supervisor reads them from a signalfd. SIGXFSZ and SIGPIPE
 * become errors of write(2). A caller may have ignored SIGCHLD; a process that inherits this cannot
 * wait for its children. SIGALRM stays open, because it is the deadline of a session's keeper. */
static void block_signals(const LaunchPlan *plan) {
        sigset_t all;

        (void)signal(SIGCHLD, SIG_DFL);
        (void)sigfillset(&all);
        if (plan->root.source)
                (void)sigdelset(&all, SIGALRM);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* Starts holt-egress first, because its libraries take longer to load than most of what follows.
 * Its uid must be known by now, and a session's view needs none. */
static int launch_start_egress(Launch *launch, Error *reterr) {
        if (geteuid() == 0 || launch->plan->root.source || !network_needed(launch->plan))
                return 0;
        return network_start_early(&launch->network, reterr);
}

/* Keeps PATH before holt erases the environment. A longer one is left out. */
static void launch_keep_path(Launch *launch) {
        const char *path = caller_env_get("PATH");

        if (path && strlen(path) < sizeof(launch->caller_path))
                (void)strcpy(launch->caller_path, path);
}

/* Starts holt-gateway before holt changes its user and erases its environment. */
static int launch_start_gateway(Launch *launch, Error *reterr) {
        int r = gateway_start(launch->plan, &launch->gateway, reterr);

        caller_env_forget();
        return r;
}

/* Waits as late as possible, because holt-gateway makes keys meanwhile. */
static int launch_take_trust(Launch *launch, Error *reterr) {
        return gateway_take_trust(&launch->gateway, launch->plan, reterr);
}

static int launch_prepare_output(Launch *launch, Error *reterr) {
        return output_prepare(launch->plan->output, launch->terminal.fds,
                              launch->plan->file_size ? 0 : landlock_stdio(launch, launch->stdio),
                              launch->stdio, &launch->output, reterr);
}

/* holt-gateway has the credentials by now. holt reads bytes from inside, so it keeps none. */
static int launch_erase_credentials(Launch *launch, Error *reterr) {
        const StrList *names = &launch->plan->route_variables;

        (void)reterr;
        for (size_t i = 0; i < names->count; i++)
                caller_env_erase(names->items[i]);
        return 0;
}

static int launch_take_identity(Launch *launch, Error *reterr) {
        return launch->identity.taken ? identity_take(launch, reterr) : 0;
}

static int launch_open_output(Launch *launch, Error *reterr) {
        return output_open(launch->output, reterr);
}

static int (*const prepare_steps[])(Launch *launch, Error *reterr) = {
        launch_start_egress,
        launch_start_gateway,
        prepare_all,
        launch_prepare_output,
        open_init,
        launch_take_identity,
        launch_open_output,
        launch_take_trust,
        launch_erase_credentials,
};

int launch_prepare(LaunchPlan *plan, const FdFacts *stdio, Launch *ret, Error *reterr) {
        int r;

        *ret = (Launch)LAUNCH_NONE;
        ret->plan = plan;
        if (stdio)
                memcpy(ret->stdio, stdio, sizeof(ret->stdio));
        else
                fd_facts_stdio(ret->stdio);
        block_signals(plan);
        terminal_plan(ret->stdio, &ret->terminal);
        find_missing(ret);
        launch_keep_path(ret);
        r = RUN_STEPS(prepare_steps, ret, reterr);
        return r < 0 && reterr ? diagnose(reterr) : r;
}

void launch_clear(Launch *launch) {
        system_tree_clear(&launch->system);
        fd_close(launch->init_fd);
        fd_close(launch->control_fd);
        fd_close(launch->terminal.output_fd);
        output_free(launch->output);
        watch_free(launch->watch);
        network_clear(&launch->network);
        gateway_clear(&launch->gateway);
        *launch = (Launch)LAUNCH_NONE;
}

/* --- the child --- */

/* Moves the control socket to the number at which init looks for it, and *init_fd out of its way.
 * All other fds are ours or were leaked by the caller, so none survives the exec (close_range(2),
 * Linux 5.11). launch is the launcher's memory and stays unchanged. */
static int place_fds(const Launch *launch, int *init_fd) {
        if (*init_fd == INIT_CONTROL_FD) {
                *init_fd = fcntl(*init_fd, F_DUPFD_CLOEXEC, INIT_CONTROL_FD + 1);
                if (*init_fd < 0)
                        return -errno;
        }
        if (launch->control_fd != INIT_CONTROL_FD) {
                if (dup2(launch->control_fd, INIT_CONTROL_FD) < 0)
                        return -errno;
        } else if (fcntl(INIT_CONTROL_FD, F_SETFD, 0) < 0) {
                return -errno;
        }
        return syscall(SYS_close_range, INIT_CONTROL_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno
                                                                                           : 0;
}

typedef struct ChildStart {
        Launch *launch;
        const char **argv; /* Arguments of init. */
} ChildStart;

/* Returns only if init cannot be executed. */
static void execute_init(const ChildStart *start, Error *error) {
        const Launch *launch = start->launch;
        int init_fd = launch->init_fd, r = place_fds(launch, &init_fd);

        if (r == 0) {
                (void)sys_execveat(init_fd, "", start->argv,
                                   (const char *const *)launch->plan->env.items, AT_EMPTY_PATH);
                r = -errno;
        }
        r = step_fail(error, LAYER_NONE, -r, "cannot execute", "init");
        if (r == -E2BIG)
                (void)step_cure(error, r, failure_too_long);
}

static void child_main(void *arg) {
        ChildStart *start = arg;
        Launch *launch = start->launch;
        Error *error = &launch->error;
        int r = build_run(launch, error);

        if (r == 0)
                r = launch->view ? confine_view(launch, error) : confine_run(launch, error);
        r = build_finish(r, error);
        if (r == 0 && !launch->view)
                execute_init(start, error);
        syscall(SYS_exit_group, 1);
        __builtin_unreachable();
}

/* --- the launcher --- */

/* All namespaces except the network, which is made later (build-network.c). */
static uint64_t namespace_flags(const Launch *launch) {
        uint64_t flags = 0;

        for (Layer layer = LAYER_USER; layer < LAYER_MAX; layer++)
                if (layer != LAYER_NET && !(launch->layers.missing & LAYER_BIT(layer)))
                        flags |= probe_namespace_flag(layer);
        return flags;
}

static int make_argv(const Launch *launch, char flags[4], const char ***ret) {
        const StrList *command = &launch->plan->argv;
        const char **argv = calloc(command->count + 3, sizeof(*argv));
        size_t n = 0;

        if (!argv)
                return -ENOMEM;
        if (launch->terminal.fds)
                flags[n++] = INIT_FLAG_TERMINAL;
        if (launch->terminal.background)
                flags[n++] = INIT_FLAG_BACKGROUND;
        if (n == 0)
                flags[n++] = '-';
        flags[n] = '\0';
        argv[0] = "holt-init";
        argv[1] = flags;
        memcpy(argv + 2, command->items, command->count * sizeof(*argv));
        *ret = argv;
        return 0;
}

/* Receives the fds that the child sent before it executed init (confine.c). They have arrived by
 * now. */
static int receive_fds(Sandbox *sandbox, unsigned expected, Error *reterr) {
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(LAUNCH_FDS * sizeof(int))];
        } control;
        char which = 0;
        struct iovec vector = { .iov_base = &which, .iov_len = 1 };
        struct msghdr message = { .msg_iov = &vector,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = CMSG_LEN(LAUNCH_FDS * sizeof(int)) };
        int *const places[LAUNCH_FDS] = { &sandbox->listener_fd, &sandbox->terminal_fd,
                                          &sandbox->root_fd, &sandbox->mounts_fd };
        int fds[LAUNCH_FDS] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE }, next = 0;

        if (expected == 0)
                return 0;
        if (recvmsg(sandbox->control_fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1 ||
            message.msg_controllen < sizeof(control.header) ||
            control.header.cmsg_type != SCM_RIGHTS || (unsigned)which != expected)
                return error_set(reterr, ERROR_SETUP, EPROTO, "the sandbox did not start");
        memcpy(fds, CMSG_DATA(&control.header), control.header.cmsg_len - CMSG_LEN(0));
        for (int i = 0; i < LAUNCH_FDS; i++)
                if (which & (1 << i))
                        *places[i] = fds[next++];
        return 0;
}

static unsigned wanted_layers(const Launch *launch) {
        return ~launch->layers.missing;
}

static int run_child(Launch *launch, Sandbox *sandbox, const char **argv, Error *reterr) {
        ChildStart start = { .launch = launch, .argv = argv };
        pid_t pid;
        unsigned expected = 0;
        int r;

        sandbox->started = time_now_usec();
        pid = clone_vfork(namespace_flags(launch), child_main, &start, &sandbox->pidfd);
        if (pid < 0)
                return diagnose_clone(-pid, wanted_layers(launch), reterr);
        sandbox->pid = pid;
        if (launch->error.text[0]) {
                if (reterr)
                        *reterr = launch->error;
                return reterr ? diagnose(reterr) : -launch->error.errnum;
        }
        if (!(launch->layers.missing & LAYER_BIT(LAYER_NOTIFY)))
                expected |= 1;
        if (launch->terminal.fds)
                expected |= 2;
        if (launch_gives_root(launch))
                expected |= 4 | 8;
        r = receive_fds(sandbox, expected, reterr);
        return r == 0 && launch->watch
                       ? watch_enter(launch->watch, &sandbox->root_fd, &sandbox->mounts_fd, reterr)
                       : r;
}

/* Starts holt-egress, which then gets ready while the child builds the tree. A session may need it
 * later. */
static int start_network(Launch *launch, Sandbox *sandbox, Error *reterr) {
        const bool needed = network_needed(launch->plan), lasting = launch->plan->root.source;
        int r;

        if (!launch_has_own_network(launch) || (!needed && !lasting))
                return 0;
        sandbox->network = launch->network;
        launch->network = (Network)NETWORK_CLOSED;
        r = needed ? network_start(launch->plan, &sandbox->network, reterr)
                   : network_start_later(&sandbox->network, reterr);
        launch->setup_fd = sandbox->network.setup_fd;
        launch->network_waits = sandbox->network.waits;
        return r;
}

/* The sandbox takes holt-gateway over. A view of a session has no network, and needs none. */
static int launch_give_gateway(Launch *launch, Sandbox *sandbox, Error *reterr) {
        sandbox->gateway = launch->gateway;
        launch->gateway = (GatewayLink)GATEWAY_CLOSED;
        launch->gateway_fd = sandbox->gateway.setup_fd;
        return launch->gateway_fd < 0 || launch_has_own_network(launch)
                       ? 0
                       : error_set(reterr, ERROR_POLICY, 0,
                                   "a route needs a network namespace, so --allow-degraded net "
                                   "cannot replace it");
}

int launch_start(Launch *launch, Sandbox *ret, Error *reterr) {
        Sandbox sandbox = SANDBOX_NONE;
        _cleanup_free_ const char **argv = NULL;
        char flags[4];
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
                r = error_set(reterr, ERROR_SETUP, errno, "cannot make a socket pair");
                return reterr ? diagnose(reterr) : r;
        }
        sandbox.control_fd = pair[0];
        launch->control_fd = pair[1];
        if (make_argv(launch, flags, &argv) < 0) {
                sandbox_clear(&sandbox);
                return error_oom(reterr);
        }
        if (launch->plan->timeout && !launch->plan->root.source && waker_make(&sandbox.waker) == 0)
                waker_set(&sandbox.waker, time_now_usec() + launch->plan->timeout);
        r = start_network(launch, &sandbox, reterr);
        if (r == 0)
                r = launch_give_gateway(launch, &sandbox, reterr);
        if (r == 0)
                r = identity_reach_maps(launch, reterr);
        if (r == 0)
                r = run_child(launch, &sandbox, argv, reterr);
        output_placed(launch->output);
        launch->control_fd = fd_close(launch->control_fd);
        launch->setup_fd = FD_NONE;
        network_started(&sandbox.network);
        launch->gateway_fd = FD_NONE;
        gateway_started(&sandbox.gateway);
        if (launch->identity.taken)
                identity_leave_maps(launch->identity.uid); /* See identity_take(). */
        if (r < 0) {
                sandbox_clear(&sandbox);
                return r;
        }
        *ret = sandbox;
        return 0;
}

/* Nothing runs in a view. So it needs no network, and nobody to report refused calls. */
int launch_view(Launch *launch, Sandbox *ret, Error *reterr) {
        int r;

        launch->view = true;
        launch->layers.missing |= LAYER_BIT(LAYER_NET) | LAYER_BIT(LAYER_NOTIFY);
        r = launch_start(launch, ret, reterr);
        if (r == 0)
                (void)waitpid(ret->pid, NULL, 0);
        return r;
}

/* Does not wait forever: a process that the kernel cannot end (in uninterruptible sleep, or traced
 * from outside) keeps the whole sandbox from ending. Such a process runs no code of its own any
 * more. */
void sandbox_clear(Sandbox *sandbox) {
        if (sandbox->pidfd >= 0) {
                struct pollfd end = { .fd = sandbox->pidfd, .events = POLLIN };

                (void)sys_pidfd_send_signal(sandbox->pidfd, SIGKILL);
                while (poll(&end, 1, CLEAR_TIME) < 0 && errno == EINTR)
                        ;
                (void)waitpid(sandbox->pid, NULL, WNOHANG);
        }
        fd_close(sandbox->pidfd);
        fd_close(sandbox->control_fd);
        fd_close(sandbox->terminal_fd);
        fd_close(sandbox->listener_fd);
        fd_close(sandbox->tracer.pidfd);
        fd_close(sandbox->root_fd);
        fd_close(sandbox->mounts_fd);
        network_clear(&sandbox->network);
        gateway_clear(&sandbox->gateway);
        *sandbox = (Sandbox)SANDBOX_NONE;
}
