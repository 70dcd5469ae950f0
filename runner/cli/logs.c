/* SPDX-License-Identifier: Apache-2.0 */
/* holt logs: what a process has printed, and goes on to print. */
#include "cli/logs.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/sys.h"
#include "cli/ask.h"
#include "cli/verbs.h"

enum { PAGE = 50 }; /* chunks of at most 64 KiB in one answer */

typedef struct LogsOptions {
        const char *from, *tail;
        bool follow, json;
} LogsOptions;

static const Option logs_options[] = {
        { "--follow", NULL, "go on until the command has ended", OPTION_BOOL,
          offsetof(LogsOptions, follow), NULL },
        { "-f", NULL, "the same", OPTION_BOOL, offsetof(LogsOptions, follow), NULL },
        { "--from", "SEQ", "from that chunk on, counted from 1", OPTION_STRING,
          offsetof(LogsOptions, from), NULL },
        { "--tail", "N", "of what is kept only the last N lines", OPTION_STRING,
          offsetof(LogsOptions, tail), NULL },
        { "--json", NULL, "print each chunk as one line of JSON, in base64", OPTION_BOOL,
          offsetof(LogsOptions, json), NULL },
};

static bool print_json; /* as --json says, for what is printed wherever it is read */

/* --- chunks --- */

typedef struct Chunk {
        char *data;
        size_t length;
        int fd;
} Chunk;

/* What was read and is to be printed when its tail is known. */
typedef struct Chunks {
        Chunk *items;
        size_t count;
} Chunks;

static void chunks_clear(Chunks *chunks) {
        for (size_t i = 0; i < chunks->count; i++)
                free(chunks->items[i].data);
        free(chunks->items);
        *chunks = (Chunks){ 0 };
}

static int decode(const JsonValue *value, Chunk *ret, Error *reterr) {
        int r = base64_decode(ask_text(value, "base64"), &ret->data, &ret->length);

        if (r < 0)
                return error_set(reterr, ERROR_PROTOCOL, -r, "the keeper's answer is none");
        ret->fd = streq(ask_text(value, "stream"), "stderr") ? STDERR_FILENO : STDOUT_FILENO;
        return 0;
}

static int write_all(int fd, const char *data, size_t length, Error *reterr) {
        int r = sys_write_all(fd, data, length);

        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot write to %s",
                                 fd == STDERR_FILENO ? "stderr" : "stdout")
                     : 0;
}

/* {"seq", "stream", "base64"} */
static int print_chunk(const JsonValue *value, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_uint(&w, "seq", ask_number(value, "seq"));
        json_write_string(&w, "stream", ask_text(value, "stream"));
        json_write_string(&w, "base64", ask_text(value, "base64"));
        json_write_end(&w);
        return json_write_finish(&w) < 0 ? error_oom(reterr)
                                         : write_all(STDOUT_FILENO, w.data, w.length, reterr);
}

/* Prints a chunk, or adds it to what is to be printed. */
static int take(const JsonValue *value, Chunks *later, Error *reterr) {
        Chunk chunk = { 0 };
        int r;

        if (print_json)
                return print_chunk(value, reterr);
        r = decode(value, &chunk, reterr);

        if (r == 0 && later) {
                Chunk *grown = reallocarray(later->items, later->count + 1, sizeof(*grown));

                if (grown) {
                        later->items = grown;
                        later->items[later->count++] = chunk;
                        return 0;
                }
                r = error_oom(reterr);
        } else if (r == 0) {
                r = write_all(chunk.fd, chunk.data, chunk.length, reterr);
        }
        free(chunk.data);
        return r;
}

/* One page. 1 when there are others, 0 when not. */
static int read_page(RpcClient *client, const char *id, uint64_t *seq, Chunks *later,
                     Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        const JsonValue *chunks;
        bool more = false;
        int r;

        json_write_object(&w, NULL);
        json_write_uint(&w, "from", *seq);
        json_write_uint(&w, "limit", PAGE);
        json_write_bool(&w, "base64", true);
        r = ask_process(client, "process.read", id, &w, &answer, reterr);
        chunks = r == 0 ? json_member(answer.result, "chunks") : NULL;
        for (const JsonValue *c = chunks ? json_first(chunks) : NULL; c && r == 0; c = json_next(c))
                r = take(c, later, reterr);
        if (r < 0)
                return r;
        *seq = ask_number(answer.result, "next");
        (void)json_bool(json_member(answer.result, "more"), &more);
        return more;
}

