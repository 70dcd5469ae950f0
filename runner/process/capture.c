/* SPDX-License-Identifier: Apache-2.0 */
#include "process/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/list.h"
#include "base/utf8.h"

typedef struct CaptureWatcher {
        struct CaptureWatcher *next;
        RpcConnection *connection;
        uint64_t seq; /* number of the next chunk that the watcher gets */
        bool base64, end_told;
        bool holds;   /* the output waits for this watcher */
        size_t ahead; /* number of bytes that it got since its connection had no more room */
} CaptureWatcher;

static const char *const stream_names[CAPTURE_STREAMS] = { "stdout", "stderr" };

void capture_init(Capture *output, const char *id, size_t limit, bool keep_tail) {
        *output = (Capture){ .next_seq = 1, .limit = limit, .keep_tail = keep_tail };
        (void)snprintf(output->id, sizeof(output->id), "%s", id);
}

/* Removes the chunk that *at points to. */
static void capture_drop(Capture *output, CaptureChunk **at, CaptureChunk *before) {
        CaptureChunk *chunk = *at;
        CaptureStream *stream;

        assert(chunk);
        stream = &output->streams[chunk->stream];
        *at = chunk->next;
        if (!chunk->next)
                output->last = before;
        output->chunks--;
        stream->kept -= chunk->length;
        stream->dropped += chunk->length;
        free(chunk);
}

static void drop_all(Capture *output) {
        while (output->first)
                capture_drop(output, &output->first, NULL);
}

void capture_restart(Capture *output, size_t limit, bool keep_tail) {
        drop_all(output);
        memset(output->streams, 0, sizeof(output->streams));
        output->limit = limit;
        output->keep_tail = keep_tail;
}

void capture_clear(Capture *output) {
        json_write_clear(&output->end);
        drop_all(output);
        list_each_safe(watcher, output->watchers)
                free(watcher);
        output->watchers = NULL;
}

/* --- watchers --- */

const char *capture_stream_name(unsigned stream) {
        return stream_names[stream];
}

void capture_write_chunk(const CaptureChunk *chunk, bool base64, JsonWriter *w) {
        json_write_uint(w, "seq", chunk->seq);
        json_write_string(w, "stream", stream_names[chunk->stream]);
        json_write_uint(w, "offset", chunk->offset);
        if (base64) {
                _cleanup_free_ char *text = base64_encode(chunk->data, chunk->length);

                json_write_string(w, "base64", text);
        } else {
                json_write_bytes(w, "text", chunk->data, chunk->length);
        }
}

static bool capture_has_room(const CaptureWatcher *watcher) {
        return rpc_has_room(watcher->connection) ||
               (watcher->holds && watcher->ahead < CAPTURE_AHEAD_MAX);
}

static int capture_notify(CaptureWatcher *watcher, size_t length, const JsonWriter *params) {
        if (!watcher->holds)
                return rpc_notify(watcher->connection, "process.output", params);
        if (!capture_has_room(watcher))
                return -EAGAIN;
        watcher->ahead = rpc_has_room(watcher->connection) ? 0 : watcher->ahead + length;
        return rpc_tell(watcher->connection, "process.output", params);
}

/* Returns 0, or -EAGAIN if the client must read first. */
static int capture_tell_watcher(const Capture *output, CaptureWatcher *watcher,
                                const CaptureChunk *chunk) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", output->id);
        capture_write_chunk(chunk, watcher->base64, &w);
        json_write_end(&w);
        r = json_write_finish(&w);
        if (r == 0)
                r = capture_notify(watcher, chunk->length, &w);
        if (r == 0)
                watcher->seq = chunk->seq + 1;
        return r;
}

/* Sends the watcher all kept chunks that it has not got. Returns 0, or a negative errno if the
 * client must read first. */
