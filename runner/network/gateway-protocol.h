/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between holt and holt-gateway, over a seqpacket socket.
 *
 * holt sends the settings, one JSON document: "token", "routes" (policy/routes/route.h), "rules"
 * (those of network.allow), and "upstream" if there is a proxy outside: its URL. holt-gateway sends
 * an event for each request.
 *
 * Later, holt can send commands, each a JSON document: {"add": ROUTE} or {"remove": NAME}. With
 * "add" comes a sealed memory file, if the route reads variables. It has "NAME=VALUE" and a NUL for
 * each. holt itself never reads that file. holt-gateway replies to each command, in order, with the
 * event GATEWAY_CHANGED.
 *
 * holt-gateway reads bytes of the sandbox and may be taken over, so holt checks the sizes and
 * strings of each event. */
#pragma once

#include <stdint.h>

enum {
        GATEWAY_CONTROL_FD = 3, /* holt-gateway finds its sockets at these descriptors. */
        GATEWAY_SETUP_FD = 4,   /* brings the listening socket from the sandbox's network */
        GATEWAY_SETTINGS_MAX = 160 * 1024, /* Bytes. */
        GATEWAY_COMMAND_MAX = 96 * 1024,   /* bytes of a command */
        GATEWAY_SECRETS_MAX = 256 * 1024,  /* bytes of the memory file with variables */
        GATEWAY_TOLD_MAX = 240,            /* bytes of a command's stderr, with the NUL */
};

/* holt-gateway's first message, if plan->tls_hosts has a host. A memory file comes with it, which
 * has three texts one after the other: the certificate of its CA, that and the certificates of the
 * host, and the same as a key store of Java. */
typedef struct GatewayTrust {
        uint32_t ca, bundle, java; /* bytes of each */
} GatewayTrust;

enum { GATEWAY_TRUST_MAX = 8 << 20 }; /* bytes of all three together */

typedef enum GatewayEventType {
        GATEWAY_DONE,    /* The upstream has answered. */
        GATEWAY_REFUSED, /* The route does not allow the request. */
        GATEWAY_FAILED,  /* The upstream was not reached, or the exchange broke off. */
        GATEWAY_KEYLESS, /* There is no credential for the request. */
        GATEWAY_DOUBTED, /* The upstream has answered a request with a credential by 401 or 403. */
        GATEWAY_READY,   /* no request: the gateway begins to serve */
        GATEWAY_CHANGED, /* A command is carried out, or `reason` says why not. */
        GATEWAY_EVENT_MAX,
} GatewayEventType;

typedef struct GatewayEvent {
        uint32_t type;
        uint32_t status;         /* the code of the response */
        uint64_t sent, received; /* bytes of the bodies */
        uint64_t usec;           /* from the request to the end */
        char route[40];          /* "" if no route was named */
        char method[24];
        char path[200]; /* without the query, cut at the end */
        char reason[240];
        char told[GATEWAY_TOLD_MAX]; /* what the command of a credential has written to stderr */
} GatewayEvent;
