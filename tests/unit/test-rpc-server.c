/* SPDX-License-Identifier: Apache-2.0 */
/* Tests rpc/: the replies to any client's lines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strings.h"
#include "rpc-fixture.h"
#include "rpc/connection.h"

#define ECHO_OF(text) "{\"text\":\"" text "\",\"loud\":true,\"times\":7,\"has_times\":false}"

/* Sends a line on a new connection and compares the reply. */
static void check(const char *line, const char *answer) {
        int fd = toy_connect();

        say(fd, line);
        assert_string_equal(hear(fd), answer);
        (void)close(fd);
}

/* The same, comparing only the start of the reply. */
static void check_start(const char *line, const char *answer) {
        int fd = toy_connect();
        const char *heard;

        say(fd, line);
        heard = hear(fd);
        if (!str_starts(heard, answer))
                assert_string_equal(heard, answer);
        assert_true(strlen(heard) > 0 && strchr(heard, '\n') == heard + strlen(heard) - 1);
        (void)close(fd);
}

/* --- requests --- */

static void test_answers(void **state) {
        (void)state;
        check(REQUEST("toy.echo", "{\"text\":\"a\"}"), RESULT(ECHO_OF("a")));
        check(REQUEST("toy.echo", "{\"text\":\"\",\"loud\":false,\"times\":100}"),
              RESULT("{\"text\":\"\",\"loud\":false,\"times\":100,\"has_times\":true}"));
        check(" { \"method\":\"toy.list\" , \"id\":1, \"jsonrpc\":\"2.0\"} \r\n",
              RESULT("{\"items\":[],\"env\":[],\"text\":\"{}\"}"));
        check(REQUEST("toy.list", "{\"items\":[\"a\",\"\"],\"env\":{\"A\":\"=\",\"B\":\"\"}}"),
              RESULT("{\"items\":[\"a\",\"\"],\"env\":[\"A==\",\"B=\"],\"text\":"
                     "\"{\\\"items\\\":[\\\"a\\\",\\\"\\\"],\\\"env\\\":{\\\"A\\\":\\\"=\\\","
                     "\\\"B\\\":\\\"\\\"}}\"}"));
}

static void test_ids_come_back(void **state) {
        static const char *const ids[] = {
                "0", "-1", "9007199254740991", "-9007199254740991", "\"\"", "\"a\\\"\"", "null"
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(ids); i++) {
                char line[200], answer[200];

                (void)snprintf(line, sizeof(line),
                               "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"toy.big\",\"params\":{"
                               "\"size\":1}}\n",
                               ids[i]);
                (void)snprintf(answer, sizeof(answer),
                               "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"text\":\"x\"}}\n",
                               ids[i]);
                check(line, answer);
        }
}

static void test_bytes_may_come_one_by_one(void **state) {
        static const char line[] = REQUEST("toy.echo", "{\"text\":\"a\"}");
        int fd = toy_connect();

        (void)state;
        for (const char *c = line; *c; c++) {
                assert_int_equal(toy.executed, 0);
                assert_int_equal(send(fd, c, 1, 0), 1);
                toy_turn();
        }
        assert_string_equal(hear(fd), RESULT(ECHO_OF("a")));
        (void)close(fd);
}

static void test_many_requests_in_one_packet(void **state) {
        static char lines[400 * sizeof(REQUEST("toy.echo", "{\"text\":\"a\"}"))];
        int fd = toy_connect();
        const char *heard;
        size_t count = 0;

        (void)state;
        for (int i = 0; i < 400; i++)
                (void)strcat(lines, REQUEST("toy.echo", "{\"text\":\"a\"}"));
        say(fd, lines);
        for (heard = hear(fd); *heard; count++) {
                assert_true(str_starts(heard, RESULT(ECHO_OF("a"))));
                heard = strchr(heard, '\n') + 1;
        }
        assert_int_equal(count, 400);
        (void)close(fd);
}

