/* SPDX-License-Identifier: Apache-2.0 */
/* holt logs: prints the kept output of a process, and follows it. */
#include "cli/logs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "cli/ask.h"
#include "cli/shown.h"
#include "cli/verbs.h"
#include "methods/past.h"
#include "process/capture.h"

enum { PAGE = 50 }; /* number of chunks in one reply, of at most 64 KiB each */

typedef struct LogsOptions {
        const char *from, *tail;
        bool follow, json;
} LogsOptions;

static const Option logs_options[] = {
        { "--follow", NULL, "continue to print until the command has ended", OPTION_BOOL,
          offsetof(LogsOptions, follow), NULL },
        { "-f", NULL, "short for --follow", OPTION_BOOL, offsetof(LogsOptions, follow), NULL },
        { "--from", "SEQ", "start with this chunk; chunks are counted from 1", OPTION_STRING,
          offsetof(LogsOptions, from), NULL },
        { "--tail", "N", "print only the last N lines of what is kept", OPTION_STRING,
          offsetof(LogsOptions, tail), NULL },
        { "--json", NULL, "print each chunk as one line of JSON, in base64", OPTION_BOOL,
          offsetof(LogsOptions, json), NULL },
};

/* --- chunks --- */

typedef struct Chunk {
        char *data;
        size_t length;
        unsigned stream;
        uint64_t offset;  /* offset of the first byte in its stream */
        uint64_t dropped; /* number of bytes that were not kept; then the chunk itself is empty */
} Chunk;

/* Chunks that were read, and are printed when the start of the tail is known. */
typedef struct Chunks {
        Chunk *items;
        size_t count;
} Chunks;

/* A process whose output is read. */
typedef struct Log {
        RpcClient *client;
        const char *id;
        uint64_t seq;                   /* number of the next chunk */
        uint64_t next[CAPTURE_STREAMS]; /* offset of the stream's next byte */
        /* Whether next is known: with --from, only after the first chunk. */
        bool known[CAPTURE_STREAMS];
        bool quiet; /* do not report dropped bytes */
        bool json;
        bool elsewhere[CAPTURE_STREAMS]; /* the output went to the process's caller */
} Log;

static void chunks_clear(Chunks *chunks) {
        for (size_t i = 0; i < chunks->count; i++)
                free(chunks->items[i].data);
        free(chunks->items);
        *chunks = (Chunks){ 0 };
}

static int logs_decode(const JsonValue *value, Chunk *ret, Error *reterr) {
        int r = base64_decode(json_member_text(value, "base64"), &ret->data, &ret->length);

        if (r < 0)
                return error_set(reterr, ERROR_PROTOCOL, -r, "cannot decode the keeper's reply");
        ret->stream = streq(json_member_text(value, "stream"), capture_stream_name(1));
        ret->offset = json_member_uint(value, "offset");
        return 0;
}

static int logs_write_all(int fd, const char *data, size_t length, Error *reterr) {
        int r = shown_write(fd, data, length);

        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot write to %s",
                                 fd == STDERR_FILENO ? "stderr" : "stdout")
                     : 0;
}

/* Prints one line: {"seq", "stream", "offset", "base64"}. */
static int logs_print_json(const JsonValue *value, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_uint(&w, "seq", json_member_uint(value, "seq"));
        json_write_string(&w, "stream", json_member_text(value, "stream"));
        json_write_uint(&w, "offset", json_member_uint(value, "offset"));
        json_write_string(&w, "base64", json_member_text(value, "base64"));
        json_write_end(&w);
        return json_write_finish(&w) < 0 ? error_oom(reterr)
                                         : logs_write_all(STDOUT_FILENO, w.data, w.length, reterr);
}

/* Prints the chunk's bytes, or the number of dropped bytes. */
static int print_chunk(const Chunk *chunk, size_t from, Error *reterr) {
        const char *name = capture_stream_name(chunk->stream);

        if (chunk->dropped == 0)
                return logs_write_all(chunk->stream ? STDERR_FILENO : STDOUT_FILENO,
                                      chunk->data + from, chunk->length - from, reterr);
        if (chunk->offset == 0)
                (void)fprintf(stderr, "holt: dropped the first %" PRIu64 " bytes of %s\n",
                              chunk->dropped, name);
        else
                (void)fprintf(stderr,
                              "holt: dropped %" PRIu64 " bytes of %s after its first %" PRIu64 "\n",
                              chunk->dropped, name, chunk->offset);
        return 0;
}

