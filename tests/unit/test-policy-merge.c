/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/: how one source changes the values of another, and presets. */
#include "policy-fixture.h"

enum { KEEPS = 1 };

/* Both sides of every rule: allowed values of a project's file, values without effect because the
 * caller's is lower, and refused ones. */
static const struct {
        const char *path, *caller, *project;
        int result;
} merges[] = {
        { "limits.timeout", "1h", "10m", 0 },
        { "limits.timeout", "1h", "1h", 0 },
        { "limits.timeout", "1h", "61m", KEEPS },
        { "limits.timeout", "1h", "none", KEEPS },
        { "limits.timeout", "none", "10m", 0 },
        { "limits.timeout", "none", "none", 0 },
        { "limits.kill_after", "2s", "0", 0 },
        { "limits.kill_after", "2s", "3s", KEEPS },
        { "limits.kill_after", "0", "1s", KEEPS },
        { "limits.memory", "1GiB", "1G", 0 },
        { "limits.memory", "1GiB", "2GiB", KEEPS },
        { "limits.memory", "none", "2GiB", 0 },
        { "limits.pids", "100", "50", 0 },
        { "limits.pids", "100", "101", KEEPS },
        { "limits.pids", "100", "none", KEEPS },
        { "limits.open_files", "100", "80", 0 },
        { "limits.open_files", "100", "101", KEEPS },
        { "limits.open_files", "none", "64", 0 },
        { "limits.file_size", "1MiB", "1KiB", 0 },
        { "limits.file_size", "1MiB", "none", KEEPS },
        { "limits.output", "1MiB", "1KiB", 0 },
        { "limits.output", "1MiB", "2MiB", KEEPS },
        { "limits.output", "1MiB", "none", KEEPS },
        { "limits.output", "none", "1MiB", 0 },
        { "filesystem.tmp_size", "1GiB", "1MiB", 0 },
        { "filesystem.tmp_size", "1GiB", "2GiB", KEEPS },
        { "filesystem.workspace.mode", "rw", "ro", 0 },
        { "filesystem.workspace.mode", "rw", "none", 0 },
        { "filesystem.workspace.mode", "ro", "ro", 0 },
        { "filesystem.workspace.mode", "ro", "rw", -EPERM },
        { "filesystem.workspace.mode", "none", "ro", -EPERM },
        { "network.mode", "none", "none", 0 },
        { "network.mode", "none", "allow", -EPERM },
        { "network.mode", "none", "host", -EPERM },
        { "network.mode", "allow", "none", 0 },
        { "network.mode", "allow", "allow", 0 },
        { "network.mode", "allow", "host", -EPERM },
        { "network.mode", "host", "allow", 0 },
        { "network.allow", "a.example:443", "a.example:443", KEEPS },
        { "network.allow", "a.example:443", "a.example:*", KEEPS },
        { "network.allow", "*.a.example:443", "b.a.example:443", 0 },
        { "network.allow", "a.example:443", "b.example:443", 0 },
        { "network.allow", "a.example:443", "none", 0 },
        { "network.sni", "optional", "required", 0 },
        { "network.sni", "required", "optional", -EPERM },
        { "network.proxy", "false", "true", -EPERM },
        { "network.ask", "false", "true", -EPERM },
        { "network.ask_timeout", "1m", "2m", -EPERM },
        { "network.upstream", "http://a:1", "http://b:1", -EPERM },
        { "network.publish", "8080:80", "8081:80", -EPERM },
        { "network.import", "80", "81", -EPERM },
        { "syscalls.preset", "default", "strict", 0 },
        { "syscalls.preset", "strict", "default", -EPERM },
        { "layers.landlock", "off", "auto", 0 },
        { "layers.landlock", "auto", "require", 0 },
        { "layers.landlock", "auto", "off", -EPERM },
        { "layers.landlock", "require", "auto", -EPERM },
        { "filesystem.hide", "a", "b", 0 },
        { "filesystem.protect", "a", "b", 0 },
        { "filesystem.protect", "a", "none", -EPERM },
        { "syscalls.deny", "ptrace", "mount", 0 },
        { "syscalls.allow", "ptrace", "mount", -EPERM },
        { "syscalls.allow", "ptrace", "ptrace", -EPERM },
        { "filesystem.workspace.source", "a", "b", -EPERM },
        { "env.git_identity", "false", "true", -EPERM },
        { "filesystem.workspace.target", "/a", "/b", -EPERM },
        { "filesystem.files.source", "a", "b", -EPERM },
        { "filesystem.rootfs", "/a", "/b", -EPERM },
        { "filesystem.read_only", "/a", "/b", -EPERM },
        { "python.program", "a", "b", -EPERM },
        { "python.wheels", "/a", "/b", -EPERM },
        { "python.index", "https://a/simple", "https://b/simple", -EPERM },
        { "python.install", "auto", "never", 0 },
        { "python.install", "ask", "auto", -EPERM },
        { "filesystem.read_write", "/a", "/b", -EPERM },
        { "filesystem.tmpfs", "/a", "/b", -EPERM },
        { "filesystem.etc", "a", "b", -EPERM },
        { "filesystem.etc", "all", "b", -EPERM },
        { "filesystem.allow_wide", "false", "true", -EPERM },
        { "env.set", "A=1", "B=1", -EPERM },
        { "env.pass", "A", "B", -EPERM },
        { "bridge.routes", "openai", "github", -EPERM },
        { "bridge.links", "false", "true", -EPERM },
        { "bridge.helpers", "/a.py", "/b.py", -EPERM },
};