static void test_notifications_are_not_answered(void **state) {
        static const char *const lines[] = {
                NOTIFICATION("toy.echo", "{\"text\":\"a\"}"),
                NOTIFICATION("toy.fail", "{\"kind\":\"busy\"}"),
                NOTIFICATION("toy.fds", "{}"),
                NOTIFICATION("toy.none", "{}"),
                NOTIFICATION("toy.echo", "{}"),
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                check(lines[i], "");
        assert_int_equal(toy.executed, 3);
}

/* --- refused requests --- */

#define ERROR_ANSWER(id, code, message)                                                            \
        "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"" message   \
        "\""
#define DATA(name, kind, errno_name, hint)                                                         \
        ",\"data\":{\"name\":\"" name "\",\"kind\":\"" kind "\",\"errno\":" errno_name             \
        ",\"hint\":" hint

static void test_lines_that_are_no_json(void **state) {
        static const struct {
                const char *line, *message;
        } cases[] = {
                { "\n", "request:1:1: the document is empty" },
                { "{\n", "request:1:2: expected a key in double quotes" },
                { "{\"jsonrpc\":\"2.0\",\"id\":1\n",
                  "request:1:24: expected \\\",\\\" or \\\"}\\\"" },
                { "{} {}\n", "request:1:4: more text after the end of the document" },
                { "\"\xff\"\n", "request:1:2: not UTF-8" },
                { "{\"id\":1,\"id\":2}\n", "request: $.id is a duplicate key" },
                { "{\"id\":9007199254740993}\n",
                  "request:1:7: an integer beyond 2^53 - 1 would lose digits" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char answer[400];

                (void)snprintf(answer, sizeof(answer),
                               ERROR_ANSWER("null", "-32700", "%s")
                                       DATA("parse-error", "protocol", "null", "null") "}}}\n",
                               cases[i].message);
                check(cases[i].line, answer);
        }
}

static void test_json_that_is_no_request(void **state) {
        static const struct {
                const char *line, *answer;
        } cases[] = {
                { "[]\n",
                  ERROR_ANSWER("null", "-32600", "a request must be an object, not an array")
                          DATA("invalid-request", "protocol", "null",
                               "\"Send one request per line. Batches are not supported.\"") },
                { "1\n",
                  ERROR_ANSWER("null", "-32600", "a request must be an object, not a number") },
                { "{}\n", ERROR_ANSWER("null", "-32600", "jsonrpc must be \\\"2.0\\\"") },
                { "{\"id\":\"a\"}\n",
                  ERROR_ANSWER("\"a\"", "-32600", "jsonrpc must be \\\"2.0\\\"") },
                { "{\"jsonrpc\":2.0,\"id\":3}\n",
                  ERROR_ANSWER("3", "-32600", "jsonrpc must be \\\"2.0\\\"") },
                { "{\"jsonrpc\":\"2.0\"}\n",
                  ERROR_ANSWER("null", "-32600", "method must be a string") },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":1}\n",
                  ERROR_ANSWER("1", "-32600", "method must be a string") },
                { "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"toy.echo\"}\n",
                  ERROR_ANSWER("null", "-32600", "id must be a string, an integer or null") },
                { "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"toy.echo\"}\n",
                  ERROR_ANSWER("null", "-32600", "id must be a string, an integer or null") },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"toy.echo\",\"parms\":{}}\n",
                  ERROR_ANSWER("1", "-32600", "a request has no field \\\"parms\\\"")
                          DATA("invalid-request", "protocol", "null",
                               "\"Did you mean \\\"params\\\"?\"") },
                { "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"method\":\"\"}\n",
                  ERROR_ANSWER("1", "-32600", "a request has no field \\\"result\\\"")
                          DATA("invalid-request", "protocol", "null",
                               "\"Its fields are jsonrpc, id, method and params.\"") },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                check_start(cases[i].line, cases[i].answer);
        assert_int_equal(toy.executed, 0);
}

static void test_unknown_methods(void **state) {
        (void)state;
        check(REQUEST("toy.ehco", "{}"),
              ERROR_ANSWER("1", "-32601", "no method is called \\\"toy.ehco\\\"")
                      DATA("unknown-method", "usage", "null",
                           "\"Did you mean \\\"toy.echo\\\"?\"") "}}}\n");
        check(REQUEST("Zzz\\u0007", "{}"),
              ERROR_ANSWER("1", "-32601", "no method is called \\\"Zzz\\\\x07\\\"")
                      DATA("unknown-method", "usage", "null", "null") "}}}\n");
        check_start(REQUEST("", "{}"), ERROR_ANSWER("1", "-32601", "no method is called \\\"\\\""));
}

static const struct {
        const char *line, *answer;
} wrong_parameters[] = {
        { REQUEST("toy.echo", "{}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: text is missing")
                  DATA("invalid-params", "usage", "null",
                       "\"text is a string of at most 2000 bytes, required: what to "
                       "say\"") ",\"path\":\"$.params.text\"}}}\n" },
        { REQUEST("toy.echo", "{\"text\":1}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: text must be a string, not a number") },
        { REQUEST("toy.echo", "{\"text\":null}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: text must be a string, not null") },
        { REQUEST("toy.echo", "{\"text\":\"\",\"loud\":1}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: loud must be true or false, not a number")
                  DATA("invalid-params", "usage", "null",
                       "\"loud is true or false: whether to "
                       "shout\"") ",\"path\":\"$.params.loud\"}}}\n" },
        { REQUEST("toy.echo", "{\"text\":\"\",\"times\":\"1\"}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: times must be an integer, not a string")
                  DATA("invalid-params", "usage", "null",
                       "\"times is an integer from 0 to 100: how often\"") },
        { REQUEST("toy.echo", "{\"text\":\"\",\"times\":101}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: times must be an integer from 0 to 100") },
        { REQUEST("toy.echo", "{\"text\":\"\",\"times\":-1}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: times must be an integer from 0 to 100") },
        { REQUEST("toy.echo", "{\"text\":\"\",\"times\":0.5}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: times must be an integer from 0 to 100") },
        { REQUEST("toy.big", "{\"size\":0}"),
          ERROR_ANSWER("1", "-32602", "toy.big: size must be an integer from 1 to 4194304")
                  DATA("invalid-params", "usage", "null",
                       "\"size is an integer from 1 to 4194304, required: of the answer, in "
                       "bytes\"") },
        { REQUEST("toy.echo", "{\"text\":\"\",\"tims\":1}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: no parameter is called \\\"tims\\\"")
                  DATA("invalid-params", "usage", "null",
                       "\"Did you mean \\\"times\\\"?\"") ",\"path\":\"$.params.tims\"}}}\n" },
        { REQUEST("toy.echo", "{\"a b\":1}"),
          ERROR_ANSWER("1", "-32602", "toy.echo: no parameter is called \\\"a b\\\"")
                  DATA("invalid-params", "usage", "null",
                       "\"The parameters are text, loud, times\"") ",\"path\":"
                                                                   "\"$.params[\\\"a "
                                                                   "b\\\"]\"}}}\n" },
        { REQUEST("toy.keep", "{\"a\":1}"),
          ERROR_ANSWER("1", "-32602", "toy.keep: no parameter is called \\\"a\\\"")
                  DATA("invalid-params", "usage", "null", "\"The method has no parameters.\"") },
        { REQUEST("toy.echo", "[1]"),
          ERROR_ANSWER("1", "-32602",
                       "toy.echo: params must be an object with named parameters, not an "
                       "array")
                  DATA("invalid-params", "usage", "null", "null") ",\"path\":\"$.params\"}}}\n" },
        { REQUEST("toy.list", "{\"items\":{}}"),
          ERROR_ANSWER("1", "-32602",
                       "toy.list: items must be an array of strings, not an object") },
        { REQUEST("toy.list", "{\"items\":[\"\",[]]}"),
          ERROR_ANSWER("1", "-32602", "toy.list: items must have only strings in it, not an array")
                  DATA("invalid-params", "usage", "null",
                       "\"items is an array of strings, at most 3: some "
                       "strings\"") ",\"path\":\"$.params.items[1]\"}}}\n" },
        { REQUEST("toy.list", "{\"items\":[\"\",\"\",\"\",\"\"]}"),
          ERROR_ANSWER("1", "-32602", "toy.list: items is too large") },
        { REQUEST("toy.list", "{\"env\":[]}"),
          ERROR_ANSWER("1", "-32602", "toy.list: env must be an object of strings, not an array") },
        { REQUEST("toy.list", "{\"env\":{\"A\":1}}"),
          ERROR_ANSWER("1", "-32602", "toy.list: env must have only strings in it, not a number")
                  DATA("invalid-params", "usage", "null",
                       "\"env is an object of strings, at most 2: some "
                       "variables\"") ",\"path\":\"$.params.env.A\"}}}\n" },
        { REQUEST("toy.list", "{\"env\":{\"A\":\"\",\"B\":\"\",\"C\":\"\"}}"),
          ERROR_ANSWER("1", "-32602", "toy.list: env is too large") },
        { REQUEST("toy.list", "{\"env\":{\"A=B\":\"\"}}"),
          ERROR_ANSWER("1", "-32602",
                       "toy.list: each name in env must have 1 to 1024 bytes and no \\\"=\\\"") },
        { REQUEST("toy.list", "{\"env\":{\"\":\"\"}}"),
          ERROR_ANSWER("1", "-32602",
                       "toy.list: each name in env must have 1 to 1024 bytes and no \\\"=\\\"") },
};

static void test_wrong_parameters(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(wrong_parameters); i++)
                check_start(wrong_parameters[i].line, wrong_parameters[i].answer);
        assert_int_equal(toy.executed, 0);
}

