/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/names.h"

#include <ares.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "base/credit.h"
#include "base/list.h"
#include "base/strings.h"
#include "base/time.h"
#include "wire/dns-wire.h"

enum {
        TTL_MAX = 60,       /* Seconds. */
        TTL_FAILED = 2,     /* Seconds for which a failure is kept. */
        LOOKUP_TIME = 1300, /* Milliseconds of the first try; the next takes twice as long. */
        LOOKUP_TRIES = 3,
        BELOW_MAX = 100,      /* New names below wildcards that may be used at once... */
        BELOW_USEC = 1000000, /* ...and the usec after which one more may follow. */
        WATCHES_MAX = 64,     /* Sockets of c-ares. */
        HOSTS_MAX = 4096,     /* Lines of the host's /etc/hosts. */
};

typedef struct NameWait {
        struct NameWait *next;
        NameFn fn;
        void *data;
} NameWait;

typedef struct Name {
        Names *names;
        unsigned number;
        bool asking;
        uint64_t expires; /* usec of time_now_usec(). */
        NameResult result;
        NameWait *waits;
        char text[NET_NAME_MAX + 1];
} Name;

typedef struct HostLine {
        NetAddress address;
        char name[NET_NAME_MAX + 1];
} HostLine;

typedef struct NameSocket {
        Names *names;
        int fd;
        LoopWatch *watch;
} NameSocket;

struct Names {
        Loop *loop;
        ares_channel channel;
        LoopTimer *timer;
        NameSocket sockets[WATCHES_MAX];
        void *tree; /* The same names, sorted by text (tsearch(3)). */
        Name **items;
        size_t count, room;
        Name *host; /* See names_resolve_host(). */
        HostLine *hosts;
        size_t hosts_count;
        Credit below_credit; /* for new names below wildcards */
};

/* --- c-ares and the loop --- */

