/* SPDX-License-Identifier: Apache-2.0 */
/* policy/load.c: documents. */
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
        { "[]", "t.json: $: an array, where an object should be", "" },
        { "{}", "t.json: $.holt: the document's version is missing", "Write \"holt\": 1." },
        { "{\"holt\":2}", "t.json: $.holt: not a version of policy documents that this holt reads",
          "Write \"holt\": 1." },
        { "{\"holt\":\"1\"}",
          "t.json: $.holt: not a version of policy documents that this holt reads",
          "Write \"holt\": 1." },
        { "{\"Holt\":1}", "t.json: $.holt: the document's version is missing",
          "Write \"holt\": 1." },
        { "{\"holt\":1,\"extends\":\"mine\"}", "t.json: $.extends: there is no preset \"mine\"",
          "\"extends\" takes the name of a preset, and no file: strict, standard, permissive, ci. "
          "Files are put together by more than one --policy." },
        { "{\"holt\":1,\"extends\":5}",
          "t.json: $.extends: a number, where the name of a preset should be", "" },
        { "{\"holt\":1,\"description\":5}",
          "t.json: $.description: a number, where a string should be", "" },
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
          "t.json: $.env.set.A: a number, where a string should be", "" },
        { "{\"holt\":1,\"env\":{\"set\":{\"A=B\":\"1\"}}}",
          "t.json: $.env.set[\"A=B\"]: a name with \"=\" in it", "" },
        { "{\"holt\":1,\"env\":{\"set\":[\"A=1\"]}}",
          "t.json: $.env.set: an array, where an object of strings should be", "" },
        { "{\"holt\":1,\"limits\":5}", "t.json: $.limits: a number, where an object should be",
          "" },
        { "{\"holt\":1,\"limits\":{\"pids\":\"5\"}}",
          "t.json: $.limits.pids: a string, where a number or \"none\" should be", "" },
        { "{\"holt\":1,\"limits\":{\"pids\":1.5}}",
          "t.json: $.limits.pids: a number that is not whole; write 1 to 4194304, or \"none\" for "
          "no limit",
          "" },
        { "{\"holt\":1,\"limits\":{\"pids\":-1}}",
          "t.json: $.limits.pids: a number that is out of range; write 1 to 4194304, or \"none\" "
          "for no limit",
          "" },
        { "{\"holt\":1,\"limits\":{\"pids\":null}}",
          "t.json: $.limits.pids: null, where a number or \"none\" should be", "" },
        { "{\"holt\":1,\"limits\":{\"timeout\":30}}",
          "t.json: $.limits.timeout: a number, where a time like \"10m\" or \"90s\", or "
          "\"none\", should be",
          "" },
        { "{\"holt\":1,\"limits\":{\"memory\":[]}}",
          "t.json: $.limits.memory: an array, where a size like \"512MiB\" or a number of bytes "
          "should be",
          "" },
        { "{\"holt\":1,\"filesystem\":{\"hide\":\"a\"}}",
          "t.json: $.filesystem.hide: a string, where an array of strings should be", "" },
        { "{\"holt\":1,\"filesystem\":{\"hide\":[\"a\",{}]}}",
          "t.json: $.filesystem.hide[1]: an object, where a string should be", "" },
        { "{\"holt\":1,\"filesystem\":{\"hide\":[\"a\",\"\"]}}",
          "t.json: $.filesystem.hide[1]: \"\" is empty", "" },
        { "{\"holt\":1,\"filesystem\":{\"allow_wide\":\"true\"}}",
          "t.json: $.filesystem.allow_wide: a string, where true or false should be", "" },
        { "{\"holt\":1,\"network\":{\"mode\":\"allow\"}}",
          "t.json: $.network.mode: \"allow\" is not there: this version has no network yet but a "
          "loopback of the sandbox's own; write \"none\"",
          "" },
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
        /* Without "extends" and with nothing before: the default preset. */
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
        /* A second preset would drop all that. */
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
        assert_string_equal(error.text, "t.json: $.env.pass[0]: env.pass is not for the project's "
                                        "own file to set");
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
