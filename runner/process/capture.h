/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of a session prints, as far as it is kept, and those who watch it.
 *
 * Theory of operation. Bytes come in by chunks, each with a sequence number that counts both
 * streams together, and never end within a character of UTF-8 where that can be helped. Each stream
 * keeps so many bytes, the first or the last; what is not kept is counted. A watcher has the number
 * of the next chunk it is to get: it gets all that is kept from there on, then each as it comes.
 * One whose client does not read falls behind, and goes on with what is still kept when there is
 * room again; the number says that it has missed something, and each chunk's offset in its stream
 * how many bytes. One for whom the output is held misses nothing, as long as whoever reads the
 * streams asks capture_is_held() first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json-write.h"
#include "rpc/server.h"

enum {
        CAPTURE_STREAMS = 2,    /* stdout, stderr */
        CAPTURE_KEPT = 1 << 20, /* bytes of each stream, where nobody says otherwise */
        CAPTURE_KEPT_MAX = 8 << 20,
        CAPTURE_CHUNK_MAX = 64 * 1024,
        CAPTURE_CHUNKS_MAX =
                32768, /* kept of both streams: one that is fed byte by byte keeps less */
        CAPTURE_WATCHERS_MAX = 32,
        /* Bytes that one for whom the output is held gets without room: what two pipes have at the
         * end, and was read before that was known. */
        CAPTURE_AHEAD_MAX = 4 * CAPTURE_CHUNK_MAX,
};

typedef struct CaptureChunk {
        struct CaptureChunk *next;
        uint64_t seq;    /* from 1 */
        uint64_t offset; /* bytes of the stream before it, kept or not */
        unsigned stream;
        size_t length;
        char data[];
} CaptureChunk;

typedef struct CaptureStream {
        uint64_t bytes, dropped; /* that came, and of these are not kept */
        uint64_t chunked;        /* that came, but for part */
        size_t kept;
        bool full;    /* of the first bytes there are all */
        char part[4]; /* the start of a character whose end has not come */
        size_t part_length;
} CaptureStream;

typedef struct Capture {
        CaptureChunk *first, *last;
        size_t chunks;
        uint64_t next_seq; /* of the next chunk */
        size_t limit;      /* bytes kept of each stream */
        bool keep_tail;
        CaptureStream streams[CAPTURE_STREAMS];
        const char *end_method; /* NULL before the end */
        JsonWriter end;
        struct CaptureWatcher *watchers;
        char id[24]; /* of the process, for the notifications */
} Capture;

void capture_init(Capture *output, const char *id, size_t limit, bool keep_tail);
void capture_clear(Capture *output);
/* Forgets what is kept and counted; chunks go on with their numbers, and watchers watch on. */
void capture_restart(Capture *output, size_t limit, bool keep_tail);

/* Takes bytes of a stream. end: none will follow, so the start of a character is handed on as well.
 * 0 or -ENOMEM. */
int capture_add(Capture *output, unsigned stream, const char *data, size_t length, bool end);
/* What is there is all for now: the start of a character is handed on as well. */
void capture_flush(Capture *output);

/* Notifies connection of "process.output" from chunk seq on (0: of what is kept). base64: data
 * comes in that, else as text, in which what is no UTF-8 is U+FFFD. 0, -EBUSY
 * (CAPTURE_WATCHERS_MAX), -ENOMEM. */
int capture_watch(Capture *output, RpcConnection *connection, uint64_t seq, bool base64);
void capture_unwatch(Capture *output, RpcConnection *connection);
/* Whether the output waits for connection, which watches; anew it does not. */
void capture_hold(Capture *output, const RpcConnection *connection, bool holds);
/* Whether no more is to be added for now: capture_pump() may end that, and whatever lets go of a
 * watcher. */
bool capture_is_held(const Capture *output);
/* Goes on with those that had fallen behind. */
void capture_pump(Capture *output);
/* Tells each watcher, also who only begins to watch, in a notification of another kind that the end
 * has come, once it has all that came before. method is not copied, *params is taken over. */
void capture_end(Capture *output, const char *method, JsonWriter *params);

/* Tells each watcher but the one called except something else, now, whatever it has read so far.
 * Who has fallen behind is not told. */
void capture_tell(const Capture *output, const RpcConnection *except, const char *method,
                  const JsonWriter *params);

/* Writes the members seq, stream ("stdout"), offset, and text or base64, of a chunk. */
void capture_write_chunk(const CaptureChunk *chunk, bool base64, JsonWriter *w);
/* "stdout" or "stderr". */
const char *capture_stream_name(unsigned stream);

/* All that is kept of a stream, with a NUL behind it; owned by the caller, NULL when memory is out.
 */
char *capture_text(const Capture *output, unsigned stream, size_t *ret_length);
