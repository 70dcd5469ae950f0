/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a body in chunks (RFC 9112, section 7.1). Pure.
 *
 * Only the form that clients send is accepted: lines end with CR LF, and sizes have no sign or
 * space. Extensions and trailer fields are skipped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHUNKS_EXTRA_MAX = 16384 }; /* Bytes of all extensions and trailer fields together. */

typedef enum ChunkState {
        CHUNK_SIZE,
        CHUNK_EXTENSION,
        CHUNK_SIZE_LF,
        CHUNK_DATA,
        CHUNK_DATA_CR,
        CHUNK_DATA_LF,
        CHUNK_LINE, /* The start of a trailer line; an empty line is the end. */
        CHUNK_TRAILER,
        CHUNK_TRAILER_LF,
        CHUNK_END_LF,
        CHUNK_END, /* The body is complete. */
} ChunkState;

/* All zero at the start. */
typedef struct ChunkReader {
        ChunkState state;
        unsigned digits; /* Of the size so far. */
        uint64_t left;   /* Bytes of the chunk. */
        size_t extra;
} ChunkReader;

/* Decodes a piece in place: the bytes of the body are moved to its start. Bytes after the end are
 * left out. Returns the number of bytes of the body, or -EBADMSG. */
ssize_t chunks_decode(ChunkReader *reader, char *data, size_t length);