static void test_a_string_of_its_largest_size(void **state) {
        for (int size = 2000; size <= 2001; size++) {
                char text[2100], line[2300];

                (void)state;
                memset(text, 'x', sizeof(text));
                text[size] = '\0';
                (void)snprintf(line, sizeof(line), REQUEST("toy.echo", "{\"text\":\"%s\"}"), text);
                check_start(line, size == 2000 ? "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{"
                                               : ERROR_ANSWER("1", "-32602",
                                                              "toy.echo: text is too large"));
        }
}

static void test_each_error_has_its_code(void **state) {
        /* Clients rely on these numbers, so they never change. */
        static const int codes[ERROR_KIND_MAX] = {
                [ERROR_SETUP] = -32000,          [ERROR_USAGE] = -32001,
                [ERROR_POLICY] = -32002,         [ERROR_LAYER] = -32003,
                [ERROR_NOT_EXECUTABLE] = -32004, [ERROR_NOT_FOUND] = -32005,
                [ERROR_MISSING] = -32006,        [ERROR_EXISTS] = -32007,
                [ERROR_BUSY] = -32008,           [ERROR_LIMIT] = -32009,
                [ERROR_DATA] = -32010,           [ERROR_PROTOCOL] = -32011,
                [ERROR_NO_KEY] = -32012,         [ERROR_NO_PROCESS] = -32013,
        };

        (void)state;
        for (ErrorKind kind = 0; kind < ERROR_KIND_MAX; kind++) {
                bool layer = kind == ERROR_LAYER;
                char line[200], answer[300];

                (void)snprintf(line, sizeof(line), REQUEST("toy.fail", "{\"kind\":\"%s\"}"),
                               error_kind_name(kind));
                (void)snprintf(answer, sizeof(answer),
                               ERROR_ANSWER("1", "%d", "%s") DATA("%s", "%s", "%s", "%s") "%s}}}\n",
                               codes[kind], layer ? "refused" : "it failed", error_kind_name(kind),
                               error_kind_name(kind), layer ? "\"EPERM\"" : "null",
                               layer ? "null" : "\"Try again.\\nOr not.\"",
                               layer ? ",\"layer\":\"user\"" : "");
                check(line, answer);
        }
        check_start(REQUEST("toy.fail", "{\"kind\":\"missing\",\"errno\":true}"),
                    ERROR_ANSWER("1", "-32006", "it failed")
                            DATA("missing", "missing", "\"ENOENT\"", "\"Try again.\\nOr not.\""));
}

