/* SPDX-License-Identifier: Apache-2.0 */
/* holt history, holt audit: show what was done and what was refused in a session. Neither starts a
 * session. */
#include <inttypes.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/verbs.h"
#include "store/rows.h"

typedef struct ListOptions {
        const char *limit, *before;
        const char *only; /* --name */
        unsigned kind;    /* an index of audit_kinds[]; AUDIT_KINDS means any */
        bool json;
} ListOptions;

#define COMMON_OPTIONS                                                                             \
        { "--limit",                                                                               \
          "N",                                                                                     \
          "print at most this many rows; the default is 100",                                      \
          OPTION_STRING,                                                                           \
          offsetof(ListOptions, limit),                                                            \
          NULL },                                                                                  \
                { "--before",                                                                      \
                  "ID",                                                                            \
                  "print only rows with a lower id",                                               \
                  OPTION_STRING,                                                                   \
                  offsetof(ListOptions, before),                                                   \
                  NULL },                                                                          \
        {                                                                                          \
                "--json", NULL, "print the result as JSON", OPTION_BOOL,                           \
                        offsetof(ListOptions, json), NULL                                          \
        }

static const Option history_options[] = {
        { "--name", "METHOD", "print only rows of this method, for example exec", OPTION_STRING,
          offsetof(ListOptions, only), NULL },
        COMMON_OPTIONS,
};

static const Option audit_options[] = {
        { "--kind", "denial|grant|guard|kill|limit|link|network|port|route|tool",
          "print only rows of this kind", OPTION_ENUM, offsetof(ListOptions, kind), audit_kinds },
        COMMON_OPTIONS,
};

typedef struct Query {
        uint64_t limit, before;
        const char *only;
} Query;

/* --- requests --- */

static int history_at_rest(Store *store, const char *path, const void *data, JsonWriter *w,
                           Error *reterr) {
        const Query *query = data;

        (void)path;
        return answer_history(store, query->before, query->only, query->limit, w, reterr);
}

static int audit_at_rest(Store *store, const char *path, const void *data, JsonWriter *w,
                         Error *reterr) {
        const Query *query = data;

        (void)path;
        return answer_audit(store, query->before, query->only, query->limit, w, reterr);
}

/* The verb that people have called, if the method behind it has another name. */
typedef struct Alias {
        const char *method, *verb;
} Alias;

static const Alias exec_alias = { "process.spawn", "exec" };

typedef struct Listing {
        const char *method, *only; /* only: name of the parameter that options->only sets */
        AskStoreFn at_rest;
        void (*print)(const JsonValue *row);
        const char *title;
        const struct Alias *alias; /* another name of a method, or NULL */
} Listing;

static int ask_rows(const Listing *listing, const char *name, const Query *query, Answer *ret,
                    Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_uint(&w, "limit", query->limit);
        json_write_uint(&w, "before", query->before);
        if (query->only)
                json_write_string(&w, listing->only, query->only);
        return ask_look(name, listing->method, &w, listing->at_rest, query, ret, reterr);
}

static const JsonValue *first_row(const Answer *answer) {
        const JsonValue *rows = json_member(answer->result, "rows");

        return json_first(rows);
}

/* Merges the rows of two replies, each with the newest row first. */
static void history_print_rows(const Listing *listing, const Answer *one, const Answer *two,
                               uint64_t limit) {
        const JsonValue *a = first_row(one), *b = first_row(two);

        (void)puts(listing->title);
        for (; (a || b) && limit > 0; limit--) {
                const bool from_a = a &&
                                    (!b || json_member_uint(a, "id") > json_member_uint(b, "id"));
                const JsonValue **next = from_a ? &a : &b;

                listing->print(*next);
                *next = json_next(*next);
        }
}

