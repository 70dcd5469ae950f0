/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the output of a session's process, and sends it to watchers.
 *
 * Theory of operation. Bytes come in chunks. A sequence number counts the chunks of both streams
 * together. If possible, a chunk does not end within a UTF-8 character. Each stream keeps a limited
 * number of bytes, either the first or the last, and counts the others.
 *
 * Each watcher has the number of the chunk that it gets next. It gets all kept chunks from there
 * on, and then each new one. A watcher whose client does not read falls behind. When there is room
 * again, it continues with what is still kept. A gap in the numbers tells the client that it has
 * missed something, and each chunk's offset in its stream tells how many bytes.
 *
 * capture_hold() makes the output wait for a watcher, which then misses nothing. For that, the code
 * that reads the streams must call capture_is_held() before each read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json-write.h"
#include "rpc/server.h"

enum {
        CAPTURE_STREAMS = 2,    /* stdout and stderr */
        CAPTURE_KEPT = 1 << 20, /* default limit, in bytes per stream */
        CAPTURE_KEPT_MAX = 8 << 20,
        CAPTURE_CHUNK_MAX = 64 * 1024,
        /* Number of chunks kept of both streams; output in tiny chunks keeps fewer bytes. */
        CAPTURE_CHUNKS_MAX = 32768,
        CAPTURE_WATCHERS_MAX = 32,
        /* Bytes that a watcher with held output may get without room: the contents of two pipes,
         * and the data read before them. */
        CAPTURE_AHEAD_MAX = 4 * CAPTURE_CHUNK_MAX,
};

typedef struct CaptureChunk {
        struct CaptureChunk *next;
        uint64_t seq;    /* starts at 1 */
        uint64_t offset; /* bytes of the stream before this chunk, kept or not */
        unsigned stream;
        size_t length;
        char data[];
} CaptureChunk;

typedef struct CaptureStream {
        uint64_t bytes, dropped; /* number of bytes received, and of those not kept */
        uint64_t chunked;        /* number of bytes received, without those in part */
        size_t kept;
        bool full;    /* with keep_tail false: the limit is reached */
        char part[4]; /* the start of a character whose end is missing */
        size_t part_length;
} CaptureStream;

typedef struct Capture {
        CaptureChunk *first, *last;
        size_t chunks;
        uint64_t next_seq; /* number of the next chunk */
        size_t limit;      /* bytes kept of each stream */
        bool keep_tail;
        CaptureStream streams[CAPTURE_STREAMS];
        const char *end_method; /* NULL before the end */
        JsonWriter end;
        struct CaptureWatcher *watchers;
        bool awaits; /* the output waits until the client that asked for all of it can get it */
        char id[24]; /* id of the process, for notifications */
} Capture;

void capture_init(Capture *output, const char *id, size_t limit, bool keep_tail);
void capture_clear(Capture *output);
/* Drops everything kept and counted. The chunk numbers continue, and the watchers stay. */
void capture_restart(Capture *output, size_t limit, bool keep_tail);

/* Adds bytes of a stream. end: no more bytes follow, so an incomplete character is passed on, too.
 * Returns 0 or -ENOMEM. */
int capture_add(Capture *output, unsigned stream, const char *data, size_t length, bool end);
/* No more bytes are expected for now: passes on an incomplete character. */
void capture_flush(Capture *output);

/* Sends connection "process.output" notifications, from chunk seq on; 0 means from the first kept
 * one. With base64, the data is in base64; otherwise it is text, and invalid UTF-8 becomes U+FFFD.
 * Returns 0, -EBUSY (CAPTURE_WATCHERS_MAX) or -ENOMEM. */
int capture_watch(Capture *output, RpcConnection *connection, uint64_t seq, bool base64);
void capture_unwatch(Capture *output, RpcConnection *connection);
/* Sets whether the output waits for the watcher of connection. By default, it does not. */
void capture_hold(Capture *output, const RpcConnection *connection, bool holds);
/* Watches from the first chunk on, in base64, and holds the output for the watcher. Ends
 * output->awaits. Returns the same errors as capture_watch(). */
int capture_watch_all(Capture *output, RpcConnection *connection);
/* Returns true if the caller must not add bytes for now. That may end with capture_pump(), or when
 * a watcher is removed. */
bool capture_is_held(const Capture *output);
/* Continues with the watchers that have fallen behind. */
void capture_pump(Capture *output);
/* Sends each watcher another notification after all output, to tell the end. Later watchers get it,
 * too. method is not copied; the function takes ownership of *params. */
void capture_end(Capture *output, const char *method, JsonWriter *params);

/* Sends a notification of another method at once to every watcher except the one of the connection
 * except. A watcher gets it even if it has not read all output, unless it has fallen behind. */
void capture_tell(const Capture *output, const RpcConnection *except, const char *method,
                  const JsonWriter *params);

/* Writes the members of a chunk: seq, stream ("stdout"), offset, and text or base64. */
void capture_write_chunk(const CaptureChunk *chunk, bool base64, JsonWriter *w);
/* Returns "stdout" or "stderr". */
const char *capture_stream_name(unsigned stream);

/* Returns all kept bytes of a stream, with a NUL after them. The caller owns the text; NULL if
 * memory is out. */
char *capture_text(const Capture *output, unsigned stream, size_t *ret_length);