/* --- the history's text --- */

static void test_long_strings_are_cut_for_the_history(void **state) {
        static char text[1500], line[3000];
        int fd = toy_connect();
        const char *heard;

        (void)state;
        for (size_t i = 0; i < 1400; i += 2)
                (void)strcpy(text + i, "\xc3\xa9"); /* ends at no multiple of 3 */
        (void)snprintf(line, sizeof(line), REQUEST("toy.list", "{\"env\":{\"A\":\"b%s\"}}"), text);
        say(fd, line);
        heard = strstr(hear(fd), "\"text\":");
        assert_non_null(heard);
        assert_int_equal(strlen(heard),
                         strlen("\"text\":\"{\\\"env\\\":{\\\"A\\\":\\\"b\\\"}}\"}}\n") + 1022);
        (void)close(fd);
}

/* Returns the history's text of a request for toy.note. Owned by the caller. */
static JsonDocument *noted(const char *line, size_t *ret_length) {
        JsonDocument *answer = NULL, *text = NULL;
        int fd = toy_connect();
        const char *heard, *inner;

        say_slowly(fd, line, strlen(line));
        heard = hear(fd);
        assert_int_equal(json_parse(heard, strlen(heard), "answer", &answer, NULL), 0);
        inner = json_string(json_member(json_member(json_root(answer), "result"), "text"));
        *ret_length = strlen(inner);
        assert_int_equal(json_parse(inner, *ret_length, "text", &text, NULL), 0);
        (void)json_free(answer);
        (void)close(fd);
        return text;
}

