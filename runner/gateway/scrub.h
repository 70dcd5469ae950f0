/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces credentials in a stream of bytes by asterisks, so that a response that repeats one does
 * not give it away. The length stays the same.
 *
 * A credential may be split between two pieces of the stream. So the end of a piece that is the
 * beginning of a credential waits for the next piece. Four forms of a credential are found: plain
 * text, base64 (also within a longer text in base64), and the forms in URLs and in JSON. A service
 * can always send another form on purpose. So this guards against echoes, not against a hostile
 * upstream, which has the credential anyway. */
#pragma once

#include <stdint.h>

#include "gateway/buffer.h"

enum {
        SCRUB_LEAST = 6, /* Shorter secrets would change too many harmless bytes. */
        /* ROUTE_ITEMS_MAX headers and parameters, each a secret and perhaps a login, in up to
         * eleven forms. */
        SCRUB_PATTERNS = 1408,
        SCRUB_GROUP = 4, /* Bytes that the search reads at once. */
};

typedef struct Scrub {
        char *patterns[SCRUB_PATTERNS]; /* owned */
        size_t count;
        size_t shortest;         /* Length of the shortest pattern. */
        uint8_t groups[1 << 13]; /* The index: a bit for each hash of SCRUB_GROUP bytes. */
        char *held;       /* the end of the last piece, shorter than the longest pattern; owned */
        bool *held_marks; /* which bytes of it will be asterisks; owned */
        size_t held_length, held_size;
} Scrub;

/* Adds a secret. Returns 0 or -ENOMEM. */
int scrub_add(Scrub *scrub, const char *secret);
/* Passes bytes on to ret. last: nothing follows, so nothing is held back. Returns 0 or -ENOMEM. */
int scrub_feed(Scrub *scrub, const char *data, size_t length, bool last, Buffer *ret);
/* The same for a text in memory. Without memory for that, the whole text becomes asterisks. */
void scrub_text(const Scrub *scrub, char *text);
void scrub_clear(Scrub *scrub);
