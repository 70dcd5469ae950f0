/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between holt and holt-egress, over a seqpacket socket.
 *
 * holt first sends the settings: pairs of strings that end with NUL, such as "allow" and a rule.
 * Each pair is one value of a field of the policy. Later messages of this form are commands.
 * holt-egress sends events, some of which reply to commands. holt-egress reads bytes of the sandbox
 * and may be taken over, so holt checks the sizes and strings of each event. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The argument that tells holt-egress to wait for its settings, which may never come. */
#define EGRESS_LATER "later"

/* The command by which holt decides about a grant, and its values. */
#define EGRESS_DECIDE "decide"
#define EGRESS_KEEP "keep"
#define EGRESS_DROP "drop"

/* The setting and the command that say whether somebody can be asked about a host that no rule
 * names, and its values. "no" is the default. */
#define EGRESS_ASK "ask"
#define EGRESS_ASK_NO "no"
#define EGRESS_ASK_NOBODY "nobody" /* The caller wants to be asked, but cannot be. */
#define EGRESS_ASK_YES "yes"
/* The setting with the time to answer, in microseconds. */
#define EGRESS_ASK_TIME "ask-time"
/* The command that answers a question: its number, a space, and one of the three words. Before
 * "yes", holt grants what the connection needs. */
#define EGRESS_ANSWER "answer"
#define EGRESS_ANSWER_YES "yes"
#define EGRESS_ANSWER_NO "no"
#define EGRESS_ANSWER_NOBODY "nobody"

enum {
        EGRESS_CONTROL_FD = 3, /* holt-egress finds its sockets at these descriptors. */
        EGRESS_SETUP_FD = 4,
        EGRESS_SETTINGS_MAX = 160 * 1024, /* Bytes of one message with settings. */
        EGRESS_COMMAND_MAX = 4096,        /* Bytes of one command: its name and its value. */
        EGRESS_SETUP_TIME = 10,           /* Seconds until the child gives up. */
};

/* The last message on the setup socket: the network is ready, or why not. */
typedef struct EgressReady {
        int32_t errnum; /* 0 if the network is ready. */
        char text[240]; /* The step that failed, as an infinitive. */
} EgressReady;

typedef enum EgressEventType {
        EGRESS_STARTED, /* The process serves; level is set. */
        EGRESS_DENIED,  /* A name, an address or a connection was refused. */
        EGRESS_FAILED,  /* A connection that was allowed could not be made. */
        EGRESS_CLOSED, /* A connection that was allowed has ended; only with the setting "audit". */
        /* Replies to the setting "publish", and to the commands "publish" and "unpublish", in their
           order. address and port are those of the host. other is the value of the setting or
           command. */
        EGRESS_PUBLISHED,
        EGRESS_UNPUBLISHED,
        /* Replies to the commands "grant" and "grant-once", in their order. port: the port that
         * could not be opened. After a reply without errnum, holt decides, and gets a second reply.
         */
        EGRESS_GRANTED,
        EGRESS_USED,     /* The one-time grant with this id was used. */
        EGRESS_ASKS,     /* The question with this id is open: may a connection to name and port be
                            made? */
        EGRESS_ASK_ENDS, /* The question with this id is over, without an answer. */
        EGRESS_TYPE_MAX,
} EgressEventType;

typedef enum EgressReason {
        EGRESS_NO_RULE,    /* No rule allows the name. */
        EGRESS_NO_PORT,    /* Rules allow the name, but not the port. */
        EGRESS_NO_ADDRESS, /* No rule allows the address. */
        EGRESS_PRIVATE,   /* The name resolves to an address that only a rule with addresses allows.
                           */
        EGRESS_OTHER_SNI, /* The TLS client asked for another name. */
        EGRESS_NO_SNI,    /* The TLS client named no server, or hid the name. */
        EGRESS_OTHER_HOST,       /* The HTTP client asked for another host. */
        EGRESS_BAD_NAME,         /* The name is too long, or too many names were asked for. */
        EGRESS_USED_UP,          /* The one-time grant of the host was used. */
        EGRESS_NOBODY,           /* No rule, and nobody could be asked. */
        EGRESS_NO_TERMINAL,      /* The same, because holt has no terminal. */
        EGRESS_NO_CLIENT,        /* The same, because no client of the session answers. */
        EGRESS_ANSWERED_NO,      /* No rule, and the answer was no. */
        EGRESS_NO_ANSWER,        /* No rule, and no answer in time. */
        EGRESS_QUESTIONS,        /* No rule, and too many questions. */
        EGRESS_BUSY,             /* Too many connections at once. */
        EGRESS_UNREACHED,        /* Allowed, but the peer could not be reached. */
        EGRESS_NOT_LISTENING,    /* Imported, but nothing listens on the host's port. */
        EGRESS_UNRESOLVED,       /* Allowed, but the name has no address outside. */
        EGRESS_YES_UNRESOLVED,   /* The same, and an answer has allowed the connection. */
        EGRESS_NO_UPSTREAM,      /* Allowed, but the proxy outside could not be reached. */
        EGRESS_UPSTREAM_REFUSED, /* Allowed, but the proxy outside did not connect. */
        EGRESS_REASON_MAX,
} EgressReason;

/* How a program learns that a connection has failed. */
typedef enum EgressLevel {
        EGRESS_NO_LEVEL,    /* The sandbox has no rules for a network. */
        EGRESS_LEVEL_RESET, /* Each allowed connection is accepted at first; one that fails is reset
                               later. */
        EGRESS_LEVEL_TRUE, /* The program gets the error of the real connection (egress/queue.h). */
        EGRESS_LEVEL_MAX,
} EgressLevel;

typedef struct EgressEvent {
        uint32_t type;   /* EgressEventType. */
        uint32_t reason; /* EgressReason, for EGRESS_DENIED. */
        uint32_t errnum; /* For EGRESS_UNREACHED and for a broken connection: its error. For
                            EGRESS_DENIED: the error that the program got, or 0 for a reset. */
        uint32_t id;     /* The number of a one-time grant or a question. */
        uint16_t port;   /* 0 for a refused lookup. */
        uint16_t inside; /* The sandbox's port, for a published port and its connections. */
        uint8_t level;   /* EgressLevel, for EGRESS_STARTED. */
        uint8_t family;  /* The family of address, or 0. */
        uint8_t address[16];
        uint64_t sent, received;       /* Bytes that the sandbox has sent and received. */
        uint64_t started_ms, ended_ms; /* Milliseconds since the epoch. */
        char name[256];                /* The name that the program looked up, or "". */
        char other[256];               /* The name in the SNI or the Host, or "". */
        char rule[256];                /* The reason of the rule that names this host, or "". */
} EgressEvent;
