/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. An allowed name is resolved outside before the reply. So a program learns at
 * once if a name does not exist, or has no IPv6 address. The reply then has the name's address
 * inside. All other names do not exist (NXDOMAIN): programs would repeat a query that was refused
 * or failed. */
#include "egress/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "egress/once.h"
#include "egress/questions.h"
#include "wire/dns-wire.h"

enum {
        QUERY_MAX = 512,    /* Bytes. A query has one name. */
        WAITING_MAX = 256,  /* Queries whose names are looked up. */
        CLIENTS_MAX = 32,   /* Connections over TCP. */
        BELOW_LENGTH = 100, /* Bytes of a name below a wildcard. */
        ASKED_TTL = 5,      /* Seconds, for a name that holt may ask about. */
        READ_TURN = 32,     /* Datagrams until others have their turn. */
};

typedef struct DnsClient {
        Resolver *resolver;
        int fd;
        LoopWatch *watch;
        size_t waiting; /* Queries without a reply. */
        size_t length;
        uint8_t data[2 + QUERY_MAX];
} DnsClient;

/* A query whose name is being looked up. */
typedef struct DnsWait {
        Resolver *resolver;
        bool used;
        DnsClient *client; /* NULL for UDP. */
        struct sockaddr_storage peer;
        socklen_t peer_length;
        DnsQuery query;
        size_t length;
        uint8_t data[QUERY_MAX]; /* query.question points into it. */
        unsigned number;
        char name[NET_NAME_MAX + 1];
} DnsWait;

struct Resolver {
        Egress *egress;
        int udp_fd, tcp_fd;
        LoopWatch *udp_watch, *tcp_watch;
        DnsClient clients[CLIENTS_MAX];
        DnsWait waits[WAITING_MAX];
};

/* --- replies --- */

static void client_close(DnsClient *client) {
        client->watch = loop_unwatch(client->watch);
        client->fd = fd_close(client->fd);
        client->length = 0;
}

static void wait_send(DnsWait *wait, const uint8_t *reply, size_t length) {
        DnsClient *client = wait->client;
        uint8_t framed[2 + DNS_REPLY_MAX] = { (uint8_t)(length >> 8), (uint8_t)length };

        if (!client) {
                (void)sendto(wait->resolver->udp_fd, reply, length, MSG_NOSIGNAL | MSG_DONTWAIT,
                             (const struct sockaddr *)&wait->peer, wait->peer_length);
                return;
        }
        client->waiting--;
        memcpy(framed + 2, reply, length);
        if (client->fd >= 0 && send(client->fd, framed, length + 2, MSG_NOSIGNAL | MSG_DONTWAIT) !=
                                       (ssize_t)(length + 2))
                client_close(client);
}

static void wait_reply(DnsWait *wait, int code, const NetAddress *answer, const char *target,
                       uint32_t ttl) {
        uint8_t reply[DNS_REPLY_MAX];
        size_t length = dns_reply_write(&wait->query, code, answer, answer ? 1 : 0, target, ttl,
                                        reply);

        wait->used = false;
        wait_send(wait, reply, length);
}

/* --- names --- */

/* Whether a rule allows this address of a name, for any port. The port is judged when a program
 * connects. */
static bool address_allowed(const Egress *egress, const NetAddress *address, const char **ret_why) {
        const char *why = net_address_forbidden(address);

        for (size_t i = 0; why && i < egress->rules.count; i++) {
                const NetRule *rule = &egress->rules.items[i];

                if (rule->kind == NET_BLOCK &&
                    net_address_in(address, &rule->address, rule->prefix))
                        why = NULL;
        }
        if (why)
                *ret_why = why;
        return !why;
}

/* Answers with the name's address inside. */
static void wait_allow(DnsWait *wait, uint32_t ttl) {
        const Egress *egress = wait->resolver->egress;
        const uint8_t family = wait->query.type == DNS_AAAA ? AF_INET6 : AF_INET;
        const NetAddress answer = net_address_of_number(family, wait->number);

        if (family == AF_INET6 && !egress->has6)
                return wait_reply(wait, DNS_NOERROR, NULL, NULL, 0);
        wait_reply(wait, DNS_NOERROR, &answer, NULL, ttl);
}

static bool name_is_exact(const NetRules *rules, const char *name) {
        for (size_t i = 0; i < rules->count; i++)
                if (rules->items[i].kind == NET_NAME && streq(rules->items[i].name, name))
                        return true;
        return false;
}

/* Tells that the host's resolver has not found an allowed name. Below a wildcard, programs also try
 * names that do not exist. */
