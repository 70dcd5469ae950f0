/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between holt and holt-egress, over a seqpacket socket.
 *
 * holt sends the settings: pairs of strings that end with NUL, such as "allow" and a rule. Each is
 * one field of the policy. Later messages of this form are commands. holt-egress replies with
 * events. Both sides trust the sizes and strings of a message only after a check, because
 * holt-egress reads bytes of the sandbox. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The argument of holt-egress if its settings come later, or never. */
#define EGRESS_LATER "later"

enum {
        EGRESS_CONTROL_FD = 3, /* holt-egress finds its sockets at these descriptors. */
        EGRESS_SETUP_FD = 4,
        EGRESS_SETTINGS_MAX = 160 * 1024, /* Bytes of one message with settings. */
        EGRESS_COMMAND_MAX = 4096,        /* Bytes of one command: its name and its value. */
        EGRESS_SETUP_TIME = 10,           /* Seconds until the child gives up. */
};

/* The last message on the setup socket: the network is ready, or why not. */
typedef struct EgressReady {
        int32_t errnum; /* 0 if it is ready. */
        char text[240]; /* The attempted step. */
} EgressReady;

typedef enum EgressEventType {
        EGRESS_STARTED, /* The process serves; level is set. */
        EGRESS_DENIED,  /* A name, an address or a connection was refused. */
        EGRESS_FAILED,  /* A connection that was allowed could not be made. */
        EGRESS_CLOSED,  /* A connection that was allowed has ended. */
        /* Replies to the settings and commands "publish" and "unpublish", in their order. address
         * and port are the host's; other is the value. */
        EGRESS_PUBLISHED,
        EGRESS_UNPUBLISHED,
        /* Replies to the command "grant", in their order. port: the one that errnum is about. */
        EGRESS_GRANTED,
        EGRESS_TYPE_MAX,
} EgressEventType;

typedef enum EgressReason {
        EGRESS_NO_RULE,          /* No rule allows the name. */
        EGRESS_NO_PORT,          /* Rules allow the name, but not the port. */
        EGRESS_NO_ADDRESS,       /* No rule allows the address. */
        EGRESS_PRIVATE,          /* The name leads to an address that only a block may allow. */
        EGRESS_OTHER_SNI,        /* The TLS client asked for another name. */
        EGRESS_NO_SNI,           /* The TLS client named no server, or hid the name. */
        EGRESS_OTHER_HOST,       /* The HTTP client asked for another host. */
        EGRESS_BAD_NAME,         /* The name is too long, or too many names were asked for. */
        EGRESS_BUSY,             /* Too many connections at once. */
        EGRESS_UNREACHED,        /* Allowed, but the peer could not be reached. */
        EGRESS_UNRESOLVED,       /* Allowed, but the name has no address outside. */
        EGRESS_NO_UPSTREAM,      /* Allowed, but the proxy outside could not be reached. */
        EGRESS_UPSTREAM_REFUSED, /* Allowed, but the proxy outside did not connect. */
        EGRESS_REASON_MAX,
} EgressReason;

/* How truly a program learns why a connection failed. */
typedef enum EgressLevel {
        EGRESS_NO_LEVEL,    /* There is no network. */
        EGRESS_LEVEL_RESET, /* Each connection is accepted first; one that fails is reset later. */
        EGRESS_LEVEL_TRUE,  /* The error of the real connection (egress/queue.h). */
        EGRESS_LEVEL_MAX,
} EgressLevel;

typedef struct EgressEvent {
        uint32_t type;   /* EgressEventType. */
        uint32_t reason; /* EgressReason, for EGRESS_DENIED. */
        uint32_t errnum; /* For EGRESS_UNREACHED, and for a connection that broke. For
                            EGRESS_DENIED: the program's error, unless it is a reset. */
        uint16_t port;   /* 0 if only a name was asked for. */
        uint16_t inside; /* The sandbox's port, for a published port and its connections. */
        uint8_t level;   /* EgressLevel, for EGRESS_STARTED. */
        uint8_t family;  /* The family of address, or 0. */
        uint8_t address[16];
        uint64_t sent, received;       /* Bytes, seen from the sandbox. */
        uint64_t started_ms, ended_ms; /* Milliseconds since the epoch. */
        char name[256];                /* The name that was asked for, or "". */
        char other[256];               /* The name in the SNI or the Host, or "". */
        char rule[256];                /* The reason of the rule that names this host, or "". */
} EgressEvent;
