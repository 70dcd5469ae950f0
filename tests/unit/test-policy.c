/* SPDX-License-Identifier: Apache-2.0 */
/* policy/: fields, merging, presets, documents, the schema. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json-write.h"
#include "base/json.h"
#include "policy/load.h"
#include "policy/policy.h"
#include "policy/schema.h"

static int load(Policy *policy, const char *text, PolicyOrigin origin, Error *reterr) {
        return policy_load(policy, text, strlen(text), "t.json", origin, reterr);
}

static void preset(Policy *policy, const char *name) {
        Error error = { 0 };

        if (policy_preset(policy, name, "test", &error) != 0)
                fail_msg("%s", error.text);
}

/* The value of a field, "-" where it is unset, items joined by a blank. Owned by the caller. */
static char *value_of(const Policy *policy, const char *path) {
        const PolicyField *field = policy_field(path);
        char *all = policy_field_text(policy, field, 0);

        for (size_t i = 1; all; i++) {
                _cleanup_free_ char *text = policy_field_text(policy, field, i);
                char *more;

                if (!text)
                        return all;
                more = str_format("%s %s", all, text);
                free(all);
                all = more;
        }
        return strdup("-");
}

static void assert_value(const Policy *policy, const char *path, const char *expected) {
        _cleanup_free_ char *value = value_of(policy, path);

        assert_string_equal(value, expected);
}

/* --- one field --- */