static int pump_one(const Capture *output, CaptureWatcher *watcher) {
        const CaptureChunk *last = output->last;
        const CaptureChunk *first = last && watcher->seq >= last->seq ? last : output->first;
        /* Checks for room before encoding: otherwise each new chunk could make it encode all kept
         * chunks. */
        int r = capture_has_room(watcher) ? 0 : -EAGAIN;

        for (const CaptureChunk *chunk = first; chunk && r == 0; chunk = chunk->next)
                if (chunk->seq >= watcher->seq)
                        r = capture_tell_watcher(output, watcher, chunk);
        if (r == 0 && output->end_method && !watcher->end_told)
                watcher->end_told = rpc_notify(watcher->connection, output->end_method,
                                               &output->end) == 0;
        return r;
}

void capture_pump(Capture *output) {
        for (CaptureWatcher *w = output->watchers; w; w = w->next)
                if (w->seq < output->next_seq || (output->end_method && !w->end_told))
                        (void)pump_one(output, w);
}

void capture_tell(const Capture *output, const RpcConnection *except, const char *method,
                  const JsonWriter *params) {
        for (const CaptureWatcher *w = output->watchers; w; w = w->next)
                if (w->connection != except)
                        (void)rpc_notify(w->connection, method, params);
}

int capture_watch(Capture *output, RpcConnection *connection, uint64_t seq, bool base64) {
        CaptureWatcher *watcher;
        unsigned count = 0;

        capture_unwatch(output, connection);
        for (CaptureWatcher *w = output->watchers; w; w = w->next)
                count++;
        if (count == CAPTURE_WATCHERS_MAX)
                return -EBUSY;
        watcher = malloc(sizeof(*watcher));
        if (!watcher)
                return -ENOMEM;
        *watcher = (CaptureWatcher){ .connection = connection, .seq = seq, .base64 = base64 };
        list_push(&output->watchers, watcher);
        (void)pump_one(output, watcher);
        return 0;
}

void capture_unwatch(Capture *output, RpcConnection *connection) {
        list_each_safe(watcher, output->watchers)
                if (watcher->connection == connection) {
                        (void)list_remove(&output->watchers, watcher);
                        free(watcher);
                        return;
                }
}

void capture_hold(Capture *output, const RpcConnection *connection, bool holds) {
        for (CaptureWatcher *w = output->watchers; w; w = w->next)
                if (w->connection == connection)
                        w->holds = holds;
}

int capture_watch_all(Capture *output, RpcConnection *connection) {
        int r = capture_watch(output, connection, 1, true);

        output->awaits = false;
        capture_hold(output, connection, true);
        return r;
}

bool capture_is_held(const Capture *output) {
        if (output->awaits)
                return true;
        for (const CaptureWatcher *w = output->watchers; w; w = w->next)
                if (w->holds && !rpc_has_room(w->connection))
                        return true;
        return false;
}

void capture_end(Capture *output, const char *method, JsonWriter *params) {
        output->end = *params;
        *params = (JsonWriter){ 0 };
        output->end_method = method;
        capture_pump(output);
}

/* --- bytes --- */

static void capture_append(Capture *output, CaptureChunk *chunk) {
        output->chunks++;
        output->streams[chunk->stream].kept += chunk->length;
        if (output->last)
                output->last->next = chunk;
        else
                output->first = chunk;
        output->last = chunk;
}

/* Drops the oldest bytes of a stream that keeps more than its limit. Does not cut a character. */
static void cut_stream(Capture *output, unsigned number) {
        CaptureStream *stream = &output->streams[number];
        CaptureChunk **at = &output->first, *before = NULL;

        while (stream->kept > output->limit) {
                const size_t more = stream->kept - output->limit;
                CaptureChunk *chunk = *at;
                size_t cut = more;

                assert(chunk); /* a stream that keeps bytes has a chunk */
                if (chunk->stream != number) {
                        before = chunk;
                        at = &chunk->next;
                        continue;
                }
                while (cut < chunk->length && (chunk->data[cut] & 0xc0) == 0x80 && cut < more + 3)
                        cut++;
                if (cut >= chunk->length) {
                        capture_drop(output, at, before);
                        continue;
                }
                chunk->length -= cut;
                chunk->offset += cut;
                memmove(chunk->data, chunk->data + cut, chunk->length);
                stream->kept -= cut;
                stream->dropped += cut;
        }
}

