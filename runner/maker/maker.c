/* SPDX-License-Identifier: Apache-2.0 */
#include "maker/maker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/icmp.h>
#include <linux/if_addr.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/pass-fds.h"
#include "base/sys.h"
#include "confine/confine.h"
#include "maker/listeners.h"
#include "maker/nft-batch.h"
#include "maker/queue-rules.h"
#include "maker/redirect-rules.h"
#include "wire/socket-address.h"

enum {
        LOOPBACK = 1,            /* The first device of each network namespace. */
        OTHERS_TABLE = 100,      /* The number of the table of routes; any free one would do. */
        OTHERS_PRIORITY = 33000, /* Lower than that of the tables that every namespace has. */
        BACKLOG = 4096,          /* The kernel lowers it to net.core.somaxconn. */
};

typedef struct Maker {
        const NetPlan *plan;
        int fd;         /* To holt-egress. */
        int setup_fd;   /* To holt; closed by maker_enter(). */
        int network_fd; /* The sandbox's net namespace, or FD_NONE. */
        struct mnl_socket *netlink;
        int filter_fd;    /* For rules of the packet filter, or FD_NONE. */
        bool redirecting; /* redirect_rules_begin() has succeeded. */
        unsigned sequence;
        bool has6;
} Maker;

/* --- messages --- */

static int maker_send(int socket, const void *data, size_t size, int fd) {
        return send_with_fd(socket, data, size, fd, 0) < 0 ? -errno : 0;
}

/* Receives a message of exactly `size` bytes, with one fd or none. */
static int maker_receive_all(int fd, void *data, size_t size, int *ret_fd) {
        const ssize_t n = receive_with_fd(fd, data, size, ret_fd, 0);

        if (n < 0)
                return -errno;
        if (n == 0)
                return -EPIPE;
        return (size_t)n == size ? 0 : -EBADMSG;
}

int maker_receive(int maker_fd, Made *ret, int *ret_fd) {
        return maker_receive_all(maker_fd, ret, sizeof(*ret), ret_fd);
}

/* --- rtnetlink --- */

static size_t address_length(const NetAddress *address) {
        return address->family == AF_INET ? 4 : 16;
}

/* Sends a request and reads the kernel's answer. Returns 0 or a negative errno. */
static int netlink_ask(Maker *maker, struct nlmsghdr *header) {
        char answer[1024];
        ssize_t n;

        header->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
        header->nlmsg_seq = ++maker->sequence;
        if (mnl_socket_sendto(maker->netlink, header, header->nlmsg_len) < 0)
                return -errno;
        n = mnl_socket_recvfrom(maker->netlink, answer, sizeof(answer));
        if (n < 0)
                return -errno;
        return mnl_cb_run(answer, (size_t)n, maker->sequence, mnl_socket_get_portid(maker->netlink),
                          NULL, NULL) < 0
                       ? -errno
                       : 0;
}

static int add_own_address(Maker *maker, uint8_t family) {
        char room[256] = { 0 };
        struct nlmsghdr *header = mnl_nlmsg_put_header(room);
        struct ifaddrmsg *message;
        const NetAddress own = net_address_own(family, NET_OWN);

        header->nlmsg_type = RTM_NEWADDR;
        header->nlmsg_flags = NLM_F_CREATE;
        message = mnl_nlmsg_put_extra_header(header, sizeof(*message));
        message->ifa_family = family;
        message->ifa_prefixlen = (uint8_t)(address_length(&own) * 8);
        message->ifa_scope = RT_SCOPE_UNIVERSE;
        message->ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0;
        message->ifa_index = LOOPBACK;
        mnl_attr_put(header, IFA_LOCAL, address_length(&own), own.bytes);
        mnl_attr_put(header, IFA_ADDRESS, address_length(&own), own.bytes);
        return netlink_ask(maker, header);
}

/* Makes every address of the block local to the sandbox. */
static int add_route(Maker *maker, const NetAddress *block, uint8_t prefix) {
        char room[256] = { 0 };
        struct nlmsghdr *header = mnl_nlmsg_put_header(room);
        struct rtmsg *message;
        const NetAddress own = net_address_own(block->family, NET_OWN);

        header->nlmsg_type = RTM_NEWROUTE;
        header->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
        message = mnl_nlmsg_put_extra_header(header, sizeof(*message));
        message->rtm_family = block->family;
        message->rtm_dst_len = prefix;
        message->rtm_table = RT_TABLE_LOCAL;
        message->rtm_protocol = RTPROT_STATIC;
        message->rtm_scope = block->family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
        message->rtm_type = RTN_LOCAL;
        mnl_attr_put(header, RTA_DST, address_length(block), block->bytes);
        mnl_attr_put_u32(header, RTA_OIF, LOOPBACK);
        mnl_attr_put(header, RTA_PREFSRC, address_length(&own), own.bytes);
        return netlink_ask(maker, header);
}

