/* SPDX-License-Identifier: Apache-2.0 */
/* The network namespace, made at the same time as the mounts.
 *
 * Theory of operation. This namespace alone takes as long to make as the rest of a launch. The
 * kernel sets up every protocol in it, and announces the loopback to each. The tree does not depend
 * on any of that. So two threads share the work (thread.h), and this part makes its system calls
 * without the libc.
 *
 * The child makes the namespace itself, while a thread builds the tree (build.c). In a tree that is
 * assembled step by step (assemble.c), it is the thread that makes the namespace: unshare(2)
 * affects only the calling thread. It takes the namespace's fd from a socket, and the child enters
 * the namespace by it later (build_network()).
 *
 * If the policy allows some hosts, the namespace is sent to holt-egress, which sets it up at the
 * same time (maker/maker.h). The child waits for that in build_network(). */
#include <errno.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/pass-fds.h"
#include "base/sys.h"
#include "child/build.h"
#include "child/thread.h"
#include "helpers/raw-call.h"
#include "network/protocol.h"

enum { THREAD_STACK_SIZE = 16 * 1024 };

static char thread_stack[THREAD_STACK_SIZE] __attribute__((aligned(64)));

static struct {
        ChildThread thread;
        bool entered; /* The child is in the namespace already. */
        bool set;     /* Its settings have been written. */
        int fd;       /* The namespace, unless the child is in it and nobody else needs it. */
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
        if (!network.entered || network.setup_fd >= 0) {
                r = sys2(SYS_ioctl, fd, SIOCGSKNS);
                if (r < 0)
                        return network_fail((int)-r, "reach the net namespace");
                network.fd = (int)r;
        }
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

static void thread_make_network(void *unused) {
        (void)unused;
        (void)make_network();
}

void build_network_prepare(const Launch *launch) {
        network.thread.running = 0;
        network.entered = network.set = false;
        network.fd = FD_NONE;
        network.errnum = 0;
        network.setup_fd = launch->setup_fd;
        /* This is opened here, because the tree changes meanwhile. */
        network.sys_fd = launch_has_own_network(launch)
                                 ? open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC)
                                 : FD_NONE;
}

int build_network_begin(Launch *launch, Error *error) {
        (void)error;
        build_network_prepare(launch);
        if (launch_has_own_network(launch) &&
            !child_thread_start(&network.thread, thread_make_network, NULL, thread_stack,
                                sizeof(thread_stack)))
                (void)make_network();
        return 0;
}

void build_network_wait(void) {
        child_thread_wait(&network.thread);
}

bool build_network_here(void) {
        network.entered = true;
        return make_network() == 0;
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

/* Writes the settings once. A host may refuse them. The ids must be mapped already, and the caller
 * must be in the namespace. */
void build_network_set(void) {
        static_assert(PLAN_AGENT_ID == 1000, "the range of pings is the agent's group");
        if (network.set)
                return;
        for (size_t i = 0; i < ELEMENTSOF(network_settings); i++) {
                const char *value = network_settings[i].value;
                const long fd = sys4(SYS_openat, network.sys_fd, (long)network_settings[i].path,
                                     O_WRONLY | O_CLOEXEC, 0);

                if (fd >= 0) {
                        (void)sys3(SYS_write, fd, (long)value, (long)strlen(value));
                        (void)sys1(SYS_close, fd);
                }
        }
        network.set = true;
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
        if (!network.entered && syscall(SYS_setns, network.fd, CLONE_NEWNET) < 0)
                r = step_fail(error, LAYER_NET, errno, "cannot enter", "the net namespace");
        else
                build_network_set();
        network.fd = fd_close(network.fd);
        network.sys_fd = fd_close(network.sys_fd);
        if (r == 0)
                r = wait_for_egress(launch, error);
        return r < 0 ? r : give_gateway(launch, error);
}
