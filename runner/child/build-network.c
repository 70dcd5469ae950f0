/* SPDX-License-Identifier: Apache-2.0 */
/* The network namespace, made at the same time as the mounts.
 *
 * Theory of operation. This namespace alone takes as long to make as the rest of a launch. The
 * kernel sets up every protocol in it, and announces the loopback to each. The tree does not depend
 * on any of that, so a thread does it on another processor. The thread makes the namespace
 * (unshare(2) affects only the calling thread), sets the loopback up and takes the namespace's fd
 * from its socket. The child enters it when the tree is finished (build_network()). Until then, the
 * child is in the launcher's network and runs only these steps. If it cannot enter the namespace,
 * it stops.
 *
 * If the policy allows some hosts, the thread sends the namespace to holt-egress, which sets it up
 * at the same time (maker/maker.h). The child waits for that in build_network().
 *
 * The thread shares the child's memory, including errno, so it makes its system calls
 * without the libc (raw-call.h). If no thread can be made (a container that hides clone3(2), a
 * limit of processes), the child does the same itself. */
#include <errno.h>
#include <linux/futex.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/pass-fds.h"
#include "base/sys.h"
#include "child/build.h"
#include "helpers/raw-call.h"
#include "helpers/raw-clone.h"
#include "network/protocol.h"

enum { THREAD_STACK_SIZE = 16 * 1024 };

static char thread_stack[THREAD_STACK_SIZE] __attribute__((aligned(64)));

static struct {
        /* ID of the thread. When the thread ends, the kernel sets this to 0 and wakes waiters. */
        uint32_t running;
        int fd;       /* The namespace. */
        int setup_fd; /* The socket to holt-egress, or FD_NONE. */
        int sys_fd; /* The launcher's /proc/sys. Its net/ shows the settings of the namespace of the
                     * process that reads it.
                     */
        int errnum;
        const char *failed; /* The failed step: an infinitive with its object. */
} network;

static int network_fail(int errnum, const char *what) {
        network.errnum = errnum;
        network.failed = what;
        return -errnum;
}

/* Routes for multicast. The scope of the IPv4 route makes 127.0.0.1 the source address of packets.
 * For IPv6, the kernel accepts only local routes to the loopback. */
static const struct {
        uint8_t family, bits, scope, type;
        uint8_t first, length; /* The first byte of the group's address, and its length. */
} multicast_routes[] = {
        { AF_INET, 4, RT_SCOPE_HOST, RTN_UNICAST, 224, 4 },
        { AF_INET6, 8, RT_SCOPE_UNIVERSE, RTN_LOCAL, 0xff, 16 },
};

/* Routes multicast to the loopback, like a host does to its network. Otherwise programs that join a
 * group fail with ENODEV. */
static void route_multicast(int fd) {
        for (size_t i = 0; i < ELEMENTSOF(multicast_routes); i++) {
                const uint8_t length = multicast_routes[i].length;
                struct {
                        struct nlmsghdr header;
                        struct rtmsg route;
                        struct rtattr device_header;
                        uint32_t device;
                        struct rtattr group_header;
                        uint8_t group[16];
                } message = {
                        .header = { .nlmsg_type = RTM_NEWROUTE,
                                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE },
                        .route = { .rtm_family = multicast_routes[i].family,
                                   .rtm_dst_len = multicast_routes[i].bits,
                                   .rtm_table = RT_TABLE_MAIN,
                                   .rtm_protocol = RTPROT_BOOT,
                                   .rtm_scope = multicast_routes[i].scope,
                                   .rtm_type = multicast_routes[i].type },
                        .device_header = { .rta_len = RTA_LENGTH(4), .rta_type = RTA_OIF },
                        .device = 1, /* The loopback is the first device of each namespace. */
                        .group_header = { .rta_len = (unsigned short)RTA_LENGTH(length),
                                          .rta_type = RTA_DST },
                        .group = { multicast_routes[i].first },
                };

                message.header.nlmsg_len = (uint32_t)(sizeof(message) - sizeof(message.group)) +
                                           length;
                (void)sys6(SYS_sendto, fd, (long)&message, message.header.nlmsg_len, MSG_NOSIGNAL,
                           0, 0);
        }
}

/* Makes a socket in the namespace. Any socket can bring the loopback up. Only an rtnetlink socket
 * can also set routes, but a container's filter may refuse it. */
