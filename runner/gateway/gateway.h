/* SPDX-License-Identifier: Apache-2.0 */
/* holt-gateway: carries the requests of a sandbox to services, and adds the credentials.
 *
 * Theory of operation. A route of the policy names a service outside, the upstream, and the
 * credential for it. Inside, the route is the URL http://127.0.0.1:8474/NAME. The listening socket
 * was made in the sandbox's network and passed out (network/gateway.h), so no process of holt
 * listens on the host. A request must carry the sandbox's token. The gateway takes the token out,
 * puts the credential in, and sends the request to the upstream.
 *
 * Two processes share the work. This one talks to programs inside and to upstreams. It reads its
 * settings, the certificates of the host and the credentials in the environment. Then it confines
 * itself: it can use sockets, but no file and no program. Credentials in files and from commands
 * are read by the second process (gateway/fetcher.h) when the first request needs one. Only these
 * two processes have a credential. It is in no message to holt, and a response that contains it
 * gets asterisks instead (gateway/scrub.h).
 *
 * A WebSocket passes by the gateway's own code (gateway/tunnel.h).
 *
 * libmicrohttpd reads requests and libcurl sends them. Both run in the one loop of this process,
 * and neither has a thread. A body waits in a small buffer if the other side is slower
 * (gateway/buffer.h). */
#pragma once

#include <curl/curl.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/credit.h"
#include "base/loop.h"
#include "base/strings.h"
#include "policy/net/rules.h"
#include "policy/net/upstream.h"
#include "resolve/names.h"

typedef struct Gateway Gateway;

/* --- the settings --- */

typedef enum SecretKind {
        SECRET_NONE, /* the value is only a prefix */
        SECRET_ENV,
        SECRET_FILE,
        SECRET_COMMAND,
} SecretKind;

/* A header or query parameter that the gateway sets: prefix, secret, suffix. */
typedef struct Inject {
        bool query;
        char *name; /* a header's is in lower case */
        char *prefix, *suffix;
        char *user; /* of basic authentication, with the secret as password; otherwise NULL */
        SecretKind kind;
        char *source;     /* the variable, the file, or the command's first word */
        unsigned number;  /* for the fetcher: the index of the source */
        char *secret;     /* NULL until it is known; owned */
        uint64_t expires; /* usec of time_now_usec(): when a file or a command is asked again */
} Inject;

typedef struct AllowRule {
        char *method; /* "" for every method */
        char *path;   /* a pattern with '*' */
} AllowRule;

typedef struct Route {
        char *name;
        bool tls;
        char *host;         /* a name in its usual form, or an address in text form */
        NetAddress address; /* family 0 if the host is a name */
        uint16_t port;
        char *base;        /* "" or a path without a slash at its end */
        unsigned number;   /* the number of the name (resolve/names.h) */
        StrList tls_hosts; /* hosts whose TLS is terminated; their requests have this route */

        Inject *injects;
        size_t injects_count;
        AllowRule *allow; /* none: everything is allowed */
        size_t allow_count;

        /* Limits; 0 is no limit. */
        uint64_t body_max;         /* bytes of a request's body */
        uint64_t timeout;          /* ms of a whole exchange */
        uint64_t requests, period; /* this many requests in this many usec */
        uint64_t bytes_max;        /* bytes of all bodies together, in both directions */
        uint64_t concurrent;

        bool removed;     /* nobody uses it any more, except for requests that end */
        uint64_t bytes;   /* bytes of all bodies so far */
        unsigned running; /* exchanges */
        Credit credit;
} Route;

/* The listeners inside. */
typedef enum Listener {
        LISTENER_URL, /* plain HTTP, at the URLs of the routes */
        LISTENER_TLS, /* for hosts whose TLS is terminated */
        LISTENER_MAX,
} Listener;

struct Gateway {
        Loop *loop;
        int control_fd, setup_fd, fetch_fd;
        int listen_fds[LISTENER_MAX];
        LoopWatch *control_watch;
        char *token;
        NetUpstream *proxy; /* network.upstream, or NULL: requests go through it */
        NetRules rules;     /* network.allow: may allow special addresses of an upstream */
        Route *routes;      /* room for GATEWAY_ROUTES_MAX, because requests point into it */
        size_t routes_count;
        struct Exchange *exchanges; /* all requests */
        struct Client *clients;     /* all connections of programs (gateway/client.h) */
        Names *names;
        char *certificates; /* PEM; NULL if the host has none */
        size_t certificates_length;

        bool terminates;                 /* a route has tls_hosts */
        char *tls_key, *tls_certificate; /* PEM; NULL unless a route has tls_hosts */

        struct MHD_Daemon *daemons[LISTENER_MAX];
        LoopWatch *daemon_watches[LISTENER_MAX];
        bool resumed;   /* a connection was resumed, so libmicrohttpd must run */
        bool turning;   /* it runs now */
        uint64_t calls; /* libmicrohttpd has called for a request so often */
        CURLM *multi;
        uint64_t received; /* bytes of all responses */
        LoopTimer *multi_timer, *turn_timer, *rest_timer, *room_timer;
        struct SecretWait *secret_waits;
        struct Tunnel *tunnels; /* WebSockets (gateway/tunnel.h) */
};

/* Routes, with removed ones whose requests have not ended. */
enum { GATEWAY_ROUTES_MAX = 64 };

#define LENGTH_UNKNOWN UINT64_MAX