static int history_list(const Listing *listing, const char *name, const ListOptions *options,
                        Error *reterr) {
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE, more = ANSWER_NONE;
        Query query = { .limit = ANSWER_LIMIT_DEFAULT, .only = options->only };
        int r = ask_limit(options->limit, &query.limit, reterr);

        if (r == 0)
                r = ask_option("--before", options->before, 1, JSON_INTEGER_MAX, &query.before,
                               reterr);
        if (r == 0)
                r = ask_rows(listing, name, &query, &answer, reterr);
        if (r < 0)
                return r;
        if (options->json)
                return ask_print_json(answer.result, reterr);
        if (listing->alias && query.only && streq(query.only, listing->alias->verb)) {
                query.only = listing->alias->method;
                r = ask_rows(listing, name, &query, &more, reterr);
                if (r < 0)
                        return r;
        }
        history_print_rows(listing, &answer, &more, query.limit);
        return 0;
}

/* --- printing --- */

/* Joins the strings of an array, separated by between. The caller frees the text. */
static char *history_join(const JsonValue *array, const char *between) {
        char *text = strdup("");

        for (const JsonValue *word = json_first(array); text && word; word = json_next(word)) {
                const char *string = json_string(word);
                char *longer = str_format("%s%s%s", text, text[0] ? between : "",
                                          string ? string : "");

                free(text);
                text = longer;
        }
        return text;
}

/* The parameters that describe a call best, for methods without argv or shell. */
static const struct {
        const char *first, *between, *second; /* second may be missing */
} abouts[] = {
        { "shell" },
        { "tool", " ", "requestPreview" },
        { "from", " -> ", "to" },
        { "pattern", " in ", "path" },
        { "path" },
        { "prefix" },
};

/* Describes a call: by the words of its command, by its shell line, or by its main parameters. */
static char *history_describe(const JsonValue *params) {
        const char *code = json_member_text(params, "code");
        const JsonValue *words = json_member(params, "argv");

        words = words ? words : json_member(params, "operands");
        if (words)
                return history_join(words, " ");
        if (code[0])
                return str_format("%.*s%s", (int)strcspn(code, "\n"), code,
                                  strchr(code, '\n') ? " ..." : "");
        for (size_t i = 0; i < ELEMENTSOF(abouts); i++) {
                const char *first = json_member_text(params, abouts[i].first), *second = "";

                if (abouts[i].second)
                        second = json_member_text(params, abouts[i].second);
                if (first[0])
                        return str_format("%s%s%s", first, second[0] ? abouts[i].between : "",
                                          second);
        }
        return strdup("");
}

static bool has_failed(const JsonValue *result) {
        const JsonValue *success = json_member(result, "success");
        bool succeeded = true;

        if (success)
                (void)json_bool(success, &succeeded);
        return !succeeded || json_member(result, "error");
}

/* "exited 1", "timeout" or "ok"; "-" if the call still runs, or a crash has interrupted it. */
static const char *end_of(const JsonValue *result, char buf[32]) {
        const char *cause = result ? json_member_text(result, "cause") : "";

        if (!result)
                return "-";
        if (cause[0] == '\0')
                return has_failed(result) ? "failed" : "ok";
        if (!streq(cause, "exited"))
                return cause;
        (void)snprintf(buf, 32, "exited %" PRIu64, json_member_uint(result, "exit_code"));
        return buf;
}

/* Prints why a call failed: " (ENOENT)" or " (validation_error)", or nothing if that is unknown. */
static void print_failure(const JsonValue *result) {
        static const char *const keys[] = { "errno", "errorType", "kind" };

        for (size_t i = 0; has_failed(result) && i < ELEMENTSOF(keys); i++) {
                const char *why = json_member_text(result, keys[i]);

                if (why[0]) {
                        (void)printf(" (%s)", why);
                        return;
                }
        }
}

static const char *history_called(const JsonValue *row) {
        const char *name = json_member_text(row, "name");

        return streq(name, exec_alias.method) ? exec_alias.verb : name;
}