typedef struct Items {
        const JsonValue *first, *last;
        size_t count;
} Items;

static Items items_of(const JsonDocument *text, const char *name) {
        const JsonValue *list = json_member(json_root(text), name);
        Items items = { .first = json_first(list) };

        for (const JsonValue *i = items.first; i; i = json_next(i)) {
                items.last = i;
                items.count++;
        }
        return items;
}

static void test_the_history_has_the_first_of_many_items(void **state) {
        char *line = NULL;
        JsonDocument *text;
        size_t size, length;
        FILE *out = open_memstream(&line, &size);
        Items items;

        (void)state;
        (void)fputs("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"toy.note\",\"params\":{\"argv\":[",
                    out);
        for (int i = 0; i < 5000; i++)
                (void)fprintf(out, "%s\"name-%06d\"", i ? "," : "", i);
        (void)fputs("],\"env\":{\"A\":\"0\",\"...\":\"mine\"", out);
        for (int i = 0; i < 5000; i++)
                (void)fprintf(out, ",\"NAME_%06d\":\"%d\"", i, i);
        (void)fputs("},\"more\":[\"one\",\"two\"],\"text\":\"last\",\"schema\":{\"a\":[1]}}}\n",
                    out);
        assert_int_equal(fclose(out), 0);
        text = noted(line, &length);
        assert_in_range(length, 16 << 10, 32 << 10);
        items = items_of(text, "argv");
        assert_in_range(items.count, 500, 4999);
        assert_string_equal(json_string(items.first), "name-000000");
        assert_string_equal(json_string(items.last), "...");
        items = items_of(text, "env");
        assert_in_range(items.count, 200, 4999);
        assert_string_equal(json_key(items.last), "");
        assert_string_equal(json_string(items.last), "...");
        assert_string_equal(json_string(items_of(text, "more").last), "two");
        assert_string_equal(json_string(json_member(json_root(text), "text")), "last");
        assert_non_null(json_member(json_member(json_root(text), "schema"), "a"));
        (void)json_free(text);
        free(line);
}