/* Prints a chunk, or moves it to later, which then owns its data. */
static int print_or_add(Chunk *chunk, Chunks *later, Error *reterr) {
        Chunk *grown;

        if (!later)
                return print_chunk(chunk, 0, reterr);
        grown = reallocarray(later->items, later->count + 1, sizeof(*grown));
        if (!grown)
                return error_oom(reterr);
        later->items = grown;
        later->items[later->count++] = *chunk;
        chunk->data = NULL;
        return 0;
}

/* Continues the stream at offset. The bytes between its last position and offset were not kept. */
static int skip_to(Log *log, unsigned stream, uint64_t offset, Chunks *later, Error *reterr) {
        Chunk hole = { .stream = stream, .offset = log->next[stream] };
        int r = 0;

        if (log->known[stream] && offset > log->next[stream] && !log->quiet) {
                hole.dropped = offset - log->next[stream];
                r = print_or_add(&hole, later, reterr);
        }
        log->next[stream] = offset;
        log->known[stream] = true;
        return r;
}

static int logs_take(Log *log, const JsonValue *value, Chunks *later, Error *reterr) {
        Chunk chunk = { 0 };
        int r = logs_decode(value, &chunk, reterr);

        if (r == 0)
                r = skip_to(log, chunk.stream, chunk.offset, later, reterr);
        log->next[chunk.stream] += chunk.length;
        if (r == 0)
                r = log->json ? logs_print_json(value, reterr)
                              : print_or_add(&chunk, later, reterr);
        free(chunk.data);
        return r;
}

/* Reports the bytes that were dropped after the last kept chunk. */
static int take_end(Log *log, const JsonValue *answer, Chunks *later, Error *reterr) {
        const uint64_t ends[CAPTURE_STREAMS] = { json_member_uint(answer, "stdout_bytes"),
                                                 json_member_uint(answer, "stderr_bytes") };
        const JsonValue *names = json_member(answer, "elsewhere");
        int r = 0;

        for (unsigned i = 0; r == 0 && i < CAPTURE_STREAMS; i++)
                if (log->known[i])
                        r = skip_to(log, i, ends[i], later, reterr);
        for (const JsonValue *n = json_first(names); n; n = json_next(n))
                if (json_string(n))
                        log->elsewhere[streq(json_string(n), capture_stream_name(1))] = true;
        return r;
}

/* Reads one page. Returns 1 if more pages follow, otherwise 0. */
static int read_page(Log *log, Chunks *later, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        const JsonValue *chunks;
        bool more = false;
        int r;

        json_write_object(&w, NULL);
        json_write_uint(&w, "from", log->seq);
        json_write_uint(&w, "limit", PAGE);
        json_write_bool(&w, "base64", true);
        r = ask_process(log->client, "process.read", log->id, &w, &answer, reterr);
        chunks = r == 0 ? json_member(answer.result, "chunks") : NULL;
        for (const JsonValue *c = json_first(chunks); c && r == 0; c = json_next(c))
                r = logs_take(log, c, later, reterr);
        if (r < 0)
                return r;
        log->seq = json_member_uint(answer.result, "next");
        (void)json_bool(json_member(answer.result, "more"), &more);
        return more ? 1 : take_end(log, answer.result, later, reterr);
}

static int logs_read_all(Log *log, Chunks *later, Error *reterr) {
        int r;

        do
                r = read_page(log, later, reterr);
        while (r > 0);
        return r;
}

int logs_print(RpcClient *client, const char *id, Error *reterr) {
        Log log = { .client = client, .id = id, .seq = 1, .quiet = true };

        return logs_read_all(&log, NULL, reterr);
}

/* --- the tail --- */

/* Finds the start of the last lines, in both streams together: returns the chunk, and the offset in
 * it in *ret_at. */
static size_t find_tail(const Chunks *chunks, uint64_t lines, size_t *ret_at) {
        bool last = true; /* the newline at the very end starts no line */

        for (size_t i = chunks->count; i-- > 0;)
                for (size_t at = chunks->items[i].length; at-- > 0; last = false) {
                        if (chunks->items[i].data[at] != '\n' || last || --lines > 0)
                                continue;
                        *ret_at = at + 1;
                        return i;
                }
        *ret_at = 0;
        return 0;
}

static int print_tail(Log *log, uint64_t lines, Error *reterr) {
        _cleanup_(chunks_clear) Chunks chunks = { 0 };
        size_t at = 0, first;
        int r = logs_read_all(log, &chunks, reterr);

        if (r < 0 || lines == 0)
                return r;
        first = find_tail(&chunks, lines, &at);
        for (size_t i = first; r == 0 && i < chunks.count; i++, at = 0)
                r = print_chunk(&chunks.items[i], at, reterr);
        return r;
}

