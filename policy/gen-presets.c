/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time tool: turns presets/NAME.json... into presets.c, the tables of policy_presets[], so
 * that the launcher needs no JSON. It uses the loader of policy files, so a preset that the loader
 * would refuse fails the build. */
#include "base/json.h"
#include "policy/load.h"
#include "policy/net/gen-files.h"
#include "policy/syscalls/syscalls.h"

/* A stub: a preset extends no other, and the real table does not exist yet. */
const Preset policy_presets[1];
const size_t policy_presets_count = 0;

/* Another stub: another tool generates the syscall tables. tests/unit/test-policy-print.c loads
 * each preset with the real check. */
int syscalls_name_check(const char *name, const char **ret_why) {
        (void)name;
        (void)ret_why;
        return 0;
}

int syscalls_deny_check(const char *name, const char **ret_why) {
        return syscalls_name_check(name, ret_why);
}

/* Prints one row, and sets the value from its text, as policy_preset() does at run time. So a value
 * whose text cannot be set fails the build. For example, a preset that omits a limit needs a field
 * that accepts "none". */
static int gen_print_row(const PolicyField *field, const char *text, Policy *again, Error *reterr) {
        int r = policy_set(again, field->path, text, ORIGIN_PRESET, field->path, reterr);

        if (r < 0)
                return r;
        (void)printf("        { \"%s\", ", field->path);
        gen_print_string(text);
        (void)printf(" },\n");
        return 0;
}

static int gen_print_rows(const Policy *policy, Error *reterr) {
        _cleanup_(policy_clear) Policy again = { 0 };

        for (size_t i = 0; i < policy_fields_count; i++) {
                for (size_t j = 0;; j++) {
                        _cleanup_free_ char *text = policy_field_text(policy, &policy_fields[i], j);
                        int r;

                        if (!text)
                                break;
                        r = gen_print_row(&policy_fields[i], text, &again, reterr);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

static int gen_print_preset(const GenFile *file, Error *reterr) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        int r;

        r = policy_load(&policy, file->bytes, file->length, file->path, ORIGIN_PRESET, reterr);
        if (r < 0)
                return r;
        (void)printf("static const PresetRow rows_%s[] = {\n", file->name);
        r = gen_print_rows(&policy, reterr);
        (void)printf("};\n\n");
        return r;
}

static int gen_print_entry(const GenFile *file, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const JsonValue *description;
        int r;

        r = json_parse(file->bytes, file->length, file->path, &document, reterr);
        if (r < 0)
                return r;
        description = json_member(json_root(document), "description");
        if (!description)
                return error_set(reterr, ERROR_POLICY, 0, "%s: a preset needs a description",
                                 file->path);
        (void)printf("        { \"%s\", ", file->name);
        gen_print_string(json_string(description));
        (void)printf(", rows_%s, ELEMENTSOF(rows_%s) },\n", file->name, file->name);
        return 0;
}

int main(int argc, char **argv) {
        static const GenTable table = {
                .head = "/* Made by gen-presets from policy/presets/. */\n"
                        "#include \"policy/policy.h\"\n\n",
                .definitions = gen_print_preset,
                .begin = "const Preset policy_presets[] = {\n",
                .row = gen_print_entry,
                .end = "};\nconst size_t policy_presets_count = ELEMENTSOF(policy_presets);\n",
        };

        (void)argc;
        return gen_main(&table, argv);
}