/* Adds the rule by which TCP to all other addresses has a route. */
static int maker_add_others_rule(Maker *maker, uint8_t family) {
        char room[256] = { 0 };
        struct nlmsghdr *header = mnl_nlmsg_put_header(room);
        struct fib_rule_hdr *rule;

        header->nlmsg_type = RTM_NEWRULE;
        header->nlmsg_flags = NLM_F_CREATE;
        rule = mnl_nlmsg_put_extra_header(header, sizeof(*rule));
        rule->family = family;
        rule->action = FR_ACT_TO_TBL;
        rule->table = OTHERS_TABLE;
        mnl_attr_put_u32(header, FRA_PRIORITY, OTHERS_PRIORITY);
        mnl_attr_put_u8(header, FRA_IP_PROTO, IPPROTO_TCP);
        return netlink_ask(maker, header);
}

/* Routes TCP to all other addresses to the loopback. So these connections reach the queue, and
 * holt-egress can refuse and report them. holt-egress never lets such a connection in, and for IPv4
 * the kernel would drop its packet. Other protocols still have no route. For IPv6, the kernel
 * accepts only local routes to the loopback. */
static int maker_add_others(Maker *maker, uint8_t family) {
        char room[256] = { 0 };
        struct nlmsghdr *header = mnl_nlmsg_put_header(room);
        const NetAddress own = net_address_own(family, NET_OWN);
        struct rtmsg *message;
        int r;

        header->nlmsg_type = RTM_NEWROUTE;
        header->nlmsg_flags = NLM_F_CREATE;
        message = mnl_nlmsg_put_extra_header(header, sizeof(*message));
        message->rtm_family = family;
        message->rtm_table = OTHERS_TABLE;
        message->rtm_protocol = RTPROT_STATIC;
        message->rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
        message->rtm_type = family == AF_INET ? RTN_UNICAST : RTN_LOCAL;
        mnl_attr_put_u32(header, RTA_OIF, LOOPBACK);
        mnl_attr_put(header, RTA_PREFSRC, address_length(&own), own.bytes);
        r = netlink_ask(maker, header);
        return r < 0 ? r : maker_add_others_rule(maker, family);
}

/* --- sockets --- */

/* Makes a bound socket. No device has the addresses of an IPv6 route, so binding one needs
 * IPV6_FREEBIND. */
static int make_bound(const NetAddress *address, uint16_t port, int type, int *ret) {
        _cleanup_close_ int fd = socket(address->family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const NetAddress redirect = net_address_own(address->family, NET_REDIRECT);
        const bool four = address->family == AF_INET;
        const int on = 1;
        struct sockaddr_storage storage;
        const socklen_t length = socket_address_set(address, port, &storage);

        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
            (!four && (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0 ||
                       setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on)) < 0)) ||
            (net_address_equal(address, &redirect) &&
             setsockopt(fd, four ? IPPROTO_IP : IPPROTO_IPV6,
                        four ? IP_TRANSPARENT : IPV6_TRANSPARENT, &on, sizeof(on)) < 0) ||
            bind(fd, (const struct sockaddr *)&storage, length) < 0)
                return -errno;
        if (type == SOCK_STREAM) {
                socket_set_stream(fd);
                socket_set_local(fd); /* its connections come from the sandbox */
        }
        if (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)
                return -errno;
        *ret = TAKE_FD(fd);
        return 0;
}

static int make_and_pass(const Maker *maker, MadeKind kind, const NetAddress *address,
                         uint16_t port) {
        const Made made = { .kind = kind, .address = *address, .port = port };
        _cleanup_close_ int fd = FD_NONE;
        int r = make_bound(address, port, kind == MADE_RESOLVER_UDP ? SOCK_DGRAM : SOCK_STREAM,
                           &fd);

        return r < 0 ? r : maker_send(maker->fd, &made, sizeof(made), fd);
}

/* --- the steps --- */

int maker_receive_network(int setup_fd, int *ret_fd) {
        char byte;
        int r = maker_receive_all(setup_fd, &byte, 1, ret_fd);

        return r == 0 && *ret_fd < 0 ? -EBADMSG : r;
}