static void test_values_taken(void **state) {
        static const struct {
                const char *path, *text, *as;
        } cases[] = {
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
                { "syscalls.preset", "strict", "strict" },
                { "syscalls.allow", "ptrace", "ptrace" },
                { "syscalls.deny", "@network", "@network" },
                { "layers.landlock", "off", "off" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                Error error = { 0 };

                if (policy_set(&policy, cases[i].path, cases[i].text, ORIGIN_CALLER, "t", &error))
                        fail_msg("%s", error.text);
                assert_value(&policy, cases[i].path, cases[i].as);
        }
}

static void test_values_refused(void **state) {
        static const struct {
                const char *path, *text, *message;
        } cases[] = {
                { "limits.time", "1s", "t: there is no policy field limits.time" },
                { "limits", "1s", "t: there is no policy field limits" },
                { "", "1s", "t: there is no policy field " },
                { "filesystem.workspace.source", "", "t: \"\" is empty" },
                { "filesystem.workspace.source", "a\nb",
                  "t: \"a\\x0ab\" has a control character in it" },
                { "filesystem.rootfs", "a\x7f", "t: \"a\\x7f\" has a control character in it" },
                { "filesystem.files.source", "~/x",
                  "t: \"~/x\" starts with \"~\", which only a "
                  "shell expands; write the directory in full" },
                { "filesystem.workspace.target", "work",
                  "t: \"work\" is not an absolute path; a place inside starts with /" },
                { "filesystem.workspace.target", "/a/../b",
                  "t: \"/a/../b\" has a \"..\" in it; write the place inside without" },
                { "filesystem.tmpfs", "//./",
                  "t: \"//./\" is / itself, the sandbox's root; choose a directory in it" },
                { "filesystem.tmpfs", "/./proc//self",
                  "t: \"/./proc//self\" is in /proc or /dev, which the sandbox makes itself; "
                  "choose another place" },
                { "filesystem.read_only", "/x:/dev",
                  "t: \"/x:/dev\" is in /proc or /dev, which the sandbox makes itself; choose "
                  "another place" },
                { "filesystem.read_write", "/etc/",
                  "t: \"/etc/\" is /etc, which the sandbox makes itself; choose a file or "
                  "directory "
                  "in it" },
                { "filesystem.read_only", ":/x",
                  "t: \":/x\" has no path before the \":\"; write PATH:/TARGET" },
                { "filesystem.read_only", "/x:y",
                  "t: \"/x:y\" has a target that is not absolute; write PATH:/TARGET (as well "
                  "where "
                  "the colon is part of PATH)" },
                { "filesystem.hide", "a/../../b",
                  "t: \"a/../../b\" has a \"..\" in it; write the path without" },
                { "filesystem.hide", "/",
                  "t: \"/\" is the whole tree; name a file or directory in "
                  "it" },
                { "filesystem.protect", "/a",
                  "t: \"/a\" is absolute; write it relative to the workspace" },
                { "filesystem.protect", "./.",
                  "t: \"./.\" is the whole tree; name a file or directory in it" },
                { "filesystem.tmp_size", "none",
                  "t: \"none\" is not a size; write it like 64KiB, 512MiB or 2GiB" },
                { "filesystem.tmp_size", "65535",
                  "t: \"65535\" is out of range; write 64KiB to 1048576TiB" },
                { "filesystem.allow_wide", "yes", "t: \"yes\" is neither true nor false" },
                { "network.mode", "allow",
                  "t: \"allow\" is not there: this version has no network yet but a loopback of "
                  "the "
                  "sandbox's own; write \"none\"" },
                { "env.set", "A", "t: \"A\" has no value; write NAME=VALUE" },
                { "env.set", "1A=x",
                  "t: \"1A=x\" does not start with the name of a variable "
                  "(letters, digits and _, not starting with a digit)" },
                { "env.set", "A B=x",
                  "t: \"A B=x\" does not start with the name of a variable "
                  "(letters, digits and _, not starting with a digit)" },
                { "env.set", "=x",
                  "t: \"=x\" does not start with the name of a variable (letters, "
                  "digits and _, not starting with a digit)" },
                { "env.pass", "A=1",
                  "t: \"A=1\" has a value; a variable that is passed has only a name" },
                { "env.pass", "A-B",
                  "t: \"A-B\" is not the name of a variable (letters, digits and "
                  "_, not starting with a digit)" },
                { "limits.timeout", "soon",
                  "t: \"soon\" is not a time; write it like 500ms, 30s, "
                  "10m or 2h, or \"none\" for no limit" },
                { "limits.timeout", "0",
                  "t: \"0\" is out of range; write 1ms to 1000d, or \"none\" "
                  "for no limit" },
                { "limits.timeout", "1001d",
                  "t: \"1001d\" is out of range; write 1ms to 1000d, or "
                  "\"none\" for no limit" },
                { "limits.kill_after", "none",
                  "t: \"none\" is not a time; write it like 500ms, 30s, 10m or 2h" },
                { "limits.pids", "-1", "t: \"-1\" is not a number, or \"none\" for no limit" },
                { "limits.pids", "99999999999999999999",
                  "t: \"99999999999999999999\" is out of "
                  "range; write 1 to 4194304, or \"none\" "
                  "for no limit" },
                { "limits.open_files", "3",
                  "t: \"3\" is out of range; write 16 to 1073741824, or "
                  "\"none\" for no limit" },
                { "syscalls.preset", "Strict",
                  "t: \"Strict\" is not known; write \"default\" or \"strict\"" },
                { "layers.landlock", "on",
                  "t: \"on\" is not known; write \"auto\", \"require\" or \"off\"" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                Policy before = policy;
                Error error = { 0 };

                assert_int_equal(policy_set(&policy, cases[i].path, cases[i].text, ORIGIN_CALLER,
                                            "t", &error),
                                 -EINVAL);
                assert_string_equal(error.text, cases[i].message);
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

static void test_bind_split(void **state) {
        static const struct {
                const char *text;
                size_t length;
                const char *target;
        } cases[] = {
                { "/a", 2, NULL },  { "a:/b", 1, "/b" },        { "a:b", 3, NULL },
                { ":/b", 0, "/b" }, { "/a:b:/a:b", 4, "/a:b" }, { "a:/b:/c", 4, "/c" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                size_t length = 99;
                const char *target = policy_bind_split(cases[i].text, &length);

                assert_int_equal(length, cases[i].length);
                if (cases[i].target)
                        assert_string_equal(target, cases[i].target);
                else
                        assert_null(target);
        }
}

/* --- merging --- */

/* Both sides of every rule: what a project's file may say on top of the caller's, what does not
 * matter because the caller's is lower, and what is refused. */
enum { KEEPS = 1 };

static void test_project_may_only_narrow(void **state) {
        static const struct {
                const char *path, *caller, *project;
                int result;
        } cases[] = {
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
                { "limits.open_files", "100", "50", 0 },
                { "limits.open_files", "100", "101", KEEPS },
                { "limits.open_files", "none", "64", 0 },
                { "limits.file_size", "1MiB", "1KiB", 0 },
                { "limits.file_size", "1MiB", "none", KEEPS },
                { "filesystem.tmp_size", "1GiB", "1MiB", 0 },
                { "filesystem.tmp_size", "1GiB", "2GiB", KEEPS },
                { "filesystem.workspace.mode", "rw", "ro", 0 },
                { "filesystem.workspace.mode", "rw", "none", 0 },
                { "filesystem.workspace.mode", "ro", "ro", 0 },
                { "filesystem.workspace.mode", "ro", "rw", -EPERM },
                { "filesystem.workspace.mode", "none", "ro", -EPERM },
                { "network.mode", "none", "none", 0 },
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
                { "filesystem.workspace.target", "/a", "/b", -EPERM },
                { "filesystem.files.source", "a", "b", -EPERM },
                { "filesystem.rootfs", "/a", "/b", -EPERM },
                { "filesystem.read_only", "/a", "/b", -EPERM },
                { "filesystem.read_write", "/a", "/b", -EPERM },
                { "filesystem.tmpfs", "/a", "/b", -EPERM },
                { "filesystem.allow_wide", "false", "true", -EPERM },
                { "env.set", "A=1", "B=1", -EPERM },
                { "env.pass", "A", "B", -EPERM },
        };

        (void)state;
        for (size_t i = 0; i < policy_fields_count; i++) {
                bool tested = false;

                for (size_t j = 0; j < ELEMENTSOF(cases); j++)
                        tested = tested || streq(cases[j].path, policy_fields[i].path);
                if (!tested)
                        fail_msg("no case for %s", policy_fields[i].path);
        }
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                _cleanup_free_ char *before = NULL, *after = NULL;
                Error error = { 0 };

                assert_int_equal(policy_set(&policy, cases[i].path, cases[i].caller, ORIGIN_CALLER,
                                            "t", &error),
                                 0);
                before = value_of(&policy, cases[i].path);
                if (policy_set(&policy, cases[i].path, cases[i].project, ORIGIN_PROJECT, "t",
                               &error) != (cases[i].result == KEEPS ? 0 : cases[i].result))
                        fail_msg("%s: %s then %s: %s", cases[i].path, cases[i].caller,
                                 cases[i].project, error.text);
                if (cases[i].result == 0)
                        continue;
                after = value_of(&policy, cases[i].path);
                assert_string_equal(before, after);
                if (cases[i].result != KEEPS)
                        assert_non_null(strstr(error.cure, "narrow"));
        }
}

/* The caller may set anything on top of anything. */
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
                /* Or the sandbox could take the project's own limits away for the next run. */
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
        assert_string_equal(error.text, "t: there is no preset \"Standard\"");
        assert_non_null(strstr(error.cure, "strict, standard, permissive, ci"));
        preset(&policy, "ci");
        assert_int_equal(policy_preset(&policy, "strict", "t", &error), -EEXIST);
        assert_string_equal(policy.preset, "ci");
}

/* --- documents --- */

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

static void test_load_refuses(void **state) {
        static const struct {
                const char *text, *message, *cure;
        } cases[] = {
                { "[]", "t.json: $: an array, where an object should be", "" },
                { "{}", "t.json: $.holt: the document's version is missing", "Write \"holt\": 1." },
                { "{\"holt\":2}",
                  "t.json: $.holt: not a version of policy documents that this holt reads",
                  "Write \"holt\": 1." },
                { "{\"holt\":\"1\"}",
                  "t.json: $.holt: not a version of policy documents that this holt reads",
                  "Write \"holt\": 1." },
                { "{\"Holt\":1}", "t.json: $.holt: the document's version is missing",
                  "Write \"holt\": 1." },
                { "{\"holt\":1,\"extends\":\"mine\"}",
                  "t.json: $.extends: there is no preset \"mine\"",
                  "The presets are strict, standard, permissive, ci. A policy file has a \"/\" in "
                  "its name or ends in \".json\"." },
                { "{\"holt\":1,\"extends\":5}",
                  "t.json: $.extends: a number, where the name of a preset should be", "" },
                { "{\"holt\":1,\"description\":5}",
                  "t.json: $.description: a number, where a string should be", "" },
                { "{\"holt\":1,\"limit\":{}}",
                  "t.json: $.limit: unknown field; did you mean \"limits\"?",
                  "Allowed in $: holt, extends, description, $schema, filesystem, network, env, "
                  "limits, syscalls, layers." },
                { "{\"holt\":1,\"limits\":{\"timout\":\"1s\"}}",
                  "t.json: $.limits.timout: unknown field; did you mean \"timeout\"?",
                  "Allowed in $.limits: timeout, kill_after, memory, pids, open_files, "
                  "file_size." },
                { "{\"holt\":1,\"limits\":{\"Timeout\":\"1s\"}}",
                  "t.json: $.limits.Timeout: unknown field; did you mean \"timeout\"?",
                  "Allowed in $.limits: timeout, kill_after, memory, pids, open_files, "
                  "file_size." },
                { "{\"holt\":1,\"limits.timeout\":\"1s\"}",
                  "t.json: $[\"limits.timeout\"]: unknown field",
                  "Allowed in $: holt, extends, description, $schema, filesystem, network, env, "
                  "limits, syscalls, layers." },
                { "{\"holt\":1,\"\":1}", "t.json: $[\"\"]: unknown field",
                  "Allowed in $: holt, extends, description, $schema, filesystem, network, env, "
                  "limits, syscalls, layers." },
                { "{\"holt\":1,\"filesystem\":{\"workspace\":{\"holt\":1}}}",
                  "t.json: $.filesystem.workspace.holt: unknown field",
                  "Allowed in $.filesystem.workspace: source, target, mode." },
                { "{\"holt\":1,\"env\":{\"set\":{\"A\":1}}}",
                  "t.json: $.env.set.A: a number, where a string should be", "" },
                { "{\"holt\":1,\"env\":{\"set\":{\"A=B\":\"1\"}}}",
                  "t.json: $.env.set[\"A=B\"]: a name with \"=\" in it", "" },
                { "{\"holt\":1,\"env\":{\"set\":[\"A=1\"]}}",
                  "t.json: $.env.set: an array, where an object of strings should be", "" },
                { "{\"holt\":1,\"limits\":5}",
                  "t.json: $.limits: a number, where an object should be", "" },
                { "{\"holt\":1,\"limits\":{\"pids\":\"5\"}}",
                  "t.json: $.limits.pids: a string, where a number or \"none\" should be", "" },
                { "{\"holt\":1,\"limits\":{\"pids\":1.5}}",
                  "t.json: $.limits.pids: a number that is not whole", "" },
                { "{\"holt\":1,\"limits\":{\"pids\":-1}}",
                  "t.json: $.limits.pids: a number that is out of range", "" },
                { "{\"holt\":1,\"limits\":{\"pids\":null}}",
                  "t.json: $.limits.pids: null, where a number or \"none\" should be", "" },
                { "{\"holt\":1,\"limits\":{\"timeout\":30}}",
                  "t.json: $.limits.timeout: a number, where a string should be", "" },
                { "{\"holt\":1,\"limits\":{\"memory\":[]}}",
                  "t.json: $.limits.memory: an array, where a size like \"512MiB\" or a number of "
                  "bytes should be",
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
                  "t.json: $.network.mode: \"allow\" is not there: this version has no network yet "
                  "but a loopback of the sandbox's own; write \"none\"",
                  "" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                Error error = { 0 };

                assert_true(load(&policy, cases[i].text, ORIGIN_CALLER, &error) < 0);
                assert_string_equal(error.text, cases[i].message);
                assert_string_equal(error.cure, cases[i].cure);
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

/* --- printed again --- */

static char *print(const Policy *policy) {
        JsonWriter w = { .pretty = true };

        assert_int_equal(policy_document_print(policy, &w), 0);
        assert_int_equal(json_write_finish(&w), 0);
        return w.data;
}

static void assert_round_trip(const Policy *policy) {
        _cleanup_(policy_clear) Policy again = { 0 };
        _cleanup_free_ char *first = print(policy), *second = NULL;
        Error error = { 0 };

        if (load(&again, first, ORIGIN_CALLER, &error) != 0)
                fail_msg("%s\n%s", error.text, first);
        second = print(&again);
        assert_string_equal(first, second);
        for (size_t i = 0; i < policy_fields_count; i++) {
                _cleanup_free_ char *a = value_of(policy, policy_fields[i].path);
                _cleanup_free_ char *b = value_of(&again, policy_fields[i].path);

                assert_string_equal(a, b);
        }
}

static void test_round_trip(void **state) {
        static const struct {
                const char *path, *text;
        } words[] = {
                { "filesystem.workspace.source", "/src" },
                { "filesystem.workspace.target", "/w" },
                { "filesystem.workspace.mode", "ro" },
                { "filesystem.files.source", "files" },
                { "filesystem.rootfs", "/r" },
                { "filesystem.read_only", "/a:/b" },
                { "filesystem.read_write", "/c" },
                { "filesystem.tmpfs", "/t" },
                { "filesystem.hide", "\"quoted\"\\" },
                { "filesystem.protect", "x" },
                { "filesystem.protect", "none" },
                { "filesystem.protect", "y" },
                { "filesystem.protect", ".git/hooks" },
                { "filesystem.tmp_size", "123456789" },
                { "filesystem.allow_wide", "true" },
                { "env.set", "A=b\n\t\"c\"" },
                { "env.set", "B=" },
                { "env.pass", "C" },
                { "limits.timeout", "1us" },
                { "limits.timeout", "90061001001us" },
                { "limits.kill_after", "0" },
                { "limits.memory", "3GiB" },
                { "limits.pids", "none" },
                { "limits.open_files", "17" },
                { "limits.file_size", "1" },
                { "syscalls.preset", "strict" },
                { "syscalls.allow", "ptrace" },
                { "syscalls.deny", "@network" },
                { "layers.landlock", "off" },
        };

        (void)state;
        for (size_t i = 0; i < policy_presets_count; i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };

                preset(&policy, policy_presets[i].name);
                assert_round_trip(&policy);
                for (size_t j = 0; j < ELEMENTSOF(words); j++) {
                        (void)policy_set(&policy, words[j].path, words[j].text, ORIGIN_CALLER, "t",
                                         NULL);
                        assert_round_trip(&policy);
                }
        }
}

/* --- the schema --- */

/* The schema of a field, by the parts of its path. */
static const JsonValue *schema_of(const JsonValue *schema, const char *path) {
        char part[32];

        while (schema && *path) {
                size_t length = strcspn(path, ".");

                assert_true(length < sizeof(part));
                memcpy(part, path, length);
                part[length] = '\0';
                schema = json_member(json_member(schema, "properties"), part);
                path += length + (path[length] == '.');
        }
        return schema;
}

static void test_schema(void **state) {
        JsonDocument *document = NULL;
        JsonWriter w = { 0 };
        Error error = { 0 };

        (void)state;
        policy_schema_print(&w);
        assert_int_equal(json_write_finish(&w), 0);
        if (json_parse(w.data, w.length, "schema", &document, &error) != 0)
                fail_msg("%s", error.text);
        for (size_t i = 0; i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];
                const JsonValue *schema = schema_of(json_root(document), field->path);

                if (!schema)
                        fail_msg("%s is not in the schema", field->path);
                assert_string_equal(json_string(json_member(schema, "description")), field->help);
                assert_true(json_member(schema, "type") || json_member(schema, "enum") ||
                            json_member(schema, "anyOf"));
        }
        assert_non_null(schema_of(json_root(document), "holt"));
        assert_non_null(schema_of(json_root(document), "extends"));
        json_free(document);
        json_write_clear(&w);
}

/* The table itself. */
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fields),
                cmocka_unit_test(test_values_taken),
                cmocka_unit_test(test_values_refused),
                cmocka_unit_test(test_syscall_names),
                cmocka_unit_test(test_path_length),
                cmocka_unit_test(test_lists),
                cmocka_unit_test(test_bind_split),
                cmocka_unit_test(test_project_may_only_narrow),
                cmocka_unit_test(test_caller_may_widen),
                cmocka_unit_test(test_presets),
                cmocka_unit_test(test_preset_errors),
                cmocka_unit_test(test_load_takes),
                cmocka_unit_test(test_load_refuses),
                cmocka_unit_test(test_load_order),
                cmocka_unit_test(test_load_project),
                cmocka_unit_test(test_load_hostile),
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_schema),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
