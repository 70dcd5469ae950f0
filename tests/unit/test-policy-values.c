/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/: the table of fields, and single fields. */
#include "policy-fixture.h"

static void test_fields(void **state) {
        (void)state;
        for (size_t i = 0; i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];

                assert_ptr_equal(policy_field(field->path), field);
                assert_non_null(field->help);
                assert_int_equal(field->kind == FIELD_ENUM, field->names != NULL);
                assert_int_equal(field->merge == MERGE_STRICTER, field->ranks != NULL);
                assert_true(field->option || !field->option_arg);
                if (field->option)
                        assert_int_equal(field->option_arg == NULL, field->kind == FIELD_BOOL);
                for (size_t j = 0; j < i; j++)
                        assert_true(!field->option || !policy_fields[j].option ||
                                    !streq(field->option, policy_fields[j].option));
        }
}

static const struct {
        const char *path, *text, *as;
} values_taken[] = {
        { "filesystem.workspace.source", "src dir", "src dir" },
        { "filesystem.workspace.target", "/work", "/work" },
        { "filesystem.workspace.mode", "ro", "ro" },
        { "filesystem.read_only", "/opt/x", "/opt/x" },
        { "filesystem.read_only", "../x", "../x" },
        { "filesystem.read_only", "a:/b/c", "a:/b/c" },
        { "filesystem.read_only", "a:b:/c:d", "a:b:/c:d" },
        { "filesystem.tmpfs", "/etc/x", "/etc/x" },
        { "filesystem.tmpfs", "/devices", "/devices" },
        { "filesystem.hide", ".env", ".env" },
        { "filesystem.hide", "/usr/bin/su", "/usr/bin/su" },
        { "filesystem.hide", "..x/y..", "..x/y.." },
        { "filesystem.tmp_size", "65536", "64KiB" },
        { "filesystem.tmp_size", "1.5G", "1536MiB" },
        { "filesystem.allow_wide", "true", "true" },
        { "network.mode", "none", "none" },
        { "network.mode", "host", "host" },
        { "network.allow", "Example.org # why", "Example.org # why" },
        { "network.allow", "@python", "@python" },
        { "network.sni", "required", "required" },
        { "network.publish", "0:3000", "0:3000" },
        { "network.import", "5432:5433", "5432:5433" },
        { "network.proxy", "true", "true" },
        { "network.ask", "true", "true" },
        { "network.ask_timeout", "90s", "90s" },
        { "network.upstream", "http://a:b@proxy.example:3128", "http://a:b@proxy.example:3128" },
        { "env.set", "A=", "A=" },
        { "env.set", "_a1=x=y\nz", "_a1=x=y\nz" },
        { "env.pass", "LC_ALL", "LC_ALL" },
        { "limits.timeout", "1.5", "1500ms" },
        { "limits.timeout", "7200s", "2h" },
        { "limits.timeout", "none", "none" },
        { "limits.kill_after", "0", "0s" },
        { "limits.memory", "1048577", "1048577" },
        { "limits.pids", "1", "1" },
        { "limits.pids", "none", "none" },
        { "limits.output", "1048576", "1MiB" },
        { "limits.output", "none", "none" },
        { "syscalls.preset", "strict", "strict" },
        { "syscalls.allow", "ptrace", "ptrace" },
        { "syscalls.deny", "@network", "@network" },
        { "layers.landlock", "off", "off" },
};

static void test_values_taken(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(values_taken); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                Error error = { 0 };

                if (policy_set(&policy, values_taken[i].path, values_taken[i].text, ORIGIN_CALLER,
                               "t", &error))
                        fail_msg("%s", error.text);
                assert_value(&policy, values_taken[i].path, values_taken[i].as);
        }
}

