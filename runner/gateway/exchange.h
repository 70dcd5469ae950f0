/* SPDX-License-Identifier: Apache-2.0 */
/* One request of a program inside, and its response. */
#pragma once

#include "base/strings.h"
#include "gateway/buffer.h"
#include "gateway/judge.h"
#include "gateway/scrub.h"
#include "network/gateway-protocol.h"

typedef struct Exchange {
        struct Exchange *next;
        Gateway *gateway;
        struct MHD_Connection *connection;
        Route *route;     /* NULL if none was named */
        char *target;     /* the program has sent exactly this */
        const char *rest; /* the part of target after the route's name */
        char *method;
        Verdict verdict;             /* why it is refused or has failed; status 0 otherwise */
        char told[GATEWAY_TOLD_MAX]; /* what the command of a credential said; for holt alone */
        uint64_t started;
        bool tls; /* the gateway has terminated the TLS of the program */
        bool begun;
        bool keyless; /* its credential is missing */
        bool counted; /* in the route's running exchanges */

        /* libmicrohttpd's side */
        bool suspended;
        bool uploaded;   /* the whole request has come */
        bool queued;     /* the response was queued */
        bool taken;      /* a tunnel has taken the connection over, and has sent the response */
        uint64_t length; /* bytes of the request's body, or LENGTH_UNKNOWN */

        /* libcurl's side (gateway/transfer.h) */
        CURL *easy;
        struct curl_slist *headers, *resolve;
        bool up_paused, down_paused;
        bool answered; /* the head of the response has come */
        bool done;     /* the transfer has ended */
        unsigned status;
        uint64_t answer_length; /* bytes of the response's body, or LENGTH_UNKNOWN */
        size_t trailers;        /* bytes of headers behind the body */
        StrList answer;         /* its headers, each "name: value" */
        bool upgrades;          /* it has "Upgrade: websocket" */
        bool chunked;           /* its body is in chunks, which libcurl puts together */
        struct Tunnel *tunnel;  /* for a WebSocket (gateway/tunnel.h) */

        Buffer up, down;
        Scrub scrub;
        uint64_t sent, received;
} Exchange;

/* Callbacks of libmicrohttpd: the first line of a request, its parts, and its end. */
void *exchange_on_target(void *data, const char *target, struct MHD_Connection *connection);
enum MHD_Result exchange_on_request(void *data, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *body,
                                    size_t *body_size, void **state);
void exchange_on_end(void *data, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode code);

/* Ends all exchanges of a route. */
void exchanges_end(Gateway *gateway, const Route *route, const char *why);

/* Ends the exchange of a connection that has ended. Returns whether it had waited, and so was
 * resumed. */
bool exchange_leave(Gateway *gateway, const struct MHD_Connection *connection, const char *why);

/* Lets libmicrohttpd go on with the exchange. */
void exchange_resume(Exchange *e);
/* Tells holt how the exchange has ended, or how far it has come. */
void exchange_tell(const Exchange *e);
