/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/load.c: documents. */
#include "policy-fixture.h"

#include "policy/load.h"

static void test_load_takes(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        Error error = { 0 };

        (void)state;
        if (load(&policy,
                 "{\"limits\":{\"pids\":12,\"memory\":1048576,\"file_size\":\"2MiB\","
                 "\"open_files\":\"none\"},\"holt\":1,\"description\":\"x\",\"$schema\":\"y\","
                 "\"filesystem\":{\"workspace\":{\"mode\":\"ro\"},\"allow_wide\":true,"
                 "\"read_only\":[\"/a\",\"/b:/c\"]},\"env\":{\"set\":{\"A\":\"1\",\"B\":\"\"},"
                 "\"pass\":[\"C\"]},\"extends\":\"ci\"}",
                 ORIGIN_CALLER, &error) != 0)
                fail_msg("%s", error.text);
        assert_string_equal(policy.preset, "ci");
        assert_value(&policy, "limits.pids", "12");
        assert_value(&policy, "limits.memory", "1MiB");
        assert_value(&policy, "limits.file_size", "2MiB");
        assert_value(&policy, "limits.open_files", "none");
        assert_value(&policy, "limits.timeout", "1h");
        assert_value(&policy, "filesystem.workspace.mode", "ro");
        assert_value(&policy, "filesystem.allow_wide", "true");
        assert_value(&policy, "filesystem.read_only", "/a /b:/c");
        assert_value(&policy, "env.set", "CI=true A=1 B=");
}

static const struct {
        const char *text, *message, *cure;
} refused[] = {
        { "[]", "t.json: $: expected an object, not an array", "" },
        { "{}", "t.json: $.holt: the version of the document is missing", "Write \"holt\": 1." },
        { "{\"holt\":2}", "t.json: $.holt: holt does not support this version of policy documents",
          "Write \"holt\": 1." },
        { "{\"holt\":\"1\"}",
          "t.json: $.holt: holt does not support this version of policy documents",
          "Write \"holt\": 1." },
        { "{\"Holt\":1}", "t.json: $.holt: the version of the document is missing",
          "Write \"holt\": 1." },
        { "{\"holt\":1,\"extends\":\"mine\"}", "t.json: $.extends: no preset is called \"mine\"",
          "\"extends\" takes the name of a preset (strict, standard, permissive, ci), or the path "
          "of a policy file, such as \"./base.json\"." },
        { "{\"holt\":1,\"extends\":\"./x.json\"}",
          "t.json: $.extends: only a policy file can extend a file",
          "Extend a preset, or use a policy file." },
        { "{\"holt\":1,\"extends\":5}",
          "t.json: $.extends: expected the name of a preset or a file, not a number", "" },
        { "{\"holt\":1,\"description\":5}",
          "t.json: $.description: expected a string, not a number", "" },
        { "{\"holt\":1,\"limit\":{}}", "t.json: $.limit: unknown field; did you mean \"limits\"?",
          "Allowed in $: holt, extends, ..." },
        { "{\"holt\":1,\"limits\":{\"timout\":\"1s\"}}",
          "t.json: $.limits.timout: unknown field; did you mean \"timeout\"?",
          "Allowed in $.limits: timeout, ..." },
        { "{\"holt\":1,\"limits\":{\"Timeout\":\"1s\"}}",
          "t.json: $.limits.Timeout: unknown field; did you mean \"timeout\"?",
          "Allowed in $.limits: timeout, ..." },
        { "{\"holt\":1,\"limits.timeout\":\"1s\"}", "t.json: $[\"limits.timeout\"]: unknown field",
          "Allowed in $: holt, extends, ..." },
        { "{\"holt\":1,\"\":1}", "t.json: $[\"\"]: unknown field",
          "Allowed in $: holt, extends, ..." },
        { "{\"holt\":1,\"filesystem\":{\"workspace\":{\"holt\":1}}}",
          "t.json: $.filesystem.workspace.holt: unknown field",
          "Allowed in $.filesystem.workspace: source, target, mode." },
        { "{\"holt\":1,\"env\":{\"set\":{\"A\":1}}}",
          "t.json: $.env.set.A: expected a string, not a number", "" },
        { "{\"holt\":1,\"env\":{\"set\":{\"A=B\":\"1\"}}}",
          "t.json: $.env.set[\"A=B\"]: a name that contains \"=\"", "" },
        { "{\"holt\":1,\"env\":{\"set\":[\"A=1\"]}}",
          "t.json: $.env.set: expected an object of strings, not an array", "" },
        { "{\"holt\":1,\"limits\":5}", "t.json: $.limits: expected an object, not a number", "" },
        { "{\"holt\":1,\"limits\":{\"pids\":\"5\"}}",
          "t.json: $.limits.pids: expected a number or \"none\", not a string", "" },
        { "{\"holt\":1,\"limits\":{\"pids\":1.5}}",
          "t.json: $.limits.pids: a number that is not whole; write 1 to 4194304, or \"none\" for "
          "no limit",
          "" },
        { "{\"holt\":1,\"limits\":{\"pids\":-1}}",
          "t.json: $.limits.pids: a number that is out of range; write 1 to 4194304, or \"none\" "
          "for no limit",
          "" },
        { "{\"holt\":1,\"limits\":{\"pids\":null}}",
          "t.json: $.limits.pids: expected a number or \"none\", not null", "" },
        { "{\"holt\":1,\"limits\":{\"timeout\":30}}",
          "t.json: $.limits.timeout: expected a time like \"10m\" or \"90s\", or \"none\", not a "
          "number",
          "" },
        { "{\"holt\":1,\"limits\":{\"memory\":[]}}",
          "t.json: $.limits.memory: expected a size like \"512MiB\" or a number of bytes, not an "
          "array",
          "" },
        { "{\"holt\":1,\"filesystem\":{\"hide\":\"a\"}}",
          "t.json: $.filesystem.hide: expected an array of strings, not a string", "" },
        { "{\"holt\":1,\"filesystem\":{\"hide\":[\"a\",{}]}}",
          "t.json: $.filesystem.hide[1]: expected a string, not an object", "" },
        { "{\"holt\":1,\"filesystem\":{\"hide\":[\"a\",\"\"]}}",
          "t.json: $.filesystem.hide[1]: \"\" is empty", "" },
        { "{\"holt\":1,\"filesystem\":{\"allow_wide\":\"true\"}}",
          "t.json: $.filesystem.allow_wide: expected true or false, not a string", "" },
        { "{\"holt\":1,\"network\":{\"mode\":\"nat\"}}",
          "t.json: $.network.mode: \"nat\" is not known; write \"none\", \"allow\" or \"host\"",
          "" },
        { "{\"holt\":1,\"network\":{\"allow\":[\"a.example\",\"*:443\"]}}",
          "t.json: $.network.allow[1]: \"*:443\" allows every name",
          "Name the domain: *.example.org. For a network without rules, use --network host" },
        { "{\"holt\":1,\"network\":{\"allow\":[\"localhost:5432\"]}}",
          "t.json: $.network.allow[0]: \"localhost:5432\" names the sandbox's own loopback",
          "To reach a port of the host's loopback, import it: --import PORT" },
};