static void wait_tell_missing(const DnsWait *wait, int code) {
        Egress *egress = wait->resolver->egress;
        EgressEvent event;

        if (code == DNS_NOERROR ||
            (code == DNS_NXDOMAIN && !name_is_exact(&egress->rules, wait->name)))
                return;
        event = egress_denial(egress, EGRESS_UNRESOLVED, wait->name, NULL, 0, NULL);
        event.type = EGRESS_FAILED;
        egress_send(egress, &event);
}

static void wait_on_addresses(void *data, const NameResult *result) {
        DnsWait *wait = data;
        Egress *egress = wait->resolver->egress;
        const uint8_t family = wait->query.type == DNS_AAAA ? AF_INET6 : AF_INET;
        size_t allowed = 0, of_family = 0;
        const char *why = NULL;

        for (size_t i = 0; i < result->count; i++) {
                const bool ok = address_allowed(egress, &result->items[i], &why);

                allowed += ok;
                of_family += ok && result->items[i].family == family;
        }
        if (result->count == 0)
                wait_tell_missing(wait, result->code);
        if (result->count > 0 && allowed == 0) {
                egress_deny(egress, EGRESS_PRIVATE, wait->name, &result->items[0], 0, why);
                return wait_reply(wait, DNS_NXDOMAIN, NULL, NULL, 0);
        }
        if (of_family == 0)
                return wait_reply(wait, result->code, NULL, NULL, 0);
        wait_allow(wait, result->ttl);
}

int resolver_number(Egress *egress, const char *name) {
        if (name_is_exact(&egress->rules, name) || names_find(egress->names, name) >= 0)
                return names_add(egress->names, name);
        if (strlen(name) > BELOW_LENGTH)
                return -ENOSPC;
        return names_add_below(egress->names, name);
}

/* Returns the host of a name like "_8443._https.example.org", with which programs ask for other
 * records than addresses (RFC 8552, RFC 9460). A rule about the host decides about them. */
static const char *service_host(const char *name) {
        while (*name == '_' && strchr(name, '.'))
                name = strchr(name, '.') + 1;
        return name;
}

static void wait_deny(DnsWait *wait, EgressReason reason, const char *name) {
        egress_deny(wait->resolver->egress, reason, name, NULL, 0, NULL);
        wait_reply(wait, DNS_NXDOMAIN, NULL, NULL, 0);
}

/* Answers a name that no rule names: holt can ask about it once a program connects. The name gets
 * no IPv6 address, because programs that try both would connect twice. */
static void resolve_asked(DnsWait *wait) {
        const int number = wait->query.type == DNS_A
                                   ? resolver_number(wait->resolver->egress, wait->name)
                                   : -ENOENT;

        if (wait->query.type != DNS_A)
                return wait_reply(wait, DNS_NOERROR, NULL, NULL, 0);
        if (number < 0)
                return wait_deny(wait, EGRESS_BAD_NAME, wait->name);
        wait->number = (unsigned)number;
        wait_allow(wait, ASKED_TTL);
}

static void resolve_name(DnsWait *wait) {
        Egress *egress = wait->resolver->egress;
        const bool address = wait->query.type == DNS_A || wait->query.type == DNS_AAAA;
        const char *name = address ? wait->name : service_host(wait->name);
        EgressReason reason = EGRESS_NO_RULE;
        int number;

        if (!net_rules_name(&egress->rules, name) && !once_names(egress, name))
                return questions_take_name(egress, name, &reason) ? resolve_asked(wait)
                                                                  : wait_deny(wait, reason, name);
        if (!address)
                return wait_reply(wait, DNS_NOERROR, NULL, NULL, 0);
        number = resolver_number(egress, name);
        if (number < 0)
                return wait_deny(wait, EGRESS_BAD_NAME, wait->name);
        wait->number = (unsigned)number;
        /* The proxy outside resolves the name when a connection needs it. */
        if (egress->upstream)
                return wait_allow(wait, 60);
        names_resolve(egress->names, wait->number, wait_on_addresses, wait);
}

static void resolve_pointer(DnsWait *wait) {
        NetAddress address;
        int number = dns_reverse_parse(wait->name, &address);
        const char *name = NULL;

        if (number == 0)
                number = net_address_number(&address);
        if (number >= 0)
                name = names_text(wait->resolver->egress->names, (unsigned)number);
        wait_reply(wait, name ? DNS_NOERROR : DNS_NXDOMAIN, NULL, name, 60);
}

/* --- queries --- */