/* Closes both descriptors. */
static int maker_enter(Maker *maker) {
        _cleanup_close_ int network_fd = TAKE_FD(maker->network_fd), user_fd = FD_NONE;
        int r = network_fd < 0 ? maker_receive_network(maker->setup_fd, &network_fd) : 0;

        (void)fd_close(TAKE_FD(maker->setup_fd));
        if (r < 0)
                return r;
        user_fd = ioctl(network_fd, NS_GET_USERNS);
        if (user_fd < 0 || setns(user_fd, CLONE_NEWUSER) < 0 || setns(network_fd, CLONE_NEWNET) < 0)
                return -errno;
        return 0;
}

static int maker_open_netlink(Maker *maker) {
        (void)nft_batch_socket(&maker->filter_fd);
        maker->netlink = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
        if (!maker->netlink || mnl_socket_bind(maker->netlink, 0, MNL_SOCKET_AUTOPID) < 0)
                return -errno;
        return 0;
}

/* A kernel may have no IPv6, or have it switched off. */
static int maker_set_addresses(Maker *maker) {
        const NetAddress pool4 = net_address_own(AF_INET, 0);
        const NetAddress pool6 = net_address_own(AF_INET6, 0);
        int r = add_own_address(maker, AF_INET);

        if (r == 0)
                r = add_route(maker, &pool4, NET_POOL4_PREFIX);
        maker->has6 = add_own_address(maker, AF_INET6) == 0 &&
                      add_route(maker, &pool6, NET_POOL6_PREFIX) == 0;
        return r;
}

static int maker_make_resolver(Maker *maker) {
        const NetAddress own = net_address_own(AF_INET, NET_OWN);
        int r = make_and_pass(maker, MADE_RESOLVER_UDP, &own, 53);

        return r < 0 ? r : make_and_pass(maker, MADE_RESOLVER_TCP, &own, 53);
}

/* Even if the sandbox's own IPv6 address could not be set, it may have ::1. */
static bool maker_has(const Maker *maker, const NetAddress *address) {
        int fd;

        if (maker->has6 || address->family == AF_INET)
                return true;
        if (!net_address_equal(address, &net_loopback[1]))
                return false;
        fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        fd_close(fd);
        return fd >= 0;
}

static int maker_make_rules(Maker *maker) {
        const NetPlan *plan = maker->plan;
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->routes_count; i++)
                if (maker->has6 || plan->routes[i].address.family == AF_INET)
                        r = add_route(maker, &plan->routes[i].address, plan->routes[i].prefix);
        for (size_t i = 0; r == 0 && i < plan->listeners_count; i++)
                if (maker_has(maker, &plan->listeners[i].address))
                        r = make_and_pass(maker, MADE_LISTENER, &plan->listeners[i].address,
                                          plan->listeners[i].port);
        return r;
}

/* Redirects ports to the listener at NET_REDIRECT, which is made like others. -E2BIG: the kernel
 * cannot do that, and so many ports cannot have listeners of their own. */
static int maker_redirect(Maker *maker, const RedirectPlan *redirect) {
        if (redirect->address.family == AF_INET6 && !maker->has6)
                return 0;
        if (!maker->redirecting)
                maker->redirecting = maker->filter_fd >= 0 &&
                                     redirect_rules_begin(maker->filter_fd) == 0;
        return maker->redirecting && redirect_rules_add(maker->filter_fd, redirect) == 0 ? 0
                                                                                         : -E2BIG;
}

static int maker_make_redirects(Maker *maker) {
        const NetPlan *plan = maker->plan;
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->redirects_count; i++)
                r = maker_redirect(maker, &plan->redirects[i]);
        return r;
}

/* Passes a raw socket, by which holt-egress refuses connections to other IPv4 addresses. The kernel
 * sends no errors for these, because the errors would come from an address that is not local. */
static int maker_make_icmp(const Maker *maker) {
        const Made made = { .kind = MADE_ICMP };
        _cleanup_close_ int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
        const struct icmp_filter nothing = { .data = ~0U };

        if (fd < 0 || setsockopt(fd, SOL_RAW, ICMP_FILTER, &nothing, sizeof(nothing)) < 0)
                return -errno;
        return maker_send(maker->fd, &made, sizeof(made), fd);
}

/* Makes the queue, in which connections wait until they are judged. Without a queue, connections
 * are accepted first and judged afterwards. */