static int read_all(RpcClient *client, const char *id, uint64_t *seq, Chunks *later,
                    Error *reterr) {
        int r;

        do
                r = read_page(client, id, seq, later, reterr);
        while (r > 0);
        return r;
}

int logs_print(RpcClient *client, const char *id, uint64_t *seq, Error *reterr) {
        return read_all(client, id, seq, NULL, reterr);
}

/* --- the tail --- */

/* Where the last lines begin, both streams together: the chunk, and *ret_at in it. */
static size_t find_tail(const Chunks *chunks, uint64_t lines, size_t *ret_at) {
        bool last = true; /* the end of the last line begins none */

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

static int print_tail(RpcClient *client, const char *id, uint64_t lines, uint64_t *seq,
                      Error *reterr) {
        _cleanup_(chunks_clear) Chunks chunks = { 0 };
        size_t at = 0, first;
        int r = read_all(client, id, seq, &chunks, reterr);

        if (r < 0 || lines == 0)
                return r;
        first = find_tail(&chunks, lines, &at);
        for (size_t i = first; r == 0 && i < chunks.count; i++, at = 0)
                r = write_all(chunks.items[i].fd, chunks.items[i].data + at,
                              chunks.items[i].length - at, reterr);
        return r;
}

/* --- following --- */

static int send(RpcClient *client, const char *method, const char *id, uint64_t from,
                uint64_t *ret_id, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "id", id);
        if (from) {
                json_write_uint(&w, "from", from);
                json_write_bool(&w, "base64", true);
        }
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        return rpc_client_send(client, method, &w, NULL, 0, ret_id, reterr);
}

/* 1 at the end of the command, 0 to go on. */
static int hear(RpcClient *client, uint64_t wait_id, uint64_t *seq, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        uint64_t number;
        Error error;
        int r = rpc_client_next(client, true, &message, &error);

        if (r < 0 || (!message.method && message.id != wait_id && !message.result)) {
                *reterr = error;
                return r < 0 ? r : -EINVAL;
        }
        if (message.id == wait_id)
                return 1; /* one that could not be started has ended too */
        if (!message.method || !streq(message.method, "process.output"))
                return 0;
        number = ask_number(message.params, "seq");
        if (number < *seq)
                return 0;
        *seq = number + 1;
        return take(message.params, NULL, reterr);
}

/* The answer to process.wait comes behind what was printed before the end, but for a reader that
 * has fallen behind; what that has missed is still kept. */
static int follow(RpcClient *client, const char *id, uint64_t *seq, Error *reterr) {
        uint64_t watch_id, wait_id = 0;
        int r = send(client, "process.watch", id, *seq, &watch_id, reterr);

        if (r == 0)
                r = send(client, "process.wait", id, 0, &wait_id, reterr);
        while (r == 0)
                r = hear(client, wait_id, seq, reterr);
        return r < 0 ? r : logs_print(client, id, seq, reterr);
}

/* --- the verb --- */

static int do_logs(const OptionResult *words, const void *data, Error *reterr) {
        const LogsOptions *options = data;
        const char *id = words->operands[1];
        uint64_t seq = 1, lines = 0;
        RpcClient *client = NULL;
        int r = ask_option("--from", options->from, 1, JSON_INTEGER_MAX, &seq, reterr);

        if (r == 0 && options->json && options->tail) {
                r = error_set(reterr, ERROR_USAGE, 0, "--tail counts lines, and --json has chunks");
                return error_cure(reterr, r, "Leave one of them out.");
        }
        print_json = options->json;
        if (r == 0)
                r = ask_option("--tail", options->tail, 0, 1000000, &lines, reterr);
        if (r == 0)
                r = ask_live(words->operands[0], &client, reterr);
        if (r == 0)
                r = options->tail ? print_tail(client, id, lines, &seq, reterr)
                                  : logs_print(client, id, &seq, reterr);
        if (r == 0 && options->follow)
                r = follow(client, id, &seq, reterr);
        rpc_client_free(client);
        return r;
}

int cmd_logs(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "logs",
                            .usage = "NAME ID [-f] [--from SEQ] [--tail N] [--json]",
                            .summary = "Prints what a process of a session has printed, as far as "
                                       "that is kept.",
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