static void names_set_timer(Names *names) {
        struct timeval most = { .tv_sec = 10 }, next;
        const struct timeval *t = ares_timeout(names->channel, &most, &next);

        loop_timer_set(names->timer,
                       time_now_usec() + (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec);
}

static void names_on_socket(void *data, uint32_t events) {
        const NameSocket *socket = data;
        Names *names = socket->names;
        const int fd = socket->fd;

        ares_process_fd(names->channel,
                        events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? fd : ARES_SOCKET_BAD,
                        events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
        names_set_timer(names);
}

static void names_on_time(void *data) {
        Names *names = data;

        ares_process_fd(names->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        names_set_timer(names);
}

static NameSocket *names_socket(Names *names, int fd) {
        NameSocket *unused = NULL;

        for (size_t i = 0; i < WATCHES_MAX; i++) {
                NameSocket *socket = &names->sockets[i];

                if (socket->watch && socket->fd == fd)
                        return socket;
                if (!socket->watch && !unused)
                        unused = socket;
        }
        return unused;
}

/* c-ares calls this function when a socket changes its state. If there is no room for another
 * watch, the query times out. */
static void names_on_state(void *data, ares_socket_t fd, int readable, int writable) {
        Names *names = data;
        NameSocket *socket = names_socket(names, fd);
        const uint32_t events = (readable ? EPOLLIN : 0U) | (writable ? EPOLLOUT : 0U);

        if (!socket)
                return;
        if (events == 0) {
                socket->watch = loop_unwatch(socket->watch);
                return;
        }
        if (socket->watch)
                return loop_watch_set(socket->watch, events);
        socket->names = names;
        socket->fd = fd;
        (void)loop_watch(names->loop, fd, events, names_on_socket, socket, &socket->watch, NULL);
}

/* --- the host's settings --- */

static int hosts_add(Names *names, const NetAddress *address, const char *name) {
        HostLine line = { .address = *address };
        HostLine *grown;

        if (names->hosts_count == HOSTS_MAX || net_name_normal(name, strlen(name), line.name) < 0)
                return 0;
        grown = reallocarray(names->hosts, names->hosts_count + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        names->hosts = grown;
        names->hosts[names->hosts_count++] = line;
        return 0;
}

static int hosts_read(Names *names) {
        FILE *file = fopen("/etc/hosts", "re");
        char line[1024];
        int r = 0;

        while (file && r == 0 && fgets(line, sizeof(line), file)) {
                char *rest = NULL, *word;
                NetAddress address;

                line[strcspn(line, "#\n")] = '\0';
                word = strtok_r(line, " \t", &rest);
                if (!word || net_address_parse(word, strlen(word), &address) < 0)
                        continue;
                while (r == 0 && (word = strtok_r(NULL, " \t", &rest)))
                        r = hosts_add(names, &address, word);
        }
        if (file)
                (void)fclose(file);
        return r;
}

static int channel_open(Names *names, Error *reterr) {
        static char lookups[] =
                "b"; /* Only DNS, because hosts_read() has already read /etc/hosts. */
        struct ares_options options = {
                .flags = ARES_FLAG_NOSEARCH,
                .timeout = LOOKUP_TIME,
                .tries = LOOKUP_TRIES,
                .lookups = lookups,
                .sock_state_cb = names_on_state,
                .sock_state_cb_data = names,
        };
        int r = ares_library_init(ARES_LIB_INIT_ALL);

        if (r == ARES_SUCCESS)
                r = ares_init_options(&names->channel, &options,
                                      ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                              ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
        if (r != ARES_SUCCESS)
                return error_set(reterr, ERROR_SETUP, 0, "cannot start the resolver: %s",
                                 ares_strerror(r));
        return 0;
}

int names_new(Loop *loop, Names **ret, Error *reterr) {
        Names *names = calloc(1, sizeof(*names));
        int r;

        if (!names)
                return error_oom(reterr);
        names->loop = loop;
        r = loop_timer_new(loop, names_on_time, names, &names->timer, reterr);
        if (r == 0)
                r = channel_open(names, reterr);
        if (r == 0 && hosts_read(names) < 0)
                r = error_oom(reterr);
        if (r == 0)
                *ret = names; /* It lives as long as the process, also after an error. */
        return r;
}

/* --- numbers --- */

static int name_compare(const void *a, const void *b) {
        return strcmp(((const Name *)a)->text, ((const Name *)b)->text);
}

static Name *names_lookup(const Names *names, const char *text) {
        Name key;
        void *found;

        (void)snprintf(key.text, sizeof(key.text), "%s", text);
        found = tfind(&key, &names->tree, name_compare);
        return found ? *(Name **)found : NULL;
}

int names_find(Names *names, const char *text) {
        const Name *name = names_lookup(names, text);

        return name ? (int)name->number : -ENOENT;
}

static int names_grow(Names *names) {
        const size_t room = names->room ? names->room * 2 : 16;
        Name **items;

        if (names->count < names->room)
                return 0;
        items = reallocarray(names->items, room, sizeof(*items));
        if (!items)
                return -ENOMEM;
        names->items = items;
        names->room = room;
        return 0;
}

int names_add(Names *names, const char *text) {
        Name *name = names_lookup(names, text);

        if (name)
                return (int)name->number;
        if (names->count == NET_NUMBERS_MAX)
                return -ENOSPC;
        if (names_grow(names) < 0)
                return -ENOMEM;
        name = calloc(1, sizeof(*name));
        if (!name)
                return -ENOMEM;
        name->names = names;
        name->number = (unsigned)names->count;
        (void)snprintf(name->text, sizeof(name->text), "%s", text);
        if (!tsearch(name, &names->tree, name_compare)) {
                free(name);
                return -ENOMEM;
        }
        names->items[names->count++] = name;
        return (int)name->number;
}

/* Without a bound on new names, a program could send data quickly to the name servers of a domain,
 * by labels below a wildcard. */
int names_add_below(Names *names, const char *text) {
        if (!names_lookup(names, text) &&
            !credit_take(&names->below_credit, BELOW_MAX, BELOW_USEC, time_now_usec()))
                return -ENOSPC;
        return names_add(names, text);
}

const char *names_text(const Names *names, unsigned number) {
        return number < names->count ? names->items[number]->text : NULL;
}

/* --- addresses --- */

static void name_answer(Name *name) {
        while (name->waits) {
                NameWait *wait = name->waits;

                name->waits = wait->next;
                wait->fn(wait->data, &name->result);
                free(wait);
        }
}

static void result_add(NameResult *result, const struct ares_addrinfo_node *node) {
        NetAddress address = { .family = (uint8_t)node->ai_family };

        if (result->count == NAME_ADDRESSES_MAX)
                return;
        if (node->ai_family == AF_INET)
                memcpy(address.bytes,
                       &((const struct sockaddr_in *)(const void *)node->ai_addr)->sin_addr, 4);
        else if (node->ai_family == AF_INET6)
                memcpy(address.bytes,
                       &((const struct sockaddr_in6 *)(const void *)node->ai_addr)->sin6_addr, 16);
        else
                return;
        result->items[result->count++] = address;
        if (node->ai_ttl >= 0 && (uint32_t)node->ai_ttl < result->ttl)
                result->ttl = (uint32_t)node->ai_ttl;
}

static void name_on_lookup(void *data, int status, int timeouts, struct ares_addrinfo *info) {
        Name *name = data;
        NameResult *result = &name->result;

        (void)timeouts;
        *result = (NameResult){ .ttl = TTL_MAX };
        for (const struct ares_addrinfo_node *node = info ? info->nodes : NULL; node;
             node = node->ai_next)
                result_add(result, node);
        if (info)
                ares_freeaddrinfo(info);
        if (result->count > 0 || status == ARES_ENODATA)
                result->code = DNS_NOERROR;
        else
                result->code = status == ARES_ENOTFOUND ? DNS_NXDOMAIN : DNS_SERVFAIL;
        if (result->count == 0)
                result->ttl = TTL_FAILED;
        name->expires = time_now_usec() + (uint64_t)(result->ttl ? result->ttl : 1) * 1000000;
        name->asking = false;
        name_answer(name);
}

/* Answers from the host's /etc/hosts. Returns whether the file names it. */
static bool name_from_hosts(Name *name) {
        NameResult result = { .ttl = TTL_MAX };

        for (size_t i = 0; i < name->names->hosts_count; i++)
                if (streq(name->names->hosts[i].name, name->text) &&
                    result.count < NAME_ADDRESSES_MAX)
                        result.items[result.count++] = name->names->hosts[i].address;
        if (result.count == 0)
                return false;
        name->result = result;
        name->expires = UINT64_MAX;
        return true;
}

static int name_wait(Name *name, NameFn fn, void *data) {
        NameWait *wait = calloc(1, sizeof(*wait));

        if (!wait)
                return -ENOMEM;
        wait->fn = fn;
        wait->data = data;
        list_append(&name->waits, wait);
        return 0;
}

static void name_resolve(Name *name, NameFn fn, void *data) {
        static const NameResult failed = { .code = DNS_SERVFAIL };
        const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
                                                   .ai_flags = ARES_AI_NOSORT };

        if (!name)
                return fn(data, &failed);
        if (!name->asking && (name->expires > time_now_usec() || name_from_hosts(name)))
                return fn(data, &name->result);
        if (name_wait(name, fn, data) < 0)
                return fn(data, &failed);
        if (name->asking)
                return;
        name->asking = true;
        ares_getaddrinfo(name->names->channel, name->text, NULL, &hints, name_on_lookup, name);
        names_set_timer(name->names);
}

static void name_forget(Name *name, const void *data) {
        list_each_safe(wait, name->waits)
                if (wait->data == data) {
                        (void)list_remove(&name->waits, wait);
                        free(wait);
                }
}

void names_resolve(Names *names, unsigned number, NameFn fn, void *data) {
        name_resolve(number < names->count ? names->items[number] : NULL, fn, data);
}

void names_forget(Names *names, unsigned number, const void *data) {
        if (number < names->count)
                name_forget(names->items[number], data);
}

void names_resolve_host(Names *names, const char *host, NameFn fn, void *data) {
        if (!names->host)
                names->host = calloc(1, sizeof(*names->host));
        if (names->host) {
                names->host->names = names;
                (void)snprintf(names->host->text, sizeof(names->host->text), "%s", host);
        }
        name_resolve(names->host, fn, data);
}

void names_forget_host(const Names *names, const void *data) {
        if (names->host)
                name_forget(names->host, data);
}