/* Whether text is as expected; "..." at the end stands for anything. A list of all fields grows
 * with each of them. */
static void assert_cure(const char *text, const char *expected) {
        const size_t length = strlen(expected);

        if (length > 3 && streq(expected + length - 3, "..."))
                assert_memory_equal(text, expected, length - 3);
        else
                assert_string_equal(text, expected);
}

static void test_load_refuses(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                Error error = { 0 };

                assert_true(load(&policy, refused[i].text, ORIGIN_CALLER, &error) < 0);
                assert_string_equal(error.text, refused[i].message);
                assert_cure(error.cure, refused[i].cure);
                assert_int_equal(error.kind, ERROR_POLICY);
        }
}

static void test_load_order(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        Error error = { 0 };

        (void)state;
        /* Without "extends" and an earlier policy, the default preset applies. */
        assert_int_equal(load(&policy, "{\"holt\":1}", ORIGIN_CALLER, &error), 0);
        assert_string_equal(policy.preset, POLICY_PRESET_DEFAULT);
        /* On top of that: scalars replace, lists add. */
        assert_int_equal(load(&policy,
                              "{\"holt\":1,\"limits\":{\"pids\":7},"
                              "\"filesystem\":{\"protect\":[\"mine\"]}}",
                              ORIGIN_CALLER, &error),
                         0);
        assert_value(&policy, "limits.pids", "7");
        assert_true(strlist_has(&policy.protect, ".git/hooks"));
        assert_true(strlist_has(&policy.protect, "mine"));
        /* A second preset would drop all these values. */
        assert_int_equal(load(&policy, "{\"holt\":1,\"extends\":\"ci\"}", ORIGIN_CALLER, &error),
                         -EEXIST);
}

static void test_load_project(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        Error error = { 0 };

        (void)state;
        preset(&policy, "ci");
        assert_int_equal(load(&policy,
                              "{\"holt\":1,\"limits\":{\"timeout\":\"5m\"},"
                              "\"filesystem\":{\"hide\":[\".env\"]}}",
                              ORIGIN_PROJECT, &error),
                         0);
        assert_value(&policy, "limits.timeout", "5m");
        assert_value(&policy, "filesystem.hide", ".env");
        assert_int_equal(load(&policy, "{\"holt\":1,\"limits\":{\"timeout\":\"2h\"}}",
                              ORIGIN_PROJECT, &error),
                         0);
        assert_value(&policy, "limits.timeout", "5m");
        assert_int_equal(load(&policy, "{\"holt\":1,\"env\":{\"pass\":[\"AWS_SECRET\"]}}",
                              ORIGIN_PROJECT, &error),
                         -EPERM);
        assert_string_equal(
                error.text,
                "t.json: $.env.pass[0]: env.pass must not be set in the project's own file");
        assert_int_equal(
                load(&policy, "{\"holt\":1,\"extends\":\"permissive\"}", ORIGIN_PROJECT, &error),
                -EPERM);
        assert_string_equal(policy.preset, "ci");
}

static void test_load_hostile(void **state) {
        size_t size = 10 << 20;
        _cleanup_free_ char *text = malloc(size);
        Policy policy = { 0 };
        Error error;

        (void)state;
        assert_non_null(text);
        memset(text, '[', size);
        assert_int_equal(policy_load(&policy, text, size, "t", ORIGIN_CALLER, &error), -EFBIG);
        assert_int_equal(policy_load(&policy, text, 1000, "t", ORIGIN_CALLER, &error), -EINVAL);
        memset(text, 'a', size);
        memcpy(text, "{\"holt\":1,\"", 11);
        memcpy(text + (1 << 20) - 4, "\":1}", 4);
        assert_int_equal(policy_load(&policy, text, 1 << 20, "t", ORIGIN_CALLER, &error), -EINVAL);
        assert_true(strlen(error.text) < sizeof(error.text));
        assert_non_null(strstr(error.text, "unknown field"));
        policy_clear(&policy);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_load_takes),   cmocka_unit_test(test_load_refuses),
                cmocka_unit_test(test_load_order),   cmocka_unit_test(test_load_project),
                cmocka_unit_test(test_load_hostile),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
