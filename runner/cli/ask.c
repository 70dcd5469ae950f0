/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ask.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <time.h>

#include "cli/fail.h"
#include "cli/operands.h"
#include "keeper/connect.h"
#include "process/capture.h"
#include "rpc/server.h"
#include "session/live.h"
#include "session/settings.h"
#include "store/rows.h"
#include "streams/stdio.h"

/* --- a verb --- */

const Option ask_json_option = {
        "--json", NULL, "print an error as JSON", OPTION_BOOL, 0, NULL,
};

static int ask_run(const AskVerb *verb, void *options, int argc, char **argv, OptionResult *words,
                   Error *reterr) {
        int r = verb->streams ? stdio_open(NULL, reterr) : 0;

        if (r < 0)
                return r;
        r = options_parse(&verb->syntax, argc, (const char *const *)argv, options, words, reterr);
        if (r < 0)
                return r;
        if (words->help) {
                options_help(&verb->syntax, stdout);
                return 0;
        }
        r = operands_check(verb->syntax.verb, verb->syntax.usage, words->operands,
                           words->operands_count, verb->least, verb->most, reterr);
        if (r < 0 && verb->too_many && words->operands_count > verb->most)
                return error_cure(reterr, r, "%s", verb->too_many);
        return r < 0 ? r : verb->run(words, options, reterr);
}

int ask_main(const AskVerb *verb, void *options, int argc, char **argv) {
        _cleanup_(options_clear) OptionResult words = { 0 };
        Error error;
        int r = ask_run(verb, options, argc, argv, &words, &error);

        if (r >= 0)
                return r;
        if (!verb->makes)
                operands_name_session(words.operands ? words.operands[0] : NULL, &error);
        return fail_print(&error, fail_wants_json(argc, argv));
}

int ask_option(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *ret,
               Error *reterr) {
        uint64_t number;
        char quoted[80];
        int r;

        if (!text)
                return 0;
        if (str_to_uint(text, most, &number) == 0 && number >= least) {
                *ret = number;
                return 0;
        }
        r = error_set(reterr, ERROR_USAGE, 0, "%s: \"%s\" is not a valid number", option,
                      str_quote(text, quoted, sizeof(quoted)));
        return error_cure(reterr, r, "Use a number from %" PRIu64 " to %" PRIu64 ".", least, most);
}

int ask_limit(const char *text, uint64_t *ret, Error *reterr) {
        return ask_option("--limit", text, 1, ANSWER_LIMIT_MAX, ret, reterr);
}

int ask_output(const char *text, uint64_t *ret, Error *reterr) {
        uint64_t size;
        int r;

        if (!text)
                return 0;
        if (str_to_bytes(text, &size) == 0 && size <= CAPTURE_KEPT_MAX) {
                *ret = size;
                return 0;
        }
        r = error_set(reterr, ERROR_USAGE, 0, "--output: \"%s\" is not a valid size", text);
        return error_cure(reterr, r, "Use a size of at most %d MiB, for example 64KiB or 1MiB.",
                          CAPTURE_KEPT_MAX >> 20);
}

int ask_timeout(const char *text, uint64_t *ret, Error *reterr) {
        uint64_t time = 0;
        int r;

        if (!text)
                return 0;
        if (!streq(text, "none") && (str_to_usec(text, &time) < 0 || time < 1000)) {
                r = error_set(reterr, ERROR_USAGE, 0, "--timeout: \"%.40s\" is not a valid time",
                              text);
                return error_cure(reterr, r,
                                  "Use a number with a unit from 1ms to 1000d, for example 250ms, "
                                  "30s or 10m; or \"none\", for only the policy's limit.");
        }
        *ret = time;
        return 0;
}

/* --- a reply --- */

void answer_clear(Answer *answer) {
        rpc_message_clear(&answer->message);
        answer->document = json_free(answer->document);
        answer->result = NULL;
}

/* --- requests --- */

int ask_client(RpcClient *client, const char *method, JsonWriter *params, Answer *ret,
               Error *reterr) {
        int r;

        /* A second keeper may be asked with the same params, so close the writer only once. */
        if (params && params->depth > 0) {
                json_write_end(params);
                if (json_write_finish(params) < 0)
                        return error_oom(reterr);
        }
        r = rpc_client_call(client, method, params, NULL, 0, &ret->message, reterr);
        ret->result = ret->message.result;
        return r;
}

int ask_process(RpcClient *client, const char *method, const char *id, JsonWriter *params,
                Answer *ret, Error *reterr) {
        json_write_string(params, "id", id);
        return ask_client(client, method, params, ret, reterr);
}

/* Takes ownership of fd. */
static int ask_fd(int fd, const char *method, JsonWriter *params, Answer *ret, Error *reterr) {
        RpcClient *client = NULL;
        int r = rpc_client_new(fd, &client, reterr);

        if (r < 0) {
                fd_close(fd);
                return r;
        }
        r = ask_client(client, method, params, ret, reterr);
        rpc_client_free(client);
        return r;
}

