/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/routes/: routes as objects, and the known providers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/strings.h"
#include "policy/routes/route.h"

/* The route of most tests, with more members. */
#define ROUTE(more) "{\"name\":\"a\",\"upstream\":\"https://a.example\"" more "}"

static int check(const char *text, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;

        if (json_parse(text, strlen(text), "t", &document, reterr) < 0)
                fail_msg("%s: %s", text, reterr->text);
        return route_check(json_root(document), "t: $.r", reterr);
}

/* Returns the route in the form for holt-gateway. Owned by the caller. */
static char *written(const char *text) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        JsonWriter w = { 0 };
        Error error = { 0 };

        assert_int_equal(json_parse(text, strlen(text), "t", &document, &error), 0);
        if (route_write(json_root(document), "t: $.r", &w, &error) < 0)
                fail_msg("%s: %s", text, error.text);
        assert_int_equal(json_write_finish(&w), 0);
        w.data[w.length - 1] = '\0';
        return w.data;
}

/* --- what holt-gateway reads --- */

#define HEAD "{\"name\":\"a\",\"upstream\":\"https://a.example\",\"inject\":["
#define ALLOW "],\"allow\":[{\"path\":\"/*\"}"
#define LIMITS                                                                                     \
        "],\"body\":67108864,\"timeout_ms\":600000,\"requests\":0,\"per_ms\":0,\"bytes\":0,"       \
        "\"concurrent\":16}"