static long make_socket(void) {
        long fd = sys3(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

        return fd >= 0 ? fd : sys3(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

/* Sends a descriptor: the namespace to holt-egress, or a socket to holt-gateway. */
static int send_network(int setup_fd, int network_fd) {
        char byte = 0;
        struct iovec vector = { .iov_base = &byte, .iov_len = 1 };
        struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
        PassedFds memory;

        pass_fds(&message, &memory, &network_fd, 1);
        return (int)sys3(SYS_sendmsg, setup_fd, (long)&message, MSG_NOSIGNAL);
}

/* Makes the namespace. A host may refuse multicast and pings, because few programs need these. */
static int make_network(void) {
        struct ifreq request = { .ifr_name = "lo",
                                 .ifr_flags = IFF_UP | IFF_RUNNING | IFF_MULTICAST };
        long fd, r = sys1(SYS_unshare, CLONE_NEWNET);

        if (r < 0)
                return network_fail((int)-r, "make a net namespace");
        fd = make_socket();
        if (fd < 0)
                return network_fail((int)-fd, "make a socket");
        r = sys3(SYS_ioctl, fd, SIOCSIFFLAGS, (long)&request);
        if (r < 0)
                return network_fail((int)-r, "bring up the loopback");
        route_multicast((int)fd);
        r = sys2(SYS_ioctl, fd, SIOCGSKNS);
        if (r < 0)
                return network_fail((int)-r, "reach the net namespace");
        network.fd = (int)r;
        (void)sys1(SYS_close, fd);
        if (network.setup_fd >= 0) {
                r = send_network(network.setup_fd, network.fd);
                /* EPIPE: holt-egress has ended, and has sent the reason, which wait_for_egress()
                 * reads. */
                if (r < 0 && r != -EPIPE)
                        return network_fail((int)-r, "reach holt-egress");
        }
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
        network.setup_fd = launch->setup_fd;
        network.sys_fd = FD_NONE;
        if (!launch_has_own_network(launch))
                return 0;
        /* /proc/sys is opened here, because the child changes the tree while the thread runs. */
        network.sys_fd = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
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

/* Settings of the namespace, in /proc/sys/net. By default, a new namespace allows no group to send
 * pings, and only processes with capabilities to use ports below 1024. All of its ports are the
 * sandbox's own. */
static const struct {
        const char *path, *value;
} network_settings[] = {
        { "net/ipv4/ping_group_range", "1000 1000" },
        { "net/ipv4/ip_unprivileged_port_start", "0" },
};

/* Writes the settings of the caller's own namespace. A host may refuse that. The thread cannot
 * write them, because the kernel accepts only ids that are mapped already. */
static void set_network(void) {
        static_assert(PLAN_AGENT_ID == 1000, "the range of pings is the agent's group");
        for (size_t i = 0; i < ELEMENTSOF(network_settings); i++) {
                const char *value = network_settings[i].value;
                int fd = openat(network.sys_fd, network_settings[i].path, O_WRONLY | O_CLOEXEC);

                if (fd >= 0)
                        (void)sys3(SYS_write, fd, (long)value, (long)strlen(value));
                fd_close(fd);
        }
}

/* Explains why holt-egress has not set the network up. holt-egress sends EINVAL if the rules are
 * wrong. Then the host has refused no layer. */
static int egress_failed(const EgressReady *ready, Error *error) {
        int r = step_fail(error, LAYER_NET, ready->errnum, "holt-egress:", ready->text);

        if (ready->errnum != EINVAL)
                return r;
        error->kind = ERROR_POLICY;
        error->errnum = 0;
        return step_cure(error, r, "Change the rules: --net, or network.allow of the policy.");
}

/* Waits until holt-egress has set the network up. */
static int wait_for_egress(const Launch *launch, Error *error) {
        struct pollfd reply = { .fd = launch->setup_fd, .events = POLLIN };
        const struct timespec most = { .tv_sec = EGRESS_SETUP_TIME };
        static EgressReady ready;
        ssize_t n = -1;

        if (launch->setup_fd < 0 || launch->network_waits)
                return 0;
        if (syscall(SYS_ppoll, &reply, 1, &most, NULL, 0) == 1)
                n = recv(launch->setup_fd, &ready, sizeof(ready), MSG_DONTWAIT);
        /* ECONNRESET: holt-egress has ended without reading everything. Its message comes after
         * this error. */
        if (n < 0 && errno == ECONNRESET)
                n = recv(launch->setup_fd, &ready, sizeof(ready), MSG_DONTWAIT);
        if (n != (ssize_t)sizeof(ready))
                return step_fail(error, LAYER_NET, n == 0 ? EPIPE : ETIMEDOUT, "cannot reach",
                                 "holt-egress");
        ready.text[sizeof(ready.text) - 1] = '\0';
        return ready.errnum ? egress_failed(&ready, error) : 0;
}

/* Makes a socket on which holt-gateway listens, in the sandbox's network, and sends it out. */
static int give_listener(const Launch *launch, uint32_t host, uint16_t port, Error *error) {
        const struct sockaddr_in address = { .sin_family = AF_INET,
                                             .sin_port = htons(port),
                                             .sin_addr.s_addr = htonl(host) };
        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(fd, SOMAXCONN) < 0)
                return step_fail(error, LAYER_NET, errno, "cannot listen for", "routes");
        /* EPIPE: holt-gateway has ended. Then requests are refused, and the result says so. */
        return send_network(launch->gateway_fd, fd) < 0 && errno != EPIPE
                       ? step_fail(error, LAYER_NET, errno, "cannot reach", "holt-gateway")
                       : 0;
}

static int give_gateway(const Launch *launch, Error *error) {
        int r;

        if (launch->gateway_fd < 0)
                return 0;
        r = give_listener(launch, INADDR_LOOPBACK, ROUTES_PORT, error);
        return r < 0 || launch->plan->tls_hosts.count == 0
                       ? r
                       : give_listener(launch, ROUTES_TLS_IPV4, ROUTES_TLS_PORT, error);
}

int build_network(Launch *launch, Error *error) {
        int r = 0;

        if (!launch_has_own_network(launch))
                return 0;
        build_network_wait();
        if (network.errnum)
                return step_fail(error, LAYER_NET, network.errnum, "cannot", network.failed);
        if (syscall(SYS_setns, network.fd, CLONE_NEWNET) < 0)
                r = step_fail(error, LAYER_NET, errno, "cannot enter", "the net namespace");
        else
                set_network();
        network.fd = fd_close(network.fd);
        network.sys_fd = fd_close(network.sys_fd);
        if (r == 0)
                r = wait_for_egress(launch, error);
        return r < 0 ? r : give_gateway(launch, error);
}
