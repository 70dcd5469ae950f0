/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/schema.c: policies printed as documents, and their schema. */
#include "policy-fixture.h"

#include "base/json-write.h"
#include "base/json.h"
#include "policy/schema.h"

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
        { "filesystem.etc", "nginx" },
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
        { "limits.open_files", "71" },
        { "limits.file_size", "1" },
        { "limits.output", "70KiB" },
        { "syscalls.preset", "strict" },
        { "syscalls.allow", "ptrace" },
        { "syscalls.deny", "@network" },
        { "layers.landlock", "off" },
        { "bridge.routes", "openai" },
        { "bridge.helpers", "/a/b.py:c" },
        { "bridge.routes", "{\"name\":\"acme\",\"upstream\":\"http://a.example\"}" },
};

static void test_round_trip(void **state) {
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

/* Returns the schema of a field, found by the parts of its path. */
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
                assert_string_equal(json_string(json_member(schema, "description")),
                                    field->document_help ? field->document_help : field->help);
                assert_true(json_member(schema, "type") || json_member(schema, "enum") ||
                            json_member(schema, "anyOf"));
        }
        assert_non_null(schema_of(json_root(document), "holt"));
        assert_non_null(schema_of(json_root(document), "extends"));
        json_free(document);
        json_write_clear(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_schema),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