static void test_a_route_is_normalised(void **state) {
        static const struct {
                const char *route, *text;
        } cases[] = {
                { ROUTE(""), HEAD ALLOW LIMITS },
                { ROUTE(",\"description\":\"d\",\"env\":{\"A\":\"{url}/{token}{address}\"}"),
                  HEAD ALLOW LIMITS },
                { ROUTE(",\"header\":{\"Authorization\":\"Bearer {env:A_1}!\"}"),
                  HEAD "{\"in\":\"header\",\"name\":\"authorization\",\"prefix\":\"Bearer \","
                       "\"suffix\":\"!\",\"env\":\"A_1\"}" ALLOW LIMITS },
                { ROUTE(",\"query\":{\"Key\":\"{file:~/key}\"},\"header\":{\"x\":\"{ }\"}"),
                  HEAD "{\"in\":\"header\",\"name\":\"x\",\"prefix\":\"{ }\",\"suffix\":\"\"},"
                       "{\"in\":\"query\",\"name\":\"Key\",\"prefix\":\"\",\"suffix\":\"\","
                       "\"file\":\"~/key\"}" ALLOW LIMITS },
                { ROUTE(",\"header\":{\"x\":{\"command\":[\"pass\",\"a b\"],\"prefix\":\"B \"}}"),
                  HEAD "{\"in\":\"header\",\"name\":\"x\",\"prefix\":\"B \",\"suffix\":\"\","
                       "\"command\":[\"pass\",\"a b\"]}" ALLOW LIMITS },
                { ROUTE(",\"header\":{\"x\":{\"env\":\"E\",\"basic\":\"me\"}}"),
                  HEAD "{\"in\":\"header\",\"name\":\"x\",\"prefix\":\"\",\"suffix\":\"\","
                       "\"user\":\"me\",\"env\":\"E\"}" ALLOW LIMITS },
                /* Constants of an API, which are no credentials. */
                { ROUTE(",\"header\":{\"x-version\":\"1\",\"x-atlassian-token\":\"no-check\"},"
                        "\"query\":{\"monkey\":\"1\"}"),
                  HEAD
                  "{\"in\":\"header\",\"name\":\"x-version\",\"prefix\":\"1\",\"suffix\":\"\"},"
                  "{\"in\":\"header\",\"name\":\"x-atlassian-token\","
                  "\"prefix\":\"no-check\",\"suffix\":\"\"},{\"in\":\"query\",\"name\":\"monkey\","
                  "\"prefix\":\"1\",\"suffix\":\"\"}" ALLOW LIMITS },
                { ROUTE(",\"files\":{\"/etc/a/b.c_D-1\":\"{url}\\n{ }\"}"), HEAD ALLOW LIMITS },
                { ROUTE(",\"header\":{\"x\":{\"file\":\"/a}b\"},\"y\":{\"env\":\"E\"}}"),
                  HEAD "{\"in\":\"header\",\"name\":\"x\",\"prefix\":\"\",\"suffix\":\"\","
                       "\"file\":\"/a}b\"},{\"in\":\"header\",\"name\":\"y\",\"prefix\":\"\","
                       "\"suffix\":\"\",\"env\":\"E\"}" ALLOW LIMITS },
                { ROUTE(",\"pass\":[\"A_ID\"]"), HEAD ALLOW
                  "],\"body\":67108864,\"timeout_ms\":600000,\"requests\":0,\"per_ms\":0,"
                  "\"bytes\":0,\"concurrent\":16,\"pass\":[\"A_ID\"]}" },
                { ROUTE(",\"terminate_tls\":[\"A.Example.\"]"), HEAD ALLOW
                  "],\"body\":67108864,\"timeout_ms\":600000,\"requests\":0,\"per_ms\":0,"
                  "\"bytes\":0,\"concurrent\":16,\"terminate_tls\":[\"a.example\"]}" },
                { ROUTE(",\"allow\":[\"POST /v1/*\",\"/x\"]"),
                  HEAD "],\"allow\":[{\"method\":\"POST\",\"path\":\"/v1/*\"},"
                       "{\"path\":\"/x\"}" LIMITS },
                { ROUTE(",\"body\":\"32MiB\",\"timeout\":\"90s\",\"requests\":\"60/1m\","
                        "\"bytes\":1000,\"concurrent\":64"),
                  HEAD ALLOW "],\"body\":33554432,\"timeout_ms\":90000,\"requests\":60,"
                             "\"per_ms\":60000,\"bytes\":1000,\"concurrent\":64}" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = written(cases[i].route);
                Error error = { 0 };

                assert_string_equal(text, cases[i].text);
                assert_int_equal(check(cases[i].route, &error), 0);
        }
}

static void test_an_upstream_has_its_usual_form(void **state) {
        static const struct {
                const char *url, *normal;
        } cases[] = {
                { "https://A.Example", "https://a.example" },
                { "https://a.example./", "https://a.example" },
                { "http://a.example:8080", "http://a.example:8080" },
                { "http://localhost:11434/", "http://localhost:11434" },
                { "https://a.example/v1/b//", "https://a.example/v1/b" },
                { "https://a.example:443/.b/c..d/...", "https://a.example:443/.b/c..d/..." },
                { "https://a.example/u@v:1", "https://a.example/u@v:1" },
                { "http://127.0.0.1:80/a", "http://127.0.0.1:80/a" },
                { "http://[2001:DB8::1]", "http://[2001:db8::1]" },
                { "http://[::1]:8/x", "http://[::1]:8/x" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *route = str_format("{\"name\":\"a\",\"upstream\":\"%s\"}",
                                                        cases[i].url);
                _cleanup_free_ char *text = written(route);
                _cleanup_free_ char *part = str_format("\"upstream\":\"%s\",", cases[i].normal);

                if (!strstr(text, part))
                        fail_msg("%s: %s", cases[i].url, text);
        }
}

/* --- mistakes --- */

#define UPSTREAM(url) "{\"name\":\"a\",\"upstream\":\"" url "\"}"
#define LIKE "; write it like https://api.example.com"

static const struct {
        const char *route, *message;
} refused[] = {
        { "[]", "t: $.r: expected an object, not an array" },
        { "{}", "t: $.r.name: the name of the route is missing" },
        { "{\"name\":1}", "t: $.r.name: expected a string, not a number" },
        { "{\"name\":\"A\"}", "t: $.r.name: a name has up to 32 lower-case" },
        { "{\"name\":\"\"}", "t: $.r.name: a name has" },
        { "{\"name\":\"1a\"}", "t: $.r.name: a name has" },
        { "{\"name\":\"a_b\"}", "t: $.r.name: a name has" },
        { "{\"name\":\"abcdefghijklmnopqrstuvwxyz0123456\"}", "t: $.r.name: a name has" },
        { "{\"name\":\"a\"}", "t: $.r.upstream: the URL is missing" LIKE },
        { "{\"name\":\"a\",\"upstream\":[]}", "t: $.r.upstream: expected a string, not an array" },
        { UPSTREAM("a.example"), "t: $.r.upstream: the URL must begin with https:// or http://" },
        { UPSTREAM("ftp://a.example"), "t: $.r.upstream: the URL must begin" },
        { UPSTREAM("HTTPS://a.example"), "t: $.r.upstream: the URL must begin" },
        { UPSTREAM("https://"), "t: $.r.upstream: the URL has no valid host" },
        { UPSTREAM("https:///a"), "t: $.r.upstream: the URL has no valid host" },
        { UPSTREAM("https://a..example"), "t: $.r.upstream: the URL has no valid host" },
        { UPSTREAM("https://a b"), "t: $.r.upstream: the URL has no valid host" },
        { UPSTREAM("https://a\\nb"), "t: $.r.upstream: the URL has no valid host" },
        { UPSTREAM("https://[::1"), "t: $.r.upstream: the URL has no valid host" },
        { UPSTREAM("https://[a.example]"), "t: $.r.upstream: the URL has no valid host" },
        { UPSTREAM("https://[::1]x"), "t: $.r.upstream: the URL has no valid host" },
        { UPSTREAM("https://127.1"), "t: $.r.upstream: the URL has an address in an unusual" },
        { UPSTREAM("https://a.0x7f"), "t: $.r.upstream: the URL has an address in an unusual" },
        { UPSTREAM("https://u:p@a.example"), "t: $.r.upstream: the URL must not contain a user" },
        { UPSTREAM("https://u@a.example"), "t: $.r.upstream: the URL must not contain a user" },
        { UPSTREAM("https://a.example:"), "t: $.r.upstream: the URL has no valid port" },
        { UPSTREAM("https://a.example:0"), "t: $.r.upstream: the URL has no valid port" },
        { UPSTREAM("https://a.example:65536"), "t: $.r.upstream: the URL has no valid port" },
        { UPSTREAM("https://a.example?k=v"), "t: $.r.upstream: the URL must not have a query" },
        { UPSTREAM("https://a.example:1#f"), "t: $.r.upstream: the URL must not have a query" },
        { UPSTREAM("https://a.example/a b"), "t: $.r.upstream: the URL has a character" },
        { UPSTREAM("https://a.example/\\u007f"), "t: $.r.upstream: the URL has a character" },
        { UPSTREAM("https://a.example/a\\\\b"), "t: $.r.upstream: the URL has a character" },
        { UPSTREAM("https://a.example/.."), "t: $.r.upstream: the URL must not have \".\"" },
        { UPSTREAM("https://a.example/a/./b"), "t: $.r.upstream: the URL must not have \".\"" },
        { ROUTE(",\"header\":[]"), "t: $.r.header: expected an object, not an array" },
        { ROUTE(",\"header\":{\"x\":1}"), "t: $.r.header.x: expected a string or an object" },
        { ROUTE(",\"header\":{\"\":\"\"}"), "t: $.r.header[\"\"]: is not a valid name of a" },
        { ROUTE(",\"header\":{\"a b\":\"\"}"), "t: $.r.header[\"a b\"]: is not a valid name" },
        { ROUTE(",\"header\":{\"a:\":\"\"}"), "t: $.r.header[\"a:\"]: is not a valid name" },
        { ROUTE(",\"header\":{\"Host\":\"b\"}"), "t: $.r.header.Host: holt sets this header" },
        { ROUTE(",\"header\":{\"te\":\"b\"}"), "t: $.r.header.te: holt sets this header" },
        { ROUTE(",\"header\":{\"Proxy-X\":\"b\"}"), "t: $.r.header.Proxy-X: holt sets this" },
        { ROUTE(",\"header\":{\"x\":\"\",\"X\":\"\"}"), "t: $.r.header.X: this header is given" },
        { ROUTE(",\"header\":{\"x\":\"a\\r\\nb\"}"), "t: $.r.header.x: contains a control" },
        { ROUTE(",\"header\":{\"x\":\"{env:A}\\n\"}"), "t: $.r.header.x: contains a control" },
        { ROUTE(",\"header\":{\"x\":\"{token}\"}"), "t: $.r.header.x: a \"{\" before a letter" },
        { ROUTE(",\"header\":{\"x\":\"{env:A\"}"), "t: $.r.header.x: a \"{\" before a letter" },
        { ROUTE(",\"header\":{\"x\":\"{Env:A}\"}"), "t: $.r.header.x: a \"{\" before a letter" },
        { ROUTE(",\"header\":{\"x\":\"{env:A}{env:B}\"}"), "t: $.r.header.x: a value has at most" },
        { ROUTE(",\"header\":{\"x\":\"{env:1}\"}"), "t: $.r.header.x: env is not a valid" },
        { ROUTE(",\"header\":{\"x\":\"{env:}\"}"), "t: $.r.header.x: env is not a valid" },
        { ROUTE(",\"header\":{\"x\":\"{file:a}\"}"), "t: $.r.header.x: file is not a path" },
        { ROUTE(",\"header\":{\"x\":{}}"), "t: $.r.header.x: an object needs one of" },
        { ROUTE(",\"header\":{\"x\":{\"prefix\":\"a\"}}"), "t: $.r.header.x: an object needs" },
        { ROUTE(",\"header\":{\"x\":{\"env\":\"A\",\"file\":\"/a\"}}"),
          "t: $.r.header.x: an object needs one of" },
        { ROUTE(",\"header\":{\"x\":{\"key\":\"A\"}}"), "t: $.r.header.x.key: unknown member" },
        { ROUTE(",\"header\":{\"x\":{\"env\":1}}"), "t: $.r.header.x.env: expected a string" },
        { ROUTE(",\"header\":{\"x\":{\"env\":\"A=\"}}"), "t: $.r.header.x.env: env is not" },
        { ROUTE(",\"header\":{\"x\":{\"file\":\"~a\"}}"), "t: $.r.header.x.file: file is not" },
        { ROUTE(",\"header\":{\"x\":{\"file\":\"/a\\n\"}}"), "t: $.r.header.x.file: file is" },
        { ROUTE(",\"header\":{\"x\":{\"env\":\"A\",\"prefix\":\"\\u0001\"}}"),
          "t: $.r.header.x.prefix: contains a control character" },
        { ROUTE(",\"header\":{\"x\":{\"env\":\"A\",\"prefix\":1}}"),
          "t: $.r.header.x.prefix: expected a string" },
        { ROUTE(",\"header\":{\"x\":{\"command\":\"a\"}}"),
          "t: $.r.header.x.command: expected an array, not a string" },
        { ROUTE(",\"header\":{\"x\":{\"command\":[]}}"), "t: $.r.header.x.command: the program" },
        { ROUTE(",\"header\":{\"x\":{\"command\":[\"\"]}}"),
          "t: $.r.header.x.command: the program is missing" },
        { ROUTE(",\"header\":{\"x\":{\"command\":[1]}}"),
          "t: $.r.header.x.command[0]: expected a string, not a number" },
        { ROUTE(",\"header\":{\"x\":{\"command\":[\"a/b\"]}}"),
          "t: $.r.header.x.command: the program has a relative path" },
        { ROUTE(",\"header\":{\"Authorization\":\"Bearer sk-1\"}"),
          "t: $.r.header.Authorization: is a credential in plain text" },
        { ROUTE(",\"header\":{\"x-goog-api-key\":\"sk-1\"}"),
          "t: $.r.header.x-goog-api-key: is a credential in plain text" },
        { ROUTE(",\"header\":{\"X_API_KEY\":\"sk-1\"}"),
          "t: $.r.header.X_API_KEY: is a credential in plain text" },
        { ROUTE(",\"header\":{\"x\":\"Basic YTpi\"}"),
          "t: $.r.header.x: is a credential in plain text" },
        { ROUTE(",\"header\":{\"authorization\":\"$KEY\"}"),
          "t: $.r.header.authorization: holt does not expand variables" },
        { ROUTE(",\"query\":{\"key\":\"sk-1\"}"), "t: $.r.query.key: is a credential" },
        { ROUTE(",\"query\":{\"access_token\":\"sk-1\"}"), "t: $.r.query.access_token: is a " },
        { ROUTE(",\"query\":{\"a=b\":\"\"}"), "t: $.r.query[\"a=b\"]: the name of a parameter" },
        { ROUTE(",\"query\":{\"a\":null}"), "t: $.r.query.a: expected a string or an object" },
        { ROUTE(",\"query\":\"a\""), "t: $.r.query: expected an object, not a string" },
        { ROUTE(",\"env\":[]"), "t: $.r.env: expected an object, not an array" },
        { ROUTE(",\"env\":{\"A-B\":\"\"}"), "t: $.r.env.A-B: is not a valid variable" },
        { ROUTE(",\"env\":{\"A\":1}"), "t: $.r.env.A: expected a string, not a number" },
        { ROUTE(",\"env\":{\"A\":\"{urls}\"}"),
          "t: $.r.env.A: a \"{\" before a letter begins a placeholder, and this one is unknown; "
          "write {url}, {token} or {address}" },
        { ROUTE(",\"env\":{\"A\":\"{url\"}"), "t: $.r.env.A: a \"{\" before a letter" },
        { ROUTE(",\"env\":{\"A\":\"a\\nb\"}"), "t: $.r.env.A: contains a control character" },
        { ROUTE(",\"allow\":{}"), "t: $.r.allow: expected an array, not an object" },
        { ROUTE(",\"allow\":[]"), "t: $.r.allow: allows nothing" },
        { ROUTE(",\"allow\":[1]"), "t: $.r.allow[0]: expected a string, not a number" },
        { ROUTE(",\"allow\":[\"/\",\"get /\"]"), "t: $.r.allow[1]: has no method in capital" },
        { ROUTE(",\"allow\":[\" /\"]"), "t: $.r.allow[0]: has no method in capital letters" },
        { ROUTE(",\"allow\":[\"GET  /\"]"), "t: $.r.allow[0]: has no path" },
        { ROUTE(",\"allow\":[\"GET a\"]"), "t: $.r.allow[0]: has no path" },
        { ROUTE(",\"allow\":[\"GET\"]"), "t: $.r.allow[0]: has no path" },
        { ROUTE(",\"allow\":[\"/a?b\"]"), "t: $.r.allow[0]: has no path" },
        { ROUTE(",\"allow\":[\"/\\u00e9\"]"), "t: $.r.allow[0]: has no path" },
        { ROUTE(",\"body\":\"much\""), "t: $.r.body: is not a size of at least one byte" },
        { ROUTE(",\"body\":0"), "t: $.r.body: is not a size" },
        { ROUTE(",\"body\":true"), "t: $.r.body: expected a size like \"32MiB\" or a number" },
        { ROUTE(",\"bytes\":-1"), "t: $.r.bytes: is not a size" },
        { ROUTE(",\"bytes\":\"1.5.5\""), "t: $.r.bytes: is not a size" },
        { ROUTE(",\"timeout\":10"), "t: $.r.timeout: expected a time like" },
        { ROUTE(",\"timeout\":\"soon\""), "t: $.r.timeout: is not a time of at least 1ms" },
        { ROUTE(",\"timeout\":\"999us\""), "t: $.r.timeout: is not a time of at least 1ms" },
        { ROUTE(",\"requests\":60"), "t: $.r.requests: expected a text like \"60/1m\"" },
        { ROUTE(",\"requests\":\"60\""), "t: $.r.requests: is not a number of requests" },
        { ROUTE(",\"requests\":\"0/1m\""), "t: $.r.requests: is not a number of requests" },
        { ROUTE(",\"requests\":\"-1/1m\""), "t: $.r.requests: is not a number of requests" },
        { ROUTE(",\"requests\":\"1/\""), "t: $.r.requests: is not a number of requests" },
        { ROUTE(",\"requests\":\"1/0s\""), "t: $.r.requests: is not a number of requests" },
        { ROUTE(",\"concurrent\":\"1\""), "t: $.r.concurrent: expected a number, not a string" },
        { ROUTE(",\"concurrent\":0"), "t: $.r.concurrent: is not a whole number from 1 to 64" },
        { ROUTE(",\"concurrent\":65"), "t: $.r.concurrent: is not a whole number from 1 to 64" },
        { ROUTE(",\"concurrent\":1.5"), "t: $.r.concurrent: is not a whole number" },
        { ROUTE(",\"description\":{}"), "t: $.r.description: expected a string, not an object" },
        { ROUTE(",\"description\":\"\\u001b\""), "t: $.r.description: contains a control" },
        { ROUTE(",\"headers\":{}"), "t: $.r.headers: unknown member; did you mean \"header\"?" },
};

static void test_mistakes_are_refused(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                Error error = { 0 };

                if (check(refused[i].route, &error) != -EINVAL ||
                    !str_starts(error.text, refused[i].message))
                        fail_msg("%s: %s", refused[i].route, error.text);
                assert_int_equal(error.kind, ERROR_POLICY);
        }
}

static const struct {
        const char *name, *value;
        bool secret;
} literals[] = {
        { "x-acme", "sk-live-0123456789abcdef", true },
        { "x-acme", "sk-proj-Ab_c-0123456789", true },
        { "x-acme", "token=ghp_0123456789abcdefghij", true },
        { "x-acme", "AKIAIOSFODNN7EXAMPLE", true },
        { "x-acme", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", true },
        { "x-client-id", "xoxb-123456789012-abc", true },
        { "x-acme", "0123456789abcdef0123456789abcdef", true },
        { "x-acme", "Zm9vYmFyMTIzNDU2Nzg5MA/aGVsbG8gd29ybGQ=", true },
        { "x-acme-key", "9f8e7d6c5b4a", true },
        { "x-acme-token", "550e8400-e29b-41d4-a716-4466554a0b0c", true },
        { "appid", "0123456789abcdef0123456789abcdef", true },
        { "x-acme", "sk-live-0123456789abcdef {env:A}", true },
        { "x-acme", "{env:A} sk-live-0123456789abcdef", true },

        { "anthropic-version", "2023-06-01", false },
        { "anthropic-beta", "max-tokens-3-5-sonnet-2024-07-15,computer-use-2025-01-24", false },
        { "accept", "application/vnd.github.v3+json", false },
        { "x-github-api-version", "2022-11-28", false },
        { "user-agent", "Mozilla/5.0 (X11) AppleWebKit/537.36 build0123456789abcdef01", false },
        { "openai-organization", "org-AbCdEf0123456789AbCdEf01", false },
        { "openai-project", "proj_AbCdEf0123456789AbCdEf01", false },
        { "x-tenant-id", "0123456789abcdef0123456789abcdef", false },
        { "x-tenant", "550e8400-e29b-41d4-a716-446655440000", false },
        { "x-atlassian-token", "no-check", false },
        { "x-acme-key", "production", false },
        { "x-acme", "internationalization-and-more", false },
        { "x-acme", "01234567890123456789012345", false },
        { "x-acme", "aaaaaaaaaaaaaaaaaaaaaaaaa1", false },
        { "x-acme", "sk-learn-is-no-credential", false },
        { "x-acme", "risk-0123456789abcdef", false },
        { "x-acme", "{file:/0123456789abcdef0123456789abcdef}", false },
};

static void test_values_that_look_like_a_credential_are_refused(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(literals); i++) {
                _cleanup_free_ char *route = str_format(ROUTE(",\"header\":{\"%s\":\"%s\"}"),
                                                        literals[i].name, literals[i].value);
                Error error = { 0 };

                if ((check(route, &error) < 0) != literals[i].secret)
                        fail_msg("%s: %s: %s", literals[i].name, literals[i].value, error.text);
                if (literals[i].secret)
                        assert_non_null(strstr(error.text, "looks like a credential in plain"));
        }
}

static void test_texts_beside_a_source_are_judged(void **state) {
        static const char *const routes[] = {
                ROUTE(",\"header\":{\"x\":{\"env\":\"A\",\"prefix\":\"sk_live_0123456789ab\"}}"),
                ROUTE(",\"header\":{\"x\":{\"env\":\"A\",\"basic\":\"sk_live_0123456789ab\"}}"),
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(routes); i++) {
                Error error = { 0 };

                assert_int_equal(check(routes[i], &error), -EINVAL);
                assert_non_null(strstr(error.text, "looks like a credential in plain text"));
        }
}

static void test_an_unknown_member_has_a_hint(void **state) {
        Error error = { 0 };

        (void)state;
        assert_int_equal(check(ROUTE(",\"x\":1"), &error), -EINVAL);
        assert_string_equal(error.cure,
                            "Allowed in a route: name, description, upstream, header, query, "
                            "allow, body, timeout, requests, bytes, concurrent, terminate_tls, "
                            "env, pass, files.");
}

static void test_errors_contain_no_secret(void **state) {
        static const char *const routes[] = {
                ROUTE(",\"header\":{\"x\":\"hunter2 {token}\"}"),
                ROUTE(",\"header\":{\"x\":\"hunter2\\n\"}"),
                ROUTE(",\"query\":{\"x\":{\"env\":\"hunter2 \"}}"),
                UPSTREAM("https://hunter2@a.example"),
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(routes); i++) {
                Error error = { 0 };

                assert_int_equal(check(routes[i], &error), -EINVAL);
                assert_null(strstr(error.text, "hunter2"));
                assert_null(strstr(error.cure, "hunter2"));
        }
}

static void test_too_many_items_are_refused(void **state) {
        char text[2000] = "{\"name\":\"a\",\"upstream\":\"https://a.example\",\"allow\":[\"/\"";
        Error error = { 0 };

        (void)state;
        for (size_t i = 1; i < ROUTE_ITEMS_MAX; i++)
                strcat(text, ",\"/\"");
        strcat(text, "]}");
        assert_int_equal(check(text, &error), 0);
        text[strlen(text) - 2] = '\0';
        strcat(text, ",\"/\"]}");
        assert_int_equal(check(text, &error), -EINVAL);
        assert_string_equal(error.text, "t: $.r.allow: has more than 64 items");
}

/* --- names and templates --- */

static void test_names(void **state) {
        char name[ROUTE_NAME_MAX + 1];

        (void)state;
        assert_int_equal(route_text_name("openai", name), 0);
        assert_string_equal(name, "openai");
        assert_int_equal(route_text_name(ROUTE(""), name), 0);
        assert_string_equal(name, "a");
        assert_int_equal(route_text_name("{", name), -EINVAL);
        assert_int_equal(route_text_name("{\"name\":\"A\"}", name), -EINVAL);
}

static void test_templates(void **state) {
        static const RouteWords words = { .url = "U", .token = "T", .address = "A" };
        static const struct {
                const char *text, *expanded;
        } cases[] = {
                { "", "" },
                { "x", "x" },
                { "{url}/v1", "U/v1" },
                { "{token}{token}", "TT" },
                { "a{address}b{url}", "aAbU" },
                { "{\"u\":\"{url}\"}{", "{\"u\":\"U\"}{" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = route_expand(cases[i].text, &words);

                assert_string_equal(text, cases[i].expanded);
        }
}

/* --- providers --- */

static void test_providers(void **state) {
        const char *why;

        (void)state;
        assert_true(route_providers_count >= 5);
        for (size_t i = 0; i < route_providers_count; i++) {
                _cleanup_free_ char *text = written(route_providers[i].json);
                char name[ROUTE_NAME_MAX + 1];

                assert_ptr_equal(route_provider(route_providers[i].name), &route_providers[i]);
                assert_int_equal(route_text_name(route_providers[i].json, name), 0);
                assert_string_equal(name, route_providers[i].name);
                assert_non_null(strstr(text, "{\"in\":\"header\",\"name\":\""));
        }
        assert_null(route_provider("nosuch"));
        assert_int_equal(route_refuse_name("opnai", &why), -EINVAL);
        assert_string_equal(why, "is not a known route; did you mean openai?");
        assert_int_equal(route_refuse_name("xxxxxxxxx", &why), -EINVAL);
        assert_non_null(strstr(why, "; the known routes are openai, anthropic, "));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_route_is_normalised),
                cmocka_unit_test(test_an_upstream_has_its_usual_form),
                cmocka_unit_test(test_mistakes_are_refused),
                cmocka_unit_test(test_values_that_look_like_a_credential_are_refused),
                cmocka_unit_test(test_texts_beside_a_source_are_judged),
                cmocka_unit_test(test_an_unknown_member_has_a_hint),
                cmocka_unit_test(test_errors_contain_no_secret),
                cmocka_unit_test(test_too_many_items_are_refused),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_templates),
                cmocka_unit_test(test_providers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
