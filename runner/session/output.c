/* SPDX-License-Identifier: Apache-2.0 */
#include "session/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

typedef struct OutputWatcher {
        struct OutputWatcher *next;
        RpcConnection *connection;
        uint64_t seq; /* of the next chunk it gets */
        bool base64;
} OutputWatcher;

static const char *const stream_names[OUTPUT_STREAMS] = { "stdout", "stderr" };

void output_init(Output *output, const char *id, size_t limit, bool keep_tail) {
        *output = (Output){ .next_seq = 1, .limit = limit, .keep_tail = keep_tail };
        (void)snprintf(output->id, sizeof(output->id), "%s", id);
}

static void drop_first(Output *output) {
        OutputChunk *chunk = output->first;
        OutputStream *stream = &output->streams[chunk->stream];

        output->first = chunk->next;
        if (!output->first)
                output->last = NULL;
        stream->kept -= chunk->length;
        stream->dropped += chunk->length;
        free(chunk);
}

void output_clear(Output *output) {
        while (output->first)
                drop_first(output);
        while (output->watchers) {
                OutputWatcher *watcher = output->watchers;

                output->watchers = watcher->next;
                free(watcher);
        }
}

/* --- base64 --- */

char *output_base64(const void *data, size_t length) {
        static const char digits[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const unsigned char *bytes = data;
        char *text = malloc((length + 2) / 3 * 4 + 1), *at = text;

        for (size_t i = 0; text && i < length; i += 3) {
                uint32_t three = (uint32_t)bytes[i] << 16;

                if (i + 1 < length)
                        three |= (uint32_t)bytes[i + 1] << 8;
                if (i + 2 < length)
                        three |= bytes[i + 2];
                *at++ = digits[three >> 18];
                *at++ = digits[three >> 12 & 63];
                *at++ = i + 1 < length ? digits[three >> 6 & 63] : '=';
                *at++ = i + 2 < length ? digits[three & 63] : '=';
        }
        if (at)
                *at = '\0';
        return text;
}

/* --- watchers --- */

void output_write_chunk(const OutputChunk *chunk, bool base64, JsonWriter *w) {
        json_write_uint(w, "seq", chunk->seq);
        json_write_string(w, "stream", stream_names[chunk->stream]);
        if (base64) {
                _cleanup_free_ char *text = output_base64(chunk->data, chunk->length);

                json_write_string(w, "base64", text);
        } else {
                json_write_bytes(w, "text", chunk->data, chunk->length);
        }
}

/* 0, or -EAGAIN where the client has to read first. */
static int tell(const Output *output, OutputWatcher *watcher, const OutputChunk *chunk) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "id", output->id);
        output_write_chunk(chunk, watcher->base64, &w);
        json_write_end(&w);
        r = json_write_finish(&w);
        if (r == 0)
                r = rpc_notify(watcher->connection, "process.output", &w);
        if (r == 0)
                watcher->seq = chunk->seq + 1;
        return r;
}

static void pump_one(const Output *output, OutputWatcher *watcher) {
        for (const OutputChunk *chunk = output->first; chunk; chunk = chunk->next)
                if (chunk->seq >= watcher->seq && tell(output, watcher, chunk) < 0)
                        return;
}

void output_pump(Output *output) {
        for (OutputWatcher *w = output->watchers; w; w = w->next)
                if (w->seq < output->next_seq)
                        pump_one(output, w);
}

int output_watch(Output *output, RpcConnection *connection, uint64_t seq, bool base64) {
        OutputWatcher *watcher;
        unsigned count = 0;

        output_unwatch(output, connection);
        for (OutputWatcher *w = output->watchers; w; w = w->next)
                count++;
        if (count == OUTPUT_WATCHERS_MAX)
                return -EBUSY;
        watcher = malloc(sizeof(*watcher));
        if (!watcher)
                return -ENOMEM;
        *watcher = (OutputWatcher){
                .next = output->watchers, .connection = connection, .seq = seq, .base64 = base64
        };
        output->watchers = watcher;
        pump_one(output, watcher);
        return 0;
}

void output_unwatch(Output *output, RpcConnection *connection) {
        for (OutputWatcher **at = &output->watchers; *at; at = &(*at)->next)
                if ((*at)->connection == connection) {
                        OutputWatcher *gone = *at;

                        *at = gone->next;
                        free(gone);
                        return;
                }
}

void output_notify(Output *output, const char *method, const JsonWriter *params) {
        for (OutputWatcher *w = output->watchers; w; w = w->next)
                (void)rpc_notify(w->connection, method, params);
}

/* --- bytes --- */

/* Of a stream's bytes those at the end that may be the start of a character. */
static size_t unfinished(const char *data, size_t length) {
        for (size_t back = 1; back <= 3 && back <= length; back++) {
                unsigned char c = (unsigned char)data[length - back];
                size_t needed = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

                if (c < 0x80)
                        return 0;
                if (c >= 0xc0)
                        return needed > back ? back : 0;
        }
        return 0;
}

static void append(Output *output, OutputChunk *chunk) {
        if (output->last)
                output->last->next = chunk;
        else
                output->first = chunk;
        output->last = chunk;
}

/* With the first bytes kept, what is past the limit is told to those who watch and forgotten. */
static void keep(Output *output, OutputChunk *chunk) {
        OutputStream *stream = &output->streams[chunk->stream];
        bool full = !output->keep_tail && stream->kept + chunk->length > output->limit;

        if (full) {
                for (OutputWatcher *w = output->watchers; w; w = w->next)
                        if (w->seq <= chunk->seq)
                                (void)tell(output, w, chunk);
                chunk->length = output->limit - stream->kept;
        }
        stream->kept += chunk->length;
        if (chunk->length > 0)
                append(output, chunk);
        else
                free(chunk);
        while (output->keep_tail && stream->kept > output->limit)
                drop_first(output);
        if (!full)
                output_pump(output);
}

static int add_chunk(Output *output, unsigned number, const char *data, size_t length) {
        OutputStream *stream = &output->streams[number];
        const size_t before = stream->kept;
        OutputChunk *chunk = malloc(sizeof(*chunk) + length);

        if (!chunk)
                return -ENOMEM;
        *chunk = (OutputChunk){ .seq = output->next_seq++, .stream = number, .length = length };
        memcpy(chunk->data, data, length);
        keep(output, chunk);
        if (!output->keep_tail)
                stream->dropped += length - (stream->kept - before);
        return 0;
}

int output_add(Output *output, unsigned number, const char *data, size_t length, bool end) {
        OutputStream *stream = &output->streams[number];
        char whole[OUTPUT_CHUNK_MAX + sizeof(stream->part)];
        size_t total, held;

        if (length > OUTPUT_CHUNK_MAX)
                return -EINVAL;
        stream->bytes += length;
        total = stream->part_length + length;
        memcpy(whole, stream->part, stream->part_length);
        if (length > 0)
                memcpy(whole + stream->part_length, data, length);
        held = end ? 0 : unfinished(whole, total);
        stream->part_length = held;
        memcpy(stream->part, whole + total - held, held);
        return total > held ? add_chunk(output, number, whole, total - held) : 0;
}

char *output_text(const Output *output, unsigned stream, size_t *ret_length) {
        char *text = malloc(output->streams[stream].kept + 1);
        size_t length = 0;

        for (const OutputChunk *chunk = output->first; text && chunk; chunk = chunk->next)
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
