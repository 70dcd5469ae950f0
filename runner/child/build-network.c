/* SPDX-License-Identifier: Apache-2.0 */
/* The network namespace, made at the same time as the mounts.
 *
 * Theory of operation. This namespace alone takes as long to make as the rest of a launch. The
 * kernel sets up every protocol in it, and announces the loopback to each. The tree does not depend
 * on any of that, so a thread does it on another processor. The thread makes the namespace
 * (unshare(2) affects only the calling thread), brings the loopback up and takes the namespace's fd
 * from its socket. The child enters it when the tree is finished (build_network()). Until then, the
 * child is in the launcher's network and runs only these steps. If it cannot enter the namespace,
 * it stops.
 *
 * The thread shares the child's memory, including errno, so it makes its system calls
 * without the libc (raw-call.h). If no thread can be made (a container that hides clone3(2), a
 * limit of processes), the child does the same itself. */
#include <errno.h>
#include <linux/futex.h>
#include <linux/if.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/sys.h"
#include "child/build.h"
#include "helpers/raw-call.h"
#include "helpers/raw-clone.h"

enum { THREAD_STACK_SIZE = 16 * 1024 };

static char thread_stack[THREAD_STACK_SIZE] __attribute__((aligned(64)));

static struct {
        /* ID of the thread. When the thread ends, the kernel sets this to 0 and wakes waiters. */
        uint32_t running;
        int fd; /* The namespace. */
        int errnum;
        const char *failed; /* The failed step: an infinitive with its object. */
} network;

static int network_fail(int errnum, const char *what) {
        network.errnum = errnum;
        network.failed = what;
        return -errnum;
}

/* Makes the namespace. Any socket will do, so AF_UNIX is used: a kernel may have no IPv4. */
static int make_network(void) {
        struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
        long fd, r = sys1(SYS_unshare, CLONE_NEWNET);

        if (r < 0)
                return network_fail((int)-r, "make a net namespace");
        fd = sys3(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return network_fail((int)-fd, "make a socket");
        r = sys3(SYS_ioctl, fd, SIOCSIFFLAGS, (long)&request);
        if (r < 0)
                return network_fail((int)-r, "bring up the loopback");
        r = sys2(SYS_ioctl, fd, SIOCGSKNS);
        if (r < 0)
                return network_fail((int)-r, "reach the net namespace");
        network.fd = (int)r;
        (void)sys1(SYS_close, fd);
        return 0;
}

static void thread_main(void *unused) {
        (void)unused;
        (void)make_network();
        (void)sys1(SYS_exit, 0);
        __builtin_unreachable();
}

int build_network_begin(Launch *launch, Error *error) {
        struct clone_args args = {
                .flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                         CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
                .parent_tid = (uint64_t)(uintptr_t)&network.running,
                .child_tid = (uint64_t)(uintptr_t)&network.running,
                .stack = (uint64_t)(uintptr_t)thread_stack,
                .stack_size = sizeof(thread_stack),
        };

        (void)error;
        network.running = 0;
        network.fd = FD_NONE;
        network.errnum = 0;
        if (launch->layers.missing & LAYER_BIT(LAYER_NET))
                return 0;
        if (raw_clone(SYS_clone3, (long)&args, sizeof(args), 0, 0, 0, thread_main, NULL) < 0) {
                network.running = 0;
                (void)make_network();
        }
        return 0;
}

void build_network_wait(void) {
        uint32_t running;

        while ((running = __atomic_load_n(&network.running, __ATOMIC_ACQUIRE)))
                (void)sys4(SYS_futex, (long)&network.running, FUTEX_WAIT, running, 0);
}

int build_network(Launch *launch, Error *error) {
        int r = 0;

        if (launch->layers.missing & LAYER_BIT(LAYER_NET))
                return 0;
        build_network_wait();
        if (network.errnum)
                return step_fail(error, LAYER_NET, network.errnum, "cannot", network.failed);
        if (syscall(SYS_setns, network.fd, CLONE_NEWNET) < 0)
                r = step_fail(error, LAYER_NET, errno, "cannot enter", "the net namespace");
        network.fd = fd_close(network.fd);
        return r;
}
