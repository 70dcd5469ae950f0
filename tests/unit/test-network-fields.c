/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the fields of the network: options, policy files, the project's file, and the plan. */
#include "policy-fixture.h"

#include "policy/plan.h"

/* Applies options such as "--net a.example" in pairs, up to NULL. */
static int options(Policy *policy, const char *const *words, Error *reterr) {
        int r = 0;

        for (; r == 0 && words[0]; words += 2)
                for (size_t i = 0; i < policy_fields_count; i++)
                        if (policy_fields[i].option && streq(policy_fields[i].option, words[0]))
                                r = policy_set_option(policy, &policy_fields[i], words[1], reterr);
        return r;
}

static void test_options_set_rules_and_mode(void **state) {
        static const struct {
                const char *words[7];
                const char *mode, *rules;
        } cases[] = {
                { { "--net", "a.example" }, "allow", "a.example" },
                { { "--net", "a.example,@python" }, "allow", "a.example @python" },
                { { "--net", "a.example", "--net", "b.example:1" },
                  "allow",
                  "a.example b.example:1" },
                { { "--net", "a.example:1#x, y" }, "allow", "a.example:1#x, y" },
                { { "--network", "allow" }, "allow", "-" },
                { { "--network", "allow", "--net", "a.example" }, "allow", "a.example" },
                { { "--net", "a.example", "--network", "allow" }, "allow", "a.example" },
                { { "--network", "host" }, "host", "-" },
                { { "--net", "host" }, "host", "-" },
                { { "--net", "none" }, "none", "-" },
                { { "--network", "none", "--network", "allow", "--net", "a.example" },
                  "allow",
                  "a.example" },
                { { "--net", "a.example,none" }, "allow", "-" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                Error error = { 0 };

                preset(&policy, "standard");
                if (options(&policy, cases[i].words, &error) < 0)
                        fail_msg("%s: %s", cases[i].words[1], error.text);
                assert_value(&policy, "network.mode", cases[i].mode);
                assert_value(&policy, "network.allow", cases[i].rules);
        }
}

static void test_options_that_contradict(void **state) {
        static const char *const cases[][5] = {
                { "--net", "a.example", "--network", "none" },
                { "--network", "none", "--net", "a.example" },
                { "--net", "a.example", "--network", "host" },
                { "--network", "host", "--net", "a.example" },
                { "--net", "a.example", "--net", "none" },
                { "--net", "host", "--net", "a.example" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                Error error = { 0 };

                preset(&policy, "standard");
                assert_true(options(&policy, cases[i], &error) < 0);
                assert_non_null(strstr(error.text, "contradict"));
                assert_int_equal(error.kind, ERROR_USAGE);
        }
}

/* A file without a mode means "allow" if it has rules. If a file has a mode, that mode counts,
 * wherever it is in the file. */
static void test_files_set_rules_and_mode(void **state) {
        static const struct {
                const char *network, *words[3], *mode, *rules;
        } cases[] = {
                { "{\"allow\":[\"a.example\"]}", { NULL }, "allow", "a.example" },
                { "{\"allow\":[\"a.example\"],\"mode\":\"none\"}", { NULL }, "none", "a.example" },
                { "{\"mode\":\"none\",\"allow\":[\"a.example\"]}", { NULL }, "none", "a.example" },
                { "{\"mode\":\"host\",\"allow\":[\"a.example\"]}", { NULL }, "host", "a.example" },
                { "{\"allow\":[]}", { NULL }, "none", "-" },
                { "{\"allow\":[\"a.example\"]}", { "--network", "none" }, "none", "a.example" },
                { "{\"allow\":[\"a.example\"]}",
                  { "--net", "b.example" },
                  "allow",
                  "a.example b.example" },
                { "{\"mode\":\"none\"}", { "--net", "b.example" }, "allow", "b.example" },
                { "{\"mode\":\"host\"}", { "--net", "b.example" }, "allow", "b.example" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                _cleanup_free_ char *text = str_format("{\"holt\":1,\"network\":%s}",
                                                       cases[i].network);
                Error error = { 0 };

                assert_int_equal(load(&policy, text, ORIGIN_CALLER, &error), 0);
                assert_int_equal(options(&policy, cases[i].words, &error), 0);
                assert_value(&policy, "network.mode", cases[i].mode);
                assert_value(&policy, "network.allow", cases[i].rules);
        }
}

static void test_the_project_narrows_rules(void **state) {
        static const struct {
                const char *words[5], *network, *mode, *rules;
        } cases[] = {
                { { "--net", "a.example,*.b.example:443" },
                  "{\"allow\":[\"a.example:80\",\"x.b.example\",\"c.example\"]}",
                  "allow",
                  "a.example:80 x.b.example:443" },
                { { "--net", "@python" },
                  "{\"mode\":\"allow\",\"allow\":[\"pypi.org # build\"]}",
                  "allow",
                  "pypi.org:443 # build" },
                { { "--net", "a.example" }, "{\"allow\":[\"b.example\"]}", "allow", "-" },
                { { "--net", "a.example" }, "{\"allow\":[\"none\"]}", "allow", "-" },
                { { "--net", "a.example" },
                  "{\"allow\":[\"a.example:80\",\"none\"]}",
                  "allow",
                  "-" },
                { { "--net", "a.example:1" },
                  "{\"allow\":[\"none\",\"a.example:*\"]}",
                  "allow",
                  "a.example:1" },
                { { "--net", "a.example" }, "{\"mode\":\"none\"}", "none", "a.example" },
                { { "--net", "a.example" }, "{}", "allow", "a.example" },
                { { NULL }, "{\"allow\":[\"a.example\"]}", "none", "-" },
                { { "--network", "allow" }, "{\"allow\":[\"a.example\"]}", "allow", "-" },
                { { "--network", "host" }, "{\"allow\":[\"a.example\"]}", "allow", "a.example" },
                { { "--network", "host" },
                  "{\"mode\":\"allow\",\"allow\":[\"a.example\",\"b.example\"]}",
                  "allow",
                  "a.example b.example" },
                { { "--network", "host" },
                  "{\"allow\":[\"a.example\"],\"mode\":\"none\"}",
                  "none",
                  "a.example" },
                { { "--network", "host" }, "{\"mode\":\"allow\"}", "allow", "-" },
                { { "--net", "0.0.0.0/0:80" },
                  "{\"allow\":[\"169.254.169.254:80\",\"8.8.8.8:80\"]}",
                  "allow",
                  "8.8.8.8:80" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                _cleanup_free_ char *text = str_format("{\"holt\":1,\"network\":%s}",
                                                       cases[i].network);
                Error error = { 0 };

                preset(&policy, "standard");
                assert_int_equal(options(&policy, cases[i].words, &error), 0);
                if (load(&policy, text, ORIGIN_PROJECT, &error) < 0)
                        fail_msg("%s: %s", text, error.text);
                assert_value(&policy, "network.mode", cases[i].mode);
                assert_value(&policy, "network.allow", cases[i].rules);
        }
}

static void test_the_rules_of_the_project_are_kept(void **state) {
        static const struct {
                const char *network;
                size_t count;
                const char *first;
        } cases[] = {
                { "{\"allow\":[\"b.example\",\"a.example:80\"]}", 2, "b.example" },
                { "{\"allow\":[\"b.example\",\"none\"]}", 0, NULL },
                { "{\"allow\":[\"none\",\"b.example\"]}", 1, "b.example" },
        };
        static const char *const words[] = { "--net", "a.example", NULL };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                _cleanup_free_ char *text = str_format("{\"holt\":1,\"network\":%s}",
                                                       cases[i].network);
                Error error = { 0 };

                preset(&policy, "standard");
                assert_int_equal(options(&policy, words, &error), 0);
                assert_false(policy.net_narrowed);
                assert_int_equal(load(&policy, text, ORIGIN_PROJECT, &error), 0);
                assert_true(policy.net_narrowed);
                assert_int_equal(policy.net_project.count, cases[i].count);
                if (cases[i].first)
                        assert_string_equal(policy.net_project.items[0], cases[i].first);
        }
}

static void test_the_project_cannot_widen(void **state) {
        static const char *const cases[] = {
                "{\"mode\":\"host\"}",      "{\"allow\":[\"b.example\"],\"mode\":\"host\"}",
                "{\"sni\":\"optional\"}",   "{\"publish\":[\"80:80\"]}",
                "{\"publish\":[\"none\"]}", "{\"import\":[\"80\"]}",
        };
        static const char *const words[] = { "--net", "a.example", "--sni", "required", NULL };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                _cleanup_free_ char *text = str_format("{\"holt\":1,\"network\":%s}", cases[i]);
                Error error = { 0 };

                preset(&policy, "standard");
                assert_int_equal(options(&policy, words, &error), 0);
                if (load(&policy, text, ORIGIN_PROJECT, &error) != -EPERM)
                        fail_msg("%s", text);
                assert_int_equal(policy.network, NETWORK_ALLOW);
        }
}

/* A file in the workspace must not keep holt busy with rules that have no effect. */
static void test_the_project_has_a_limit_of_rules(void **state) {
        static const char *const words[] = { "--net", "a.example", NULL };
        _cleanup_(policy_clear) Policy policy = { 0 };
        Error error = { 0 };
        int r = 0;

        (void)state;
        preset(&policy, "standard");
        assert_int_equal(options(&policy, words, NULL), 0);
        for (size_t i = 0; i < POLICY_LIST_MAX; i++)
                assert_int_equal(policy_set(&policy, "network.allow", "b.example", ORIGIN_PROJECT,
                                            "t", &error),
                                 0);
        r = policy_set(&policy, "network.allow", "b.example", ORIGIN_PROJECT, "t", &error);
        assert_int_equal(r, -E2BIG);
        assert_non_null(strstr(error.text, "more than 1024 items"));
}

static void test_rules_have_an_origin(void **state) {
        static const char *const words[] = { "--net", "a.example", NULL };
        _cleanup_(policy_clear) Policy policy = { 0 };

        (void)state;
        preset(&policy, "standard");
        assert_int_equal(options(&policy, words, NULL), 0);
        assert_string_equal(policy_note(&policy, "network.mode", NULL)->where, "--net");
        assert_int_equal(load(&policy, "{\"holt\":1,\"network\":{\"allow\":[\"a.example:80\"]}}",
                              ORIGIN_PROJECT, NULL),
                         0);
        assert_string_equal(policy_note(&policy, "network.allow", "a.example:80")->where,
                            "t.json: $.network.allow[0]");
}

static void plan_of(const Policy *policy, LaunchPlan *ret) {
        static const char *const command[] = { "true", NULL }, *const env[] = { NULL };
        const PlanContext context = { .cwd = "/home/u/project", .argv = command, .env = env };
        Error error = { 0 };

        if (plan_make(policy, &context, ret, &error) < 0)
                fail_msg("%s", error.text);
}

static void test_the_plan_has_the_network(void **state) {
        static const char *const words[] = { "--net",    "a.example,@go", "--sni",
                                             "required", "--publish",     "0:3000",
                                             "--import", "5432",          NULL };
        _cleanup_(policy_clear) Policy policy = { 0 };
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };

        (void)state;
        preset(&policy, "standard");
        assert_int_equal(options(&policy, words, NULL), 0);
        plan_of(&policy, &plan);
        assert_int_equal(plan.network, NETWORK_ALLOW);
        assert_int_equal(plan.net_sni, SNI_REQUIRED);
        assert_int_equal(plan.net_allow.count, 2);
        assert_string_equal(plan.net_allow.items[1], "@go");
        assert_string_equal(plan.net_publish.items[0], "0:3000");
        assert_string_equal(plan.net_import.items[0], "5432");
        assert_false(strlist_has(&plan.env, "PIP_RETRIES=0"));
}

/* Rules of a file are no permission if the mode is another one. */
static void test_the_plan_without_a_network(void **state) {
        static const char *const modes[] = { "none", "host" };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(modes); i++) {
                const char *const words[] = { "--network", modes[i], NULL };
                _cleanup_(policy_clear) Policy policy = { 0 };
                _cleanup_(plan_clear) LaunchPlan plan = { 0 };

                assert_int_equal(load(&policy,
                                      "{\"holt\":1,\"network\":{\"allow\":[\"a.example\"]}}",
                                      ORIGIN_CALLER, NULL),
                                 0);
                assert_int_equal(options(&policy, words, NULL), 0);
                plan_of(&policy, &plan);
                assert_int_equal(plan.net_allow.count, 0);
                assert_int_equal(strlist_has(&plan.env, "PIP_RETRIES=0"), i == 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_options_set_rules_and_mode),
                cmocka_unit_test(test_options_that_contradict),
                cmocka_unit_test(test_files_set_rules_and_mode),
                cmocka_unit_test(test_the_project_narrows_rules),
                cmocka_unit_test(test_the_rules_of_the_project_are_kept),
                cmocka_unit_test(test_the_project_cannot_widen),
                cmocka_unit_test(test_the_project_has_a_limit_of_rules),
                cmocka_unit_test(test_rules_have_an_origin),
                cmocka_unit_test(test_the_plan_has_the_network),
                cmocka_unit_test(test_the_plan_without_a_network),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
