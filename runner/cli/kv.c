/* SPDX-License-Identifier: Apache-2.0 */
/* holt kv: stores keys and values in a session. Reading does not start the session. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "cli/ask.h"
#include "cli/operands.h"
#include "cli/shown.h"
#include "cli/verbs.h"
#include "rpc/server.h"
#include "store/rows.h"

enum { REQUEST_REST = 128 }; /* bytes of a request without its parameters */
static_assert(STORE_VALUE_MAX == 1 << 20 && RPC_LINE_MAX == 1 << 20,
              "the message of kv_refuse_value() agrees");

typedef struct KvOptions {
        bool json, raw;
        const char *after, *limit;
} KvOptions;

static const Option kv_options[] = {
        { "--after", "KEY", "for keys: list only keys after this one", OPTION_STRING,
          offsetof(KvOptions, after), NULL },
        { "--limit", "N", "for keys: list at most this many; the default is 100", OPTION_STRING,
          offsetof(KvOptions, limit), NULL },
        { "--raw", NULL, "for get: print only the bytes, without a newline", OPTION_BOOL,
          offsetof(KvOptions, raw), NULL },
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(KvOptions, json),
          NULL },
};

/* The call. All strings are borrowed. */
typedef struct KvCall {
        const char *name, *key; /* the session's name; the key, or a prefix of keys */
        const char *value, *after;
        uint64_t limit;
        bool json, raw;
} KvCall;

/* --- get, keys --- */

static int get_at_rest(Store *store, const char *path, const void *data, JsonWriter *w,
                       Error *reterr) {
        const KvCall *call = data;

        (void)path;
        return answer_kv_get(store, call->key, !call->json, w, reterr);
}

/* value is base64, because it may contain any bytes. */
static int print_value(const KvCall *call, const char *value, Error *reterr) {
        _cleanup_free_ char *bytes = NULL;
        _cleanup_free_ char *owned = NULL;
        size_t length = 0;
        int r = base64_decode(value, &bytes, &length);
        const char *shown = bytes;

        if (r < 0)
                return error_set(reterr, ERROR_PROTOCOL, -r,
                                 "the keeper's reply is not valid base64");
        r = shown_bytes(STDOUT_FILENO, &shown, &length, &owned);
        if (r < 0)
                return error_oom(reterr);
        (void)fwrite(shown, 1, length, stdout);
        if (!call->raw)
                (void)putchar('\n');
        return 0;
}

static int kv_get(const KvCall *call, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "key", call->key);
        json_write_bool(&w, "base64", !call->json);
        r = ask_look(call->name, "kv.get", &w, get_at_rest, call, &answer, reterr);
        if (r < 0 && reterr->kind == ERROR_NO_KEY)
                return error_cure(reterr, r, "To list the keys: holt kv %s keys", call->name);
        if (r < 0)
                return r;
        if (call->json)
                return ask_print_json(answer.result, reterr);
        return print_value(call, json_member_text(answer.result, "value"), reterr);
}

static int keys_at_rest(Store *store, const char *path, const void *data, JsonWriter *w,
                        Error *reterr) {
        const KvCall *call = data;

        (void)path;
        return answer_kv_keys(store, call->key, call->after, call->limit, w, reterr);
}

/* A program gets the exact bytes. A terminal would act on control characters, so they are made
 * visible. */
static void print_key(const char *key) {
        char visible[4 * STORE_KEY_MAX + 1];

        if (isatty(STDOUT_FILENO))
                key = str_visible(key, visible, sizeof(visible));
        (void)printf("%s\n", key);
}

static int kv_keys(const KvCall *call, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        const JsonValue *keys;
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "prefix", call->key);
        json_write_string(&w, "after", call->after);
        json_write_uint(&w, "limit", call->limit);
        r = ask_look(call->name, "kv.keys", &w, keys_at_rest, call, &answer, reterr);
        if (r < 0)
                return r;
        if (call->json)
                return ask_print_json(answer.result, reterr);
        keys = json_member(answer.result, "keys");
        for (const JsonValue *key = json_first(keys); key; key = json_next(key))
                print_key(json_string(key));
        return 0;
}

/* --- set, delete --- */

