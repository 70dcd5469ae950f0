/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/plan-routes.c, and bridge.routes in policies. */
#include "policy-fixture.h"

#include "policy/plan-routes.h"
#include "policy/routes/route.h"

static const char *const command[] = { "true", NULL };
static const char *const caller_env[] = { "OPENAI_API_KEY=real", NULL };

typedef struct Case {
        Policy policy;
        LaunchPlan plan;
        Error error;
} Case;

static void case_start(Case *c, const char *document) {
        *c = (Case){ 0 };
        if (load(&c->policy, document, ORIGIN_CALLER, &c->error) < 0)
                fail_msg("%s", c->error.text);
}

static int case_plan(Case *c) {
        const PlanContext context = { .cwd = "/home/u/p", .argv = command, .env = caller_env };

        if (plan_make(&c->policy, &context, &c->plan, &c->error) < 0)
                fail_msg("%s", c->error.text);
        return routes_plan(&c->policy, "t0ken", &c->plan, &c->error);
}

static void case_end(Case *c) {
        plan_clear(&c->plan);
        policy_clear(&c->policy);
}

static void assert_env(const Case *c, const char *name, const char *value) {
        const size_t length = strlen(name);
        const char *found = NULL;

        for (size_t i = 0; i < c->plan.env.count; i++) {
                const char *item = c->plan.env.items[i];

                if (strncmp(item, name, length) != 0 || item[length] != '=')
                        continue;
                assert_null(found);
                found = item + length + 1;
        }
        if (!value || !found)
                assert_ptr_equal(found, value);
        else
                assert_string_equal(found, value);
}

#define DOCUMENT(routes, more) "{\"holt\":1,\"bridge\":{\"routes\":[" routes "]}" more "}"
#define ACME(env) "{\"name\":\"acme\",\"upstream\":\"http://a.example\",\"env\":{" env "}}"

static void test_no_routes_change_nothing(void **state) {
        Case c;

        (void)state;
        case_start(&c, "{\"holt\":1,\"network\":{\"mode\":\"host\"}}");
        assert_int_equal(case_plan(&c), 0);
        assert_int_equal(c.plan.routes.count, 0);
        case_end(&c);
}

static void test_routes_and_variables(void **state) {
        Case c;

        (void)state;
        case_start(&c,
                   DOCUMENT("\"openai\"," ACME("\"A\":\"{url}\",\"B\":\"{address} {token}\""), ""));
        assert_int_equal(case_plan(&c), 0);
        assert_int_equal(c.plan.routes.count, 2);
        assert_string_equal(
                c.plan.routes.items[0],
                "{\"name\":\"openai\",\"upstream\":\"https://api.openai.com\",\"inject\":["
                "{\"in\":\"header\",\"name\":\"authorization\",\"prefix\":\"Bearer \","
                "\"suffix\":\"\",\"env\":\"OPENAI_API_KEY\"}],\"allow\":[{\"path\":\"/*\"}],"
                "\"body\":67108864,\"timeout_ms\":600000,\"requests\":0,\"per_ms\":0,"
                "\"bytes\":0,\"concurrent\":16}");
        assert_true(str_starts(c.plan.routes.items[1], "{\"name\":\"acme\","));
        assert_env(&c, "OPENAI_BASE_URL", "http://127.0.0.1:8474/openai/v1");
        assert_env(&c, "OPENAI_API_KEY", "t0ken");
        assert_env(&c, "A", "http://127.0.0.1:8474/acme");
        assert_env(&c, "B", "127.0.0.1:8474 t0ken");
        case_end(&c);
}

/* A caller who passes the key and adds a route wants the token: the key is what must stay outside.
 */
static void test_variables_of_the_policy(void **state) {
        Case c;

        (void)state;
        case_start(&c, DOCUMENT("\"openai\"", ",\"env\":{\"pass\":[\"OPENAI_API_KEY\"],"
                                              "\"set\":{\"OPENAI_BASE_URL\":\"mine\"}}"));
        assert_int_equal(case_plan(&c), 0);
        assert_env(&c, "OPENAI_API_KEY", "t0ken");
        assert_env(&c, "OPENAI_BASE_URL", "mine");
        case_end(&c);

        case_start(&c, DOCUMENT(ACME("\"A\":\"first\"") ",{\"name\":\"b\",\"upstream\":"
                                                        "\"http://b\",\"env\":{\"A\":\"{url}\"}}",
                                ""));
        assert_int_equal(case_plan(&c), 0);
        assert_env(&c, "A", "http://127.0.0.1:8474/b");
        case_end(&c);
}

static void test_the_hosts_network_is_refused(void **state) {
        Case c;

        (void)state;
        case_start(&c, DOCUMENT("\"openai\"", ",\"network\":{\"mode\":\"host\"}"));
        assert_int_equal(case_plan(&c), -EINVAL);
        assert_non_null(strstr(c.error.text, "a route needs a network of its own"));
        assert_string_equal(c.error.cure,
                            "Choose another network.mode, or leave --network host out.");
        case_end(&c);
}