static void test_every_field_has_its_merges(void **state) {
        (void)state;
        for (size_t i = 0; i < policy_fields_count; i++) {
                bool tested = false;

                for (size_t j = 0; j < ELEMENTSOF(merges); j++)
                        tested = tested || streq(merges[j].path, policy_fields[i].path);
                if (!tested)
                        fail_msg("no row for %s", policy_fields[i].path);
        }
}

static void test_project_may_only_narrow(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(merges); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                _cleanup_free_ char *before = NULL, *after = NULL;
                Error error = { 0 };

                assert_int_equal(policy_set(&policy, merges[i].path, merges[i].caller,
                                            ORIGIN_CALLER, "t", &error),
                                 0);
                before = value_of(&policy, merges[i].path);
                if (policy_set(&policy, merges[i].path, merges[i].project, ORIGIN_PROJECT, "t",
                               &error) != (merges[i].result == KEEPS ? 0 : merges[i].result))
                        fail_msg("%s: %s then %s: %s", merges[i].path, merges[i].caller,
                                 merges[i].project, error.text);
                if (merges[i].result == 0)
                        continue;
                after = value_of(&policy, merges[i].path);
                assert_string_equal(before, after);
                if (merges[i].result != KEEPS)
                        assert_non_null(strstr(error.cure, "narrow"));
        }
}

/* The caller may replace any value by any other. */
static void test_caller_may_widen(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };

        (void)state;
        preset(&policy, "strict");
        assert_int_equal(policy_set(&policy, "limits.timeout", "none", ORIGIN_CALLER, "t", NULL),
                         0);
        assert_int_equal(policy_set(&policy, "layers.landlock", "off", ORIGIN_CALLER, "t", NULL),
                         0);
        assert_int_equal(
                policy_set(&policy, "syscalls.preset", "default", ORIGIN_CALLER, "t", NULL), 0);
        assert_int_equal(
                policy_set(&policy, "filesystem.protect", "none", ORIGIN_CALLER, "t", NULL), 0);
        assert_int_equal(policy.protect.count, 0);
        assert_int_equal(policy.timeout, 0);
}

/* --- presets --- */

static void test_presets(void **state) {
        static const char *const names[] = { "strict", "standard", "permissive", "ci" };

        (void)state;
        assert_int_equal(policy_presets_count, ELEMENTSOF(names));
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };

                preset(&policy, names[i]);
                assert_string_equal(policy.preset, names[i]);
                assert_string_equal(policy_presets[i].name, names[i]);
                assert_true(strlen(policy_presets[i].description) > 20);
                assert_true(strlist_has(&policy.protect, ".git/hooks"));
                assert_true(strlist_has(&policy.protect, ".git/config"));
                /* Otherwise the sandbox could remove the project's own limits for the next run. */
                assert_true(strlist_has(&policy.protect, ".holt.json"));
                assert_false(policy.allow_wide);
                assert_true(policy.tmp_size > 0);
        }
}

static void test_preset_errors(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        Error error = { 0 };

        (void)state;
        assert_int_equal(policy_preset(&policy, "Standard", "t", &error), -ENOENT);
        assert_string_equal(error.text,
                            "t: no preset is called \"Standard\"; did you mean \"standard\"?");
        assert_non_null(strstr(error.cure, "strict, standard, permissive, ci"));
        preset(&policy, "ci");
        assert_int_equal(policy_preset(&policy, "strict", "t", &error), -EEXIST);
        assert_string_equal(policy.preset, "ci");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_field_has_its_merges),
                cmocka_unit_test(test_project_may_only_narrow),
                cmocka_unit_test(test_caller_may_widen),
                cmocka_unit_test(test_presets),
                cmocka_unit_test(test_preset_errors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