static void print_history(const JsonValue *row) {
        const JsonValue *member = json_member(row, "result"),
                        *result = member && json_type(member) == JSON_OBJECT ? member : NULL;
        _cleanup_free_ char *what = history_describe(json_member(row, "params"));
        const uint64_t started = json_member_uint(row, "started_ms"),
                       ended = json_member_uint(row, "ended_ms");
        char when[24], end[32], took[24] = "-", visible[1024];

        if (ended)
                (void)snprintf(took, sizeof(took), "%.3fs", (double)(ended - started) / 1000);
        (void)printf("%-6" PRIu64 " %-19s %9s  %-12s %-14s %s", json_member_uint(row, "id"),
                     ask_time(started, when), took, end_of(result, end), history_called(row),
                     str_visible(what ? what : "", visible, sizeof(visible)));
        if (result)
                print_failure(result);
        (void)putchar('\n');
}

/* Formats a value for people. NULL if it is missing. The caller frees the text. */
static char *history_plain(const JsonValue *value) {
        uint64_t number;
        bool yes;

        switch (json_type(value)) {
        case JSON_STRING:
                return strdup(json_string(value));
        case JSON_BOOL:
                return json_bool(value, &yes) == 0 ? strdup(yes ? "true" : "false") : NULL;
        case JSON_ARRAY:
                return history_join(value, ",");
        case JSON_NUMBER:
                return json_uint(value, JSON_INTEGER_MAX, &number) == 0
                               ? str_format("%" PRIu64, number)
                               : NULL;
        default:
                return NULL;
        }
}

static void print_audit(const JsonValue *row) {
        char when[24], visible[1024];

        (void)printf("%-6" PRIu64 " %-19s %-8s", json_member_uint(row, "id"),
                     ask_time(json_member_uint(row, "at_ms"), when), json_member_text(row, "kind"));
        for (const JsonValue *m = json_first(json_member(row, "detail")); m; m = json_next(m)) {
                _cleanup_free_ char *text = history_plain(m);
                const char *quote = text && strchr(text, ' ') ? "'" : "";

                if (text)
                        (void)printf(" %s=%s%s%s", json_key(m), quote,
                                     str_visible(text, visible, sizeof(visible)), quote);
        }
        (void)putchar('\n');
}

/* --- the verbs --- */

static int do_history(const OptionResult *words, const void *options, Error *reterr) {
        static const Listing listing = {
                .method = "history.list",
                .only = "name",
                .at_rest = history_at_rest,
                .print = print_history,
                .title = "ID     STARTED                  TOOK  END          CALLED         WHAT",
                .alias = &exec_alias,
        };

        return history_list(&listing, words->operands[0], options, reterr);
}

static int do_audit(const OptionResult *words, const void *options, Error *reterr) {
        static const Listing listing = {
                .method = "audit.list",
                .only = "kind",
                .at_rest = audit_at_rest,
                .print = print_audit,
                .title = "ID     AT                  KIND     WHAT",
        };

        ListOptions with_kind = *(const ListOptions *)options;

        with_kind.only = audit_kinds[with_kind.kind];
        return history_list(&listing, words->operands[0], &with_kind, reterr);
}

int cmd_history(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "history",
                            .usage = "NAME [OPTIONS]",
                            .summary =
                                    "Lists the commands and calls of a session, the newest first.",
                            .options = history_options,
                            .options_count = ELEMENTSOF(history_options),
                            .operands = true },
                .least = 1,
                .most = 1,
                .run = do_history,
        };
        ListOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}

int cmd_audit(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "audit",
                            .usage = "NAME [OPTIONS]",
                            .summary = "Lists the refusals, grants, kills, connections, tool calls "
                                       "and similar events of a\nsession, the newest first.",
                            .options = audit_options,
                            .options_count = ELEMENTSOF(audit_options),
                            .operands = true },
                .least = 1,
                .most = 1,
                .run = do_audit,
        };
        ListOptions options = { .kind = AUDIT_KINDS };

        return ask_main(&verb, &options, argc, argv);
}