static const struct {
        const char *path, *text, *message;
} values_refused[] = {
        { "limits.time", "1s", "t: no policy field is called limits.time" },
        { "limits", "1s", "t: no policy field is called limits" },
        { "", "1s", "t: no policy field is called " },
        { "filesystem.workspace.source", "", "t: \"\" is empty" },
        { "filesystem.workspace.source", "a\nb", "t: \"a\\x0ab\" contains a control character" },
        { "filesystem.rootfs", "a\x7f", "t: \"a\\x7f\" contains a control character" },
        { "filesystem.files.source", "~/x",
          "t: \"~/x\" starts with \"~\", which only a shell expands; write the directory in full" },
        { "filesystem.workspace.target", "work",
          "t: \"work\" is not absolute; a path inside starts with /" },
        { "filesystem.workspace.target", "/a/../b",
          "t: \"/a/../b\" contains \"..\"; write the path inside without it" },
        { "filesystem.tmpfs", "//./",
          "t: \"//./\" is the sandbox's root; choose a directory below it" },
        { "filesystem.tmpfs", "/./proc//self",
          "t: \"/./proc//self\" is in /proc or /dev, which the sandbox creates itself; choose "
          "another place" },
        { "filesystem.read_only", "/x:/dev",
          "t: \"/x:/dev\" is in /proc or /dev, which the sandbox creates itself; choose another "
          "place" },
        { "filesystem.read_write", "/etc/",
          "t: \"/etc/\" is /etc, which the sandbox creates itself; choose a file or directory in "
          "it" },
        { "filesystem.read_only", ":/x",
          "t: \":/x\" has no path before the \":\"; write PATH:/TARGET" },
        { "filesystem.read_only", "/x:y",
          "t: \"/x:y\" has a target that is not absolute; write PATH:/TARGET (also if the colon is "
          "part of PATH)" },
        { "filesystem.hide", "a/../../b",
          "t: \"a/../../b\" contains \"..\"; write the path without it" },
        { "filesystem.hide", "/",
          "t: \"/\" is the whole file tree; name a file or directory in it" },
        { "filesystem.protect", "/a", "t: \"/a\" is absolute; write it relative to the workspace" },
        { "filesystem.protect", "./.",
          "t: \"./.\" is the whole file tree; name a file or directory in it" },
        { "filesystem.tmp_size", "none",
          "t: \"none\" is not a size; write it like 64KiB, 512MiB or 2GiB" },
        { "filesystem.tmp_size", "65535",
          "t: \"65535\" is out of range; write 64KiB to 1048576TiB" },
        { "filesystem.allow_wide", "yes", "t: \"yes\" must be true or false" },
        { "network.mode", "nat", "t: \"nat\" is not known; write \"none\", \"allow\" or \"host\"" },
        { "network.allow", "a:0",
          "t: \"a:0\" has no valid port: write a number from 1 to 65535, a range such as "
          "8000-8010, "
          "or \"*\" for all ports" },
        { "network.publish", "80",
          "t: \"80\" has only one port; write HOSTPORT:PORT, such as 8080:3000, or 0:3000 for a "
          "free "
          "port" },
        { "network.import", "0",
          "t: \"0\" has no valid port of the host; write HOSTPORT or HOSTPORT:PORT, such as 5432" },
        { "env.set", "A", "t: \"A\" has no value; write NAME=VALUE" },
        { "env.set", "1A=x",
          "t: \"1A=x\" does not start with a valid variable name (letters, digits and _, not "
          "starting with a digit)" },
        { "env.set", "A B=x",
          "t: \"A B=x\" does not start with a valid variable name (letters, digits and _, not "
          "starting with a digit)" },
        { "env.set", "=x",
          "t: \"=x\" does not start with a valid variable name (letters, digits and _, not "
          "starting with a digit)" },
        { "env.pass", "A=1", "t: \"A=1\" has a value; to pass a variable, give only its name" },
        { "env.pass", "A-B",
          "t: \"A-B\" is not a valid variable name (letters, digits and _, not starting with a "
          "digit)" },
        { "limits.timeout", "soon",
          "t: \"soon\" is not a time; write it like 500ms, 30s, 10m or 2h, or \"none\" for no "
          "limit" },
        { "limits.timeout", "0",
          "t: \"0\" is out of range; write 1ms to 1000d, or \"none\" for no limit" },
        { "limits.timeout", "1001d",
          "t: \"1001d\" is out of range; write 1ms to 1000d, or \"none\" for no limit" },
        { "limits.kill_after", "none",
          "t: \"none\" is not a time; write it like 500ms, 30s, 10m or 2h" },
        { "limits.pids", "-1", "t: \"-1\" is not a number, or \"none\" for no limit" },
        { "limits.pids", "99999999999999999999",
          "t: \"99999999999999999999\" is out of range; write 1 to 4194304, or \"none\" for no "
          "limit" },
        { "limits.open_files", "3",
          "t: \"3\" is out of range; write 64 to 1073741824, or \"none\" for no limit" },
        { "syscalls.preset", "Strict",
          "t: \"Strict\" is not known; write \"default\" or \"strict\"" },
        { "layers.landlock", "on",
          "t: \"on\" is not known; write \"auto\", \"require\" or \"off\"" },
};

