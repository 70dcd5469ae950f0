/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between a keeper and its holt-links, over a seqpacket socket.
 *
 * The first message of the keeper is a LinksSettings. Later ones are LinksAnswer, one for each
 * LINKS_OPEN and LINKS_STORE, and one for each revoked link. holt-links sends LinksMessage.
 * holt-links reads bytes of strangers and may be taken over. So the keeper checks each message by
 * its own table of links, and by the files themselves. */
#pragma once

#include <stdint.h>

#include "links/link.h"

enum {
        LINKS_CONTROL_FD = 3, /* holt-links finds its sockets at these descriptors. */
        LINKS_LISTEN_FD = 4,
};

typedef struct LinksSettings {
        LinkKey key;
        uint16_t port; /* The port of the listening socket. */
} LinksSettings;

typedef enum LinksType {
        LINKS_OPEN,    /* A request with a valid signature needs its file. */
        LINKS_STORE,   /* All bytes of an upload are in the file, and flushed. */
        LINKS_END,     /* The request is over; an upload that was not stored is dropped. */
        LINKS_REFUSED, /* A request without a valid link; only the first of its status is told. */
        LINKS_TYPE_MAX,
} LinksType;

typedef struct LinksMessage {
        uint32_t type;
        uint32_t request; /* Number of the request, which the answer repeats. */
        uint32_t id;      /* The link's. */
        uint32_t status;  /* LINKS_END, LINKS_REFUSED: the code of the response. */
        /* LINKS_OPEN of an upload: the length, or LINKS_UNKNOWN; LINKS_END: the bytes moved. */
        uint64_t bytes;
} LinksMessage;

#define LINKS_UNKNOWN UINT64_MAX

typedef struct LinksAnswer {
        uint32_t request; /* 0: the link `id` was revoked, and its requests must end. */
        uint32_t id;
        uint32_t status; /* 200, with the descriptor for LINKS_OPEN; or the code of a refusal. */
        /* LINKS_OPEN: the size of the file to read, or the largest size of the upload; bytes. */
        uint64_t size;
} LinksAnswer;