/* Policies whose lists did not come from policy_set(). */
static void test_the_plan_checks_routes_again(void **state) {
        static const struct {
                const char *first, *second, *message;
        } cases[] = {
                { "openai", "openai", "bridge.routes[1]: route \"openai\" is given twice" },
                { "openai", "nosuch", "bridge.routes[1]: \"nosuch\" is not a known route" },
                { "{", "openai", "bridge.routes[0]:1:2: " },
                { "openai", "{\"name\":\"a\"}", "bridge.routes[1].upstream: the URL is missing" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Case c;

                case_start(&c, "{\"holt\":1}");
                assert_int_equal(strlist_add(&c.policy.routes, cases[i].first), 0);
                assert_int_equal(strlist_add(&c.policy.routes, cases[i].second), 0);
                assert_int_equal(case_plan(&c), -EINVAL);
                if (!str_starts(c.error.text, cases[i].message))
                        fail_msg("%s", c.error.text);
                case_end(&c);
        }
}

static void test_long_variables_are_refused(void **state) {
        static char text[48000] = "{\"holt\":1,\"bridge\":{\"routes\":[" ACME("\"A\":\"");
        Case c;

        (void)state;
        text[strlen(text) - 2] = '\0';
        for (size_t i = 0; i < 8000; i++)
                memcpy(text + strlen(text), "{url}", 6);
        strcat(text, "\"}}]}}");
        case_start(&c, text);
        assert_int_equal(case_plan(&c), -E2BIG);
        case_end(&c);
}

/* --- policies --- */

static const struct {
        const char *routes, *message;
} refused[] = {
        { "\"nosuch\"", "t.json: $.bridge.routes[0]: \"nosuch\" is not a known route" },
        { "\"opnai\"",
          "t.json: $.bridge.routes[0]: \"opnai\" is not a known route; did you mean openai?" },
        { "\"{}\"", "t.json: $.bridge.routes[0]: expected a name or an object, not a string" },
        { "5", "t.json: $.bridge.routes[0]: expected a name or an object, not a number" },
        { "\"\"", "t.json: $.bridge.routes[0]: \"\" is empty" },
        { "\"openai\",{\"name\":\"b\",\"upstream\":\"a\"}",
          "t.json: $.bridge.routes[1].upstream: the URL must begin" },
        { "\"openai\",{\"name\":\"openai\",\"upstream\":\"http://a\"}",
          "t.json: $.bridge.routes[1]: route \"openai\" is given twice" },
        { ACME("") "," ACME("\"A\":\"\""),
          "t.json: $.bridge.routes[1]: route \"acme\" is given twice" },
};

static void test_policies_are_checked(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                _cleanup_free_ char *text = str_format(DOCUMENT("%s", ""), refused[i].routes);
                _cleanup_(policy_clear) Policy policy = { 0 };
                Error error = { 0 };

                if (load(&policy, text, ORIGIN_CALLER, &error) != -EINVAL ||
                    !str_starts(error.text, refused[i].message))
                        fail_msg("%s: %s", text, error.text);
        }
}

static void test_there_are_at_most_32(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        Error error = { 0 };
        int r = 0;

        (void)state;
        for (int i = 0; r == 0 && i <= ROUTES_MAX; i++) {
                _cleanup_free_ char *text = str_format(
                        DOCUMENT("{\"name\":\"r%d\",\"upstream\":\"http://a\"}", ""), i);

                r = load(&policy, text, ORIGIN_CALLER, &error);
                assert_true(i == ROUTES_MAX ? r < 0 : r == 0);
        }
        assert_int_equal(r, -E2BIG);
        assert_string_equal(error.text, "t.json: $.bridge.routes[0]: more than 32 routes");
}

static void test_a_long_route_is_refused(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        static char text[ROUTE_TEXT_MAX + 200] = "{\"holt\":1,\"bridge\":{\"routes\":[" ACME(
                "\"A\":\"");
        Error error = { 0 };
        size_t length = strlen(text) - 2;

        (void)state;
        memset(text + length, 'x', ROUTE_TEXT_MAX);
        strcpy(text + length + ROUTE_TEXT_MAX, "\"}}]}}");
        assert_int_equal(load(&policy, text, ORIGIN_CALLER, &error), -EINVAL);
        assert_string_equal(error.text, "t.json: $.bridge.routes[0]: has more than 65536 bytes");
}

static void test_projects_get_no_routes(void **state) {
        static const char *const documents[] = { DOCUMENT("\"openai\"", ""),
                                                 DOCUMENT(ACME(""), "") };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(documents); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                Error error = { 0 };

                preset(&policy, "standard");
                assert_int_equal(load(&policy, documents[i], ORIGIN_PROJECT, &error), -EPERM);
                assert_string_equal(error.text, "t.json: $.bridge.routes[0]: bridge.routes must "
                                                "not be set in the project's own file");
                assert_int_equal(policy.routes.count, 0);
        }
}

static void test_the_option(void **state) {
        const PolicyField *field = policy_field_of_option("--route");
        _cleanup_(policy_clear) Policy policy = { 0 };
        Error error = { 0 };

        (void)state;
        assert_int_equal(policy_set_option(&policy, field, "openai", &error), 0);
        assert_int_equal(policy_set_option(&policy, field, "openai", &error), 0);
        assert_int_equal(policy_set_option(&policy, field, "github", &error), 0);
        assert_value(&policy, "bridge.routes", "openai github");
        assert_int_equal(policy_set_option(&policy, field, "nosuch", &error), -EINVAL);
        assert_int_equal(policy_set_option(&policy, field, "{}", &error), -EINVAL);
        assert_string_equal(error.text, "--route takes a name, and not an object");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_routes_change_nothing),
                cmocka_unit_test(test_routes_and_variables),
                cmocka_unit_test(test_variables_of_the_policy),
                cmocka_unit_test(test_the_hosts_network_is_refused),
                cmocka_unit_test(test_the_plan_checks_routes_again),
                cmocka_unit_test(test_long_variables_are_refused),
                cmocka_unit_test(test_policies_are_checked),
                cmocka_unit_test(test_there_are_at_most_32),
                cmocka_unit_test(test_a_long_route_is_refused),
                cmocka_unit_test(test_projects_get_no_routes),
                cmocka_unit_test(test_the_option),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