/* JSON writes each byte of these characters as six bytes. */
static void test_the_history_s_text_is_never_longer_than_said(void **state) {
        char *line = NULL, worst[6 * 1024 + 1];
        JsonDocument *text;
        size_t size, length;
        FILE *out = open_memstream(&line, &size);

        (void)state;
        for (size_t i = 0; i < 1024; i++)
                (void)strcpy(worst + 6 * i, "\\u0001");
        (void)fputs(
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"toy.note\",\"params\":{\"argv\":[\"a\"",
                out);
        for (int i = 0; i < 50; i++)
                (void)fprintf(out, ",\"%s\"", worst);
        (void)fputs("],\"env\":{\"A\":\"0\"", out);
        for (int i = 0; i < 9; i++)
                (void)fprintf(out, ",\"%d%s\":\"%s\"", i, worst + 6, worst);
        (void)fprintf(out, "},\"more\":[\"a\",\"%s\"],\"schema\":{\"a\":\"", worst);
        for (int i = 0; i < 9; i++)
                (void)fputs(worst, out);
        (void)fprintf(out, "\"},\"text\":\"%s\"}}\n", worst);
        assert_int_equal(fclose(out), 0);
        text = noted(line, &length);
        assert_in_range(length, 32 << 10, 48 << 10);
        assert_string_equal(json_string(items_of(text, "argv").first), "a");
        assert_string_equal(json_string(items_of(text, "env").first), "0");
        assert_string_equal(json_string(json_member(json_root(text), "schema")), "...");
        assert_non_null(json_member(json_root(text), "text"));
        (void)json_free(text);
        free(line);
}

/* --- callbacks --- */

static char answers[200];

static void note_answer(RpcCall *call, const Error *error, void *data) {
        size_t used = strlen(answers);

        assert_ptr_equal(data, &toy);
        assert_true(rpc_call_started_ms(call) > UINT64_C(1600000000000));
        (void)snprintf(answers + used, sizeof(answers) - used, "%s:%s ",
                       rpc_call_method(call)->name, error ? error_errno_name(error->errnum) : "ok");
}

/* Calls that reach a function are reported, including notifications. Refused calls are not. */
static void test_answers_are_told(void **state) {
        int fd = toy_connect();

        (void)state;
        answers[0] = '\0';
        rpc_server_on_answer(toy.server, note_answer);
        say(fd,
            REQUEST("toy.echo", "{\"text\":\"a\"}") NOTIFICATION("toy.echo", "{\"text\":\"a\"}"));
        say(fd, REQUEST("toy.fail", "{\"kind\":\"usage\",\"errno\":true}"));
        say(fd, REQUEST("toy.echo", "{}") REQUEST("toy.none", "{}") KEEP KEEP);
        (void)drain(fd);
        toy_answer(0);
        disconnect(fd);
        assert_string_equal(answers, "toy.echo:ok toy.echo:ok toy.fail:ENOENT toy.keep:ok "
                                     "toy.keep:ECANCELED ");
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, toy_setup, toy_teardown)
                TEST(answers),
                TEST(ids_come_back),
                TEST(bytes_may_come_one_by_one),
                TEST(many_requests_in_one_packet),
                TEST(notifications_are_not_answered),
                TEST(lines_that_are_no_json),
                TEST(json_that_is_no_request),
                TEST(unknown_methods),
                TEST(wrong_parameters),
                TEST(a_string_of_its_largest_size),
                TEST(each_error_has_its_code),
                TEST(long_strings_are_cut_for_the_history),
                TEST(the_history_has_the_first_of_many_items),
                TEST(the_history_s_text_is_never_longer_than_said),
                TEST(answers_are_told),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