int ask_keeper(const char *name, const char *method, JsonWriter *params, Answer *ret,
               Error *reterr) {
        unsigned tries = 0;
        int fd, r;

        do {
                r = keeper_connect(name, &fd, reterr);
                if (r == 0)
                        r = ask_fd(fd, method, params, ret, reterr);
        } while (keeper_may_retry(r, &tries));
        return r;
}

int ask_live(const char *name, RpcClient **ret, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE, fd = FD_NONE;
        int r = session_open(name, &dir_fd, NULL, reterr);

        if (r < 0)
                return r;
        r = session_find_keeper(name, dir_fd, FIND_TIME, &fd, reterr);
        if (r == -ENOENT) {
                (void)error_set(reterr, ERROR_MISSING, 0,
                                "session \"%s\" is at rest and has no processes", name);
                return error_cure(reterr, -ENOENT,
                                  "Its history lists the commands that it ran: holt history %s",
                                  name);
        }
        if (r == 0)
                r = rpc_client_new(fd, ret, reterr);
        if (r == 0)
                fd = FD_NONE;
        return r;
}

static int parse_answer(JsonWriter *w, Answer *ret, Error *reterr) {
        int r;

        json_write_end(w);
        if (json_write_finish(w) < 0)
                return error_oom(reterr);
        r = json_parse_large(w->data, w->length, RPC_ANSWER_MAX, "the session's database",
                             &ret->document, reterr);
        if (r == 0)
                ret->result = json_root(ret->document);
        return r;
}

int ask_store(int dir_fd, AskStoreFn fn, const void *data, Answer *ret, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        char path[PATH_MAX];
        _cleanup_(store_freep) Store *store = NULL;
        int r = session_path(dir_fd, path, reterr);

        if (r < 0)
                return r;
        r = settings_open_store(dir_fd, STORE_READ, &store, reterr);
        if (r < 0)
                return r;
        json_write_object(&w, NULL);
        r = fn(store, path, data, &w, reterr);
        return r < 0 ? r : parse_answer(&w, ret, reterr);
}

int ask_at_rest(const char *name, AskStoreFn fn, const void *data, Answer *ret, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE;
        int r = session_open(name, &dir_fd, NULL, reterr);

        return r < 0 ? r : ask_store(dir_fd, fn, data, ret, reterr);
}

int ask_look(const char *name, const char *method, JsonWriter *params, AskStoreFn fn,
             const void *data, Answer *ret, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE;
        int fd, r = session_open(name, &dir_fd, NULL, reterr);

        if (r < 0)
                return r;
        r = session_connect(dir_fd, &fd, reterr);
        if (r != -ENOENT) {
                if (r == 0)
                        r = ask_fd(fd, method, params, ret, reterr);
                /* These two errors mean that the keeper went to rest meanwhile. */
                if (r != -EPIPE && r != -ECONNRESET)
                        return r;
                answer_clear(ret);
        }
        return ask_store(dir_fd, fn, data, ret, reterr);
}

/* Returns whether an item of env, from index first on, sets the same variable as item. */
static bool names_from(const StrList *env, size_t first, const char *item) {
        const size_t length = strcspn(item, "=");

        for (size_t i = first; i < env->count; i++)
                if (strcspn(env->items[i], "=") == length &&
                    strncmp(env->items[i], item, length) == 0)
                        return true;
        return false;
}

bool ask_env_has(const StrList *env, const char *name) {
        return names_from(env, 0, name);
}

void ask_write_env(const StrList *env, JsonWriter *w) {
        json_write_object(w, "env");
        for (size_t i = 0; i < env->count; i++) {
                const char *item = env->items[i], *equals = strchr(item, '=');
                _cleanup_free_ char *name = strndup(item, strcspn(item, "="));
                const char *value = equals ? equals + 1 : getenv(item);

                /* The last item wins, because the keeper refuses an object with equal keys. */
                if (name && value && !names_from(env, i + 1, item))
                        json_write_string(w, name, value);
        }
        json_write_end(w);
}

/* --- printing --- */

int ask_print_document(JsonWriter *w, Error *reterr) {
        if (json_write_finish(w) < 0)
                return error_oom(reterr);
        (void)fputs(w->data, stdout);
        return 0;
}

int ask_print_json(const JsonValue *value, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };

        json_copy(&w, NULL, value);
        return ask_print_document(&w, reterr);
}

const char *ask_time(uint64_t ms, char buf[24]) {
        const time_t seconds = (time_t)(ms / 1000);
        struct tm tm;

        if (ms == 0 || !localtime_r(&seconds, &tm) ||
            strftime(buf, 24, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                (void)snprintf(buf, 24, "-");
        return buf;
}

int ask_writable(const JsonValue *show, StrList *ret) {
        const JsonValue *mounts = json_member(show, "mounts");
        int r = strlist_add(ret, json_member_text(show, "directory"));

        for (const JsonValue *m = json_first(mounts); m && r == 0; m = json_next(m)) {
                bool read_only = false;

                (void)json_bool(json_member(m, "read_only"), &read_only);
                if (!read_only)
                        r = strlist_add(ret, json_member_text(m, "source"));
                if (r == 0 && !read_only && json_member_text(m, "moved_to")[0])
                        r = strlist_add(ret, json_member_text(m, "moved_to"));
        }
        return r;
}