/* --- following --- */

static int logs_send(const Log *log, const char *method, uint64_t from, uint64_t *ret_id,
                     Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "id", log->id);
        if (from) {
                json_write_uint(&w, "from", from);
                json_write_bool(&w, "base64", true);
        }
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        return rpc_client_send(log->client, method, &w, NULL, 0, ret_id, reterr);
}

/* Returns 1 when the command has ended, otherwise 0. */
static int logs_hear(Log *log, uint64_t wait_id, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        uint64_t number;
        Error error;
        int r = rpc_client_next(log->client, true, &message, &error);

        if (r < 0 || (!message.method && message.id != wait_id && !message.result)) {
                *reterr = error;
                return r < 0 ? r : -EINVAL;
        }
        if (message.id == wait_id)
                return 1; /* a command that could not be started has ended, too */
        if (!message.method || !streq(message.method, "process.output"))
                return 0;
        number = json_member_uint(message.params, "seq");
        if (number < log->seq)
                return 0;
        log->seq = number + 1;
        return logs_take(log, message.params, NULL, reterr);
}

/* The reply to process.wait comes after all output, unless this reader was too slow. The output
 * that it missed is still kept, so read it at the end. */
static int logs_follow(Log *log, Error *reterr) {
        uint64_t watch_id, wait_id = 0;
        int r = logs_send(log, "process.watch", log->seq, &watch_id, reterr);

        if (r == 0)
                r = logs_send(log, "process.wait", 0, &wait_id, reterr);
        while (r == 0)
                r = logs_hear(log, wait_id, reterr);
        return r < 0 ? r : logs_read_all(log, NULL, reterr);
}

/* Explains an empty output, so that nobody thinks that the command has printed nothing. */
static void tell_elsewhere(const Log *log) {
        const bool both = log->elsewhere[0] && log->elsewhere[1];

        if (!log->elsewhere[0] && !log->elsewhere[1])
                return;
        (void)fprintf(stderr,
                      "holt: %s of %s went to the command's caller, and was not kept\n  To keep "
                      "it, use holt exec with --keep or --detach.\n",
                      both ? "the output" : capture_stream_name(log->elsewhere[1]), log->id);
}

/* --- the verb --- */

static int print_log(Log *log, const LogsOptions *options, uint64_t lines, Error *reterr) {
        int r = options->tail ? print_tail(log, lines, reterr) : logs_read_all(log, NULL, reterr);

        if (r == 0)
                tell_elsewhere(log);
        return r == 0 && options->follow ? logs_follow(log, reterr) : r;
}

static int do_logs(const OptionResult *words, const void *data, Error *reterr) {
        const LogsOptions *options = data;
        Log log = { .id = words->operands[1], .seq = 1, .json = options->json };
        _cleanup_(answer_clear) Answer past = ANSWER_NONE; /* an error: the output is gone */
        uint64_t lines = 0;
        int r = ask_option("--from", options->from, 1, JSON_INTEGER_MAX, &log.seq, reterr);

        if (r == 0 && options->json && options->tail) {
                r = error_set(reterr, ERROR_USAGE, 0,
                              "--tail counts lines, but --json prints chunks");
                return error_cure(reterr, r, "Leave out one of them.");
        }
        for (unsigned i = 0; i < CAPTURE_STREAMS; i++)
                log.known[i] = log.seq == 1;
        if (r == 0)
                r = ask_option("--tail", options->tail, 0, 1000000, &lines, reterr);
        if (r == 0)
                r = ask_live(words->operands[0], &log.client, reterr);
        if (r == -ENOENT)
                r = ask_at_rest(words->operands[0], past_stored,
                                &(const PastAsk){ PAST_LOGS, log.id }, &past, reterr);
        else if (r == 0)
                r = print_log(&log, options, lines, reterr);
        rpc_client_free(log.client);
        return r;
}

int cmd_logs(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "logs",
                            .usage = "NAME ID [-f] [--from SEQ] [--tail N] [--json]",
                            .summary =
                                    "Prints the output of a process, as far as holt has kept it.",
                            .options = logs_options,
                            .options_count = ELEMENTSOF(logs_options),
                            .operands = true },
                .least = 2,
                .most = 2,
                .run = do_logs,
        };
        LogsOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