static DnsWait *wait_new(Resolver *resolver) {
        for (size_t i = 0; i < WAITING_MAX; i++)
                if (!resolver->waits[i].used)
                        return &resolver->waits[i];
        return NULL;
}

/* Handles a query of wait->length bytes in wait->data. */
static void query_handle(DnsWait *wait) {
        int r = dns_query_parse(wait->data, wait->length, &wait->query);

        if (r == -EBADMSG)
                return;
        wait->used = true;
        if (wait->client)
                wait->client->waiting++;
        memcpy(wait->name, wait->query.name, sizeof(wait->name));
        if (r != 0)
                return wait_reply(wait, r > 0 ? r : DNS_FORMERR, NULL, NULL, 0);
        if (wait->query.type == DNS_PTR)
                return resolve_pointer(wait);
        resolve_name(wait);
}

static void resolver_on_datagram(void *data, uint32_t events) {
        Resolver *resolver = data;

        (void)events;
        for (int i = 0; i < READ_TURN; i++) {
                DnsWait *wait = wait_new(resolver);
                uint8_t scrap[QUERY_MAX];
                ssize_t n;

                if (!wait) {
                        (void)recv(resolver->udp_fd, scrap, sizeof(scrap), MSG_DONTWAIT);
                        return;
                }
                wait->resolver = resolver;
                wait->client = NULL;
                wait->peer_length = sizeof(wait->peer);
                n = recvfrom(resolver->udp_fd, wait->data, sizeof(wait->data),
                             MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&wait->peer,
                             &wait->peer_length);
                if (n < 0)
                        return;
                wait->length = (size_t)n;
                if (wait->length <= sizeof(wait->data))
                        query_handle(wait);
        }
}

/* Handles the first query in the client's data. Returns whether there was one. */
static bool client_take_query(DnsClient *client) {
        const size_t length = client->length >= 2 ? (size_t)client->data[0] << 8 | client->data[1]
                                                  : 0;
        DnsWait *wait;

        if (client->length < 2)
                return false;
        if (length > QUERY_MAX) {
                client_close(client);
                return false;
        }
        if (client->length < 2 + length)
                return false;
        wait = wait_new(client->resolver);
        if (!wait) {
                client_close(client);
                return false;
        }
        wait->resolver = client->resolver;
        wait->client = client;
        wait->length = length;
        memcpy(wait->data, client->data + 2, length);
        client->length -= 2 + length;
        memmove(client->data, client->data + 2 + length, client->length);
        query_handle(wait);
        return client->fd >= 0;
}

static void client_on_event(void *data, uint32_t events) {
        DnsClient *client = data;
        ssize_t n = recv(client->fd, client->data + client->length,
                         sizeof(client->data) - client->length, MSG_DONTWAIT);

        (void)events;
        if (n < 0 && errno == EAGAIN)
                return;
        if (n <= 0)
                return client_close(client);
        client->length += (size_t)n;
        while (client_take_query(client))
                ;
}

static void resolver_on_connection(void *data, uint32_t events) {
        Resolver *resolver = data;
        int fd = egress_accept(resolver->egress, resolver->tcp_fd, NULL, NULL);

        (void)events;
        for (size_t i = 0; fd >= 0 && i < CLIENTS_MAX; i++) {
                DnsClient *client = &resolver->clients[i];

                if (client->fd >= 0 || client->waiting > 0)
                        continue;
                *client = (DnsClient){ .resolver = resolver, .fd = TAKE_FD(fd) };
                if (loop_watch(resolver->egress->loop, client->fd, EPOLLIN, client_on_event, client,
                               &client->watch, NULL) < 0)
                        client_close(client);
        }
        fd_close(fd);
}

int resolver_new(Egress *egress, int udp_fd, int tcp_fd, Error *reterr) {
        Resolver *resolver = calloc(1, sizeof(*resolver));
        int r;

        if (!resolver)
                return error_oom(reterr);
        resolver->egress = egress;
        resolver->udp_fd = udp_fd;
        resolver->tcp_fd = tcp_fd;
        for (size_t i = 0; i < CLIENTS_MAX; i++)
                resolver->clients[i].fd = FD_NONE;
        r = loop_watch(egress->loop, udp_fd, EPOLLIN, resolver_on_datagram, resolver,
                       &resolver->udp_watch, reterr);
        if (r == 0)
                r = loop_watch(egress->loop, tcp_fd, EPOLLIN, resolver_on_connection, resolver,
                               &resolver->tcp_watch, reterr);
        egress->resolver = resolver;
        return r;
}