static int kv_refuse_value(const char *why, Error *reterr) {
        (void)error_set(reterr, ERROR_LIMIT, 0, "the value is too long: %s", why);
        return error_cure(reterr, -E2BIG,
                          "A value may have nearly 1 MiB of text, or 760 KiB of other bytes. Put "
                          "larger data into a file: holt files NAME put FILE");
}

/* Reads all of stdin. */
static int kv_read_value(char **ret, size_t *ret_length, Error *reterr) {
        _cleanup_free_ char *data = malloc(STORE_VALUE_MAX + 2);
        size_t length;

        if (!data)
                return error_oom(reterr);
        length = fread(data, 1, STORE_VALUE_MAX + 1, stdin);
        if (ferror(stdin))
                return error_set(reterr, ERROR_USAGE, errno, "cannot read the value from stdin");
        if (length > STORE_VALUE_MAX)
                return kv_refuse_value("it is longer than 1 MiB", reterr);
        data[length] = '\0';
        *ret = TAKE_PTR(data);
        *ret_length = length;
        return 0;
}

/* Writes the value as a JSON string if possible: base64 is longer, and the size of a request is
 * limited. */
static int write_value(const char *value, size_t length, JsonWriter *w, Error *reterr) {
        _cleanup_free_ char *base64 = NULL;

        if (strlen(value) == length && utf8_valid(value)) {
                json_write_string(w, "value", value);
                return 0;
        }
        base64 = base64_encode(value, length);
        if (!base64)
                return error_oom(reterr);
        json_write_string(w, "base64", base64);
        return 0;
}

static int kv_set(const KvCall *call, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        _cleanup_free_ char *value = NULL;
        size_t length = strlen(call->value);
        int r = streq(call->value, "-") ? kv_read_value(&value, &length, reterr) : 0;

        if (r < 0)
                return r;
        json_write_object(&w, NULL);
        json_write_string(&w, "key", call->key);
        r = write_value(value ? value : call->value, length, &w, reterr);
        if (r == 0 && w.length + REQUEST_REST > RPC_LINE_MAX)
                r = kv_refuse_value("its request would be longer than 1 MiB", reterr);
        return r < 0 ? r : ask_keeper(call->name, "kv.set", &w, &answer, reterr);
}

static int kv_delete(const KvCall *call, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "key", call->key);
        r = ask_keeper(call->name, "kv.delete", &w, &answer, reterr);
        return r == 0 && call->json ? ask_print_json(answer.result, reterr) : r;
}

/* --- the verb --- */

static const Subverb kv_verbs[] = {
        { "get", "KEY [--raw] [--json]", 1, 1 },
        { "set", "KEY VALUE", 2, 2 },
        { "delete", "KEY [--json]", 1, 1 },
        { "keys", "[PREFIX] [--after KEY] [--limit N] [--json]", 0, 1 },
};
static int (*const kv_runs[])(const KvCall *call, Error *reterr) = { kv_get, kv_set, kv_delete,
                                                                     kv_keys };
static_assert(ELEMENTSOF(kv_runs) == ELEMENTSOF(kv_verbs), "each verb has its function");

static int do_kv(const OptionResult *words, const void *data, Error *reterr) {
        const char *const *operands = words->operands;
        const size_t count = words->operands_count > 2 ? words->operands_count - 2 : 0;
        const KvOptions *options = data;
        size_t which = 0;
        KvCall call = { .name = operands[0],
                        .key = count > 0 ? operands[2] : "",
                        .value = count > 1 ? operands[3] : "",
                        .after = options->after ? options->after : "",
                        .limit = ANSWER_LIMIT_DEFAULT,
                        .json = options->json,
                        .raw = options->raw };
        int r = operands_subverb("kv", kv_verbs, ELEMENTSOF(kv_verbs), operands,
                                 words->operands_count, &which, reterr);

        if (r == 0)
                r = ask_limit(options->limit, &call.limit, reterr);
        return r < 0 ? r : kv_runs[which](&call, reterr);
}

int cmd_kv(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "kv",
                            .usage = "NAME get KEY | set KEY VALUE | delete KEY | keys [PREFIX]  "
                                     "[OPTIONS]",
                            .summary = "Stores keys and values in a session. If VALUE is \"-\", it "
                                       "is read from stdin.",
                            .options = kv_options,
                            .options_count = ELEMENTSOF(kv_options),
                            .operands = true },
                .most = SIZE_MAX,
                .run = do_kv,
        };
        KvOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