static void keep_last(Capture *output, CaptureChunk *chunk) {
        capture_append(output, chunk);
        capture_pump(output);
        cut_stream(output, chunk->stream);
        if (output->chunks > CAPTURE_CHUNKS_MAX)
                capture_drop(output, &output->first, NULL);
}

/* Returns how much of a chunk is kept if the whole does not fit. Does not cut a character. */
static size_t find_room(const Capture *output, const CaptureChunk *chunk) {
        const CaptureStream *stream = &output->streams[chunk->stream];
        size_t room;

        if (stream->full || output->chunks >= CAPTURE_CHUNKS_MAX)
                return 0;
        room = output->limit - stream->kept;
        for (int i = 0; i < 3 && room > 0 && (chunk->data[room] & 0xc0) == 0x80; i++)
                room--;
        return room;
}

/* Bytes beyond the limit are sent to the watchers, and not kept. */
static void keep_first(Capture *output, CaptureChunk *chunk) {
        CaptureStream *stream = &output->streams[chunk->stream];
        const size_t length = chunk->length;

        if (!stream->full && length <= output->limit - stream->kept &&
            output->chunks < CAPTURE_CHUNKS_MAX) {
                capture_append(output, chunk);
                capture_pump(output);
                return;
        }
        for (CaptureWatcher *w = output->watchers; w; w = w->next)
                if (pump_one(output, w) == 0 && w->seq <= chunk->seq)
                        (void)capture_tell_watcher(output, w, chunk);
        chunk->length = find_room(output, chunk);
        stream->dropped += length - chunk->length;
        stream->full = true;
        if (chunk->length > 0)
                capture_append(output, chunk);
        else
                free(chunk);
}

static int add_chunk(Capture *output, unsigned number, const char *data, size_t length) {
        CaptureChunk *chunk = malloc(sizeof(*chunk) + length);
        const uint64_t offset = output->streams[number].chunked;

        output->streams[number].chunked += length;
        if (!chunk)
                return -ENOMEM;
        *chunk = (CaptureChunk){
                .seq = output->next_seq++, .offset = offset, .stream = number, .length = length
        };
        memcpy(chunk->data, data, length);
        if (output->keep_tail)
                keep_last(output, chunk);
        else
                keep_first(output, chunk);
        return 0;
}

int capture_add(Capture *output, unsigned number, const char *data, size_t length, bool end) {
        CaptureStream *stream = &output->streams[number];
        _uninitialized_ char whole[CAPTURE_CHUNK_MAX + sizeof(stream->part)];
        size_t total, held;

        if (length > CAPTURE_CHUNK_MAX)
                return -EINVAL;
        stream->bytes += length;
        total = stream->part_length + length;
        memcpy(whole, stream->part, stream->part_length);
        if (length > 0)
                memcpy(whole + stream->part_length, data, length);
        held = end ? 0 : utf8_unfinished(whole, total);
        stream->part_length = held;
        memcpy(stream->part, whole + total - held, held);
        return total > held ? add_chunk(output, number, whole, total - held) : 0;
}

void capture_flush(Capture *output) {
        for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
                (void)capture_add(output, i, NULL, 0, true);
}

char *capture_text(const Capture *output, unsigned stream, size_t *ret_length) {
        char *text = malloc(output->streams[stream].kept + 1);
        size_t length = 0;

        for (const CaptureChunk *chunk = output->first; text && chunk; chunk = chunk->next)
                if (chunk->stream == stream) {
                        memcpy(text + length, chunk->data, chunk->length);
                        length += chunk->length;
                }
        if (!text)
                return NULL;
        text[length] = '\0';
        *ret_length = length;
        return text;
}