static void test_values_refused(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(values_refused); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                Policy before = policy;
                Error error = { 0 };

                assert_int_equal(policy_set(&policy, values_refused[i].path, values_refused[i].text,
                                            ORIGIN_CALLER, "t", &error),
                                 -EINVAL);
                assert_string_equal(error.text, values_refused[i].message);
                assert_memory_equal(&policy, &before, sizeof(policy));
        }
}

static void test_syscall_names(void **state) {
        static const char *const wrong[] = { "mont", "@nothing", "", "read,write", "@" };
        Policy policy = { 0 };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                assert_int_equal(
                        policy_set(&policy, "syscalls.allow", wrong[i], ORIGIN_CALLER, "t", NULL),
                        -EINVAL);
                assert_int_equal(
                        policy_set(&policy, "syscalls.deny", wrong[i], ORIGIN_CALLER, "t", NULL),
                        -EINVAL);
        }
}

static void test_path_length(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        char path[POLICY_PATH_MAX + 2];

        (void)state;
        memset(path, 'a', sizeof(path));
        path[0] = '/';
        path[sizeof(path) - 1] = '\0';
        assert_int_equal(policy_set(&policy, "filesystem.rootfs", path, ORIGIN_CALLER, "t", NULL),
                         -EINVAL);
        assert_int_equal(policy_set(&policy, "filesystem.tmpfs", path, ORIGIN_CALLER, "t", NULL),
                         -EINVAL);
        path[POLICY_PATH_MAX] = '\0';
        assert_int_equal(policy_set(&policy, "filesystem.rootfs", path, ORIGIN_CALLER, "t", NULL),
                         0);
}

static void test_lists(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        char name[24];

        (void)state;
        for (unsigned i = 0; i < POLICY_LIST_MAX; i++) {
                (void)snprintf(name, sizeof(name), "f%u", i);
                assert_int_equal(
                        policy_set(&policy, "filesystem.hide", name, ORIGIN_CALLER, "t", NULL), 0);
        }
        assert_int_equal(policy_set(&policy, "filesystem.hide", "f0", ORIGIN_CALLER, "t", NULL), 0);
        assert_int_equal(policy.hide.count, POLICY_LIST_MAX);
        assert_int_equal(policy_set(&policy, "filesystem.hide", "x", ORIGIN_CALLER, "t", NULL),
                         -E2BIG);
        assert_int_equal(policy.hide.count, POLICY_LIST_MAX);

        assert_int_equal(policy_set(&policy, "env.set", "A=1", ORIGIN_CALLER, "t", NULL), 0);
        assert_int_equal(policy_set(&policy, "env.set", "AB=2", ORIGIN_CALLER, "t", NULL), 0);
        assert_int_equal(policy_set(&policy, "env.set", "A=3", ORIGIN_CALLER, "t", NULL), 0);
        assert_value(&policy, "env.set", "A=3 AB=2");
}

static const struct {
        const char *text;
        size_t length;
        const char *target;
} binds[] = {
        { "/a", 2, NULL },  { "a:/b", 1, "/b" },        { "a:b", 3, NULL },
        { ":/b", 0, "/b" }, { "/a:b:/a:b", 4, "/a:b" }, { "a:/b:/c", 4, "/c" },
};

static void test_bind_split(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(binds); i++) {
                size_t length = 99;
                const char *target = policy_bind_split(binds[i].text, &length);

                assert_int_equal(length, binds[i].length);
                if (binds[i].target)
                        assert_string_equal(target, binds[i].target);
                else
                        assert_null(target);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fields),         cmocka_unit_test(test_values_taken),
                cmocka_unit_test(test_values_refused), cmocka_unit_test(test_syscall_names),
                cmocka_unit_test(test_path_length),    cmocka_unit_test(test_lists),
                cmocka_unit_test(test_bind_split),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