static int maker_make_queue(Maker *maker) {
        const Made made = { .kind = MADE_QUEUE };
        _cleanup_close_ int fd = FD_NONE;
        int r;

        if (maker->plan->ports_only && !net_plan_has_imports(maker->plan))
                return 0;
        if (queue_rules_make(maker->plan, &fd) < 0)
                return 0;
        r = maker_send(maker->fd, &made, sizeof(made), fd);
        if (r < 0 || maker->plan->ports_only)
                return r;
        /* These routes are optional: a kernel may have no policy routing. */
        if (r == 0 && maker_make_icmp(maker) == 0)
                (void)maker_add_others(maker, AF_INET);
        if (r == 0 && maker->has6)
                (void)maker_add_others(maker, AF_INET6);
        return r;
}

/* Confines the maker. setns(2) has made the process dumpable, so that others could trace it. */
static int maker_confine(Maker *maker) {
        (void)maker;
        return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : confine_maker();
}

/* The steps in their order. */
static const struct {
        const char *text; /* An infinitive, for errors. */
        int (*function)(Maker *maker);
        bool names; /* Skipped if the sandbox only shares ports, and has no rules. */
} maker_steps[] = {
        { "enter the sandbox's network", maker_enter, false },
        { "open netlink sockets", maker_open_netlink, false },
        { "set addresses and routes", maker_set_addresses, true },
        { "listen for DNS", maker_make_resolver, true },
        { "pass the queue", maker_make_queue, false },
        { "listen for connections", maker_make_rules, false },
        { "redirect ports", maker_make_redirects, true },
        { "confine the maker", maker_confine, false },
};

/* Sets up the network and confines this process. On failure, *ret_step is the text of the step. */
static int maker_set_up(Maker *maker, const char **ret_step) {
        for (size_t i = 0; i < ELEMENTSOF(maker_steps); i++) {
                int r = 0;

                if (!maker_steps[i].names || !maker->plan->ports_only)
                        r = maker_steps[i].function(maker);
                if (r < 0) {
                        *ret_step = maker_steps[i].text;
                        return r;
                }
        }
        return 0;
}

/* --- requests --- */

static void maker_answer(Maker *maker, const MakerRequest *request) {
        Made made = { .kind = request->kind, .address = request->address, .port = request->port };
        _cleanup_close_ int fd = FD_NONE;
        int r = 0;

        if (request->kind == MADE_REDIRECT)
                r = maker_redirect(maker, &request->redirect);
        else if (request->prefix)
                r = add_route(maker, &request->address, request->prefix);
        if (r == 0 && request->kind == MADE_SOCKET) {
                fd = socket(request->address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                r = fd < 0 ? -errno : 0;
        } else if (r == 0 && request->kind == MADE_LISTENER) {
                r = make_bound(&request->address, request->port, SOCK_STREAM, &fd);
        }
        made.ready.errnum = -r;
        (void)maker_send(maker->fd, &made, sizeof(made), fd);
}

static void maker_serve(Maker *maker) {
        MakerRequest request;
        int unexpected;

        while (maker_receive_all(maker->fd, &request, sizeof(request), &unexpected) == 0) {
                fd_close(unexpected);
                maker_answer(maker, &request);
        }
}

static void maker_main(const NetPlan *plan, int fd, int setup_fd, int network_fd) {
        Maker maker = { .plan = plan,
                        .fd = fd,
                        .setup_fd = setup_fd,
                        .network_fd = network_fd,
                        .filter_fd = FD_NONE };
        Made made = { .kind = MADE_READY };
        const char *step;
        int r = maker_set_up(&maker, &step);

        made.has6 = maker.has6;
        made.ready.errnum = -r;
        if (r < 0)
                (void)strncpy(made.ready.text, step, sizeof(made.ready.text) - 1);
        if (maker_send(fd, &made, sizeof(made), FD_NONE) == 0 && r == 0)
                maker_serve(&maker);
}

int maker_fork(const NetPlan *plan, int setup_fd, int network_fd, int *ret_fd, Error *reterr) {
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a socket pair");
        pid = fork();
        if (pid < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot fork");
        if (pid == 0) {
                (void)close(pair[0]);
                (void)close(EGRESS_CONTROL_FD);
                maker_main(plan, pair[1], setup_fd, network_fd);
                _exit(0);
        }
        (void)close(pair[1]);
        *ret_fd = pair[0];
        return 0;
}

void maker_end(int maker_fd) {
        if (maker_fd < 0)
                return;
        (void)close(maker_fd);
        while (wait4(-1, NULL, 0, NULL) < 0 && errno == EINTR)
                ;
}
