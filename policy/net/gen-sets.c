/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time tool: turns sets/NAME.json... into net-sets.c, the table net_sets[], so that the
 * launcher needs no JSON. A set with a rule that a user could not write fails the build. */
#include <string.h>

#include "base/json.h"
#include "base/strings.h"
#include "policy/net/gen-files.h"
#include "policy/net/rules.h"

/* A stub: sets contain rules only, and the real table does not exist yet. */
const NetSet net_sets[1];
const size_t net_sets_count = 0;

/* Whether the name is that of the file, and has only letters, as in "@NAME" and in a C variable. */
static bool set_name_valid(const char *name, const GenFile *file) {
        return streq(name, file->name) && name[0] &&
               !name[strspn(name, "abcdefghijklmnopqrstuvwxyz")];
}

static int set_print_rules(const char *path, const char *name, const JsonValue *rules,
                           Error *reterr) {
        (void)printf("static const char *const set_%s[] = {\n", name);
        for (const JsonValue *item = json_first(rules); item; item = json_next(item)) {
                const char *rule = json_string(item), *why = "is no string";

                if (!rule || rule[0] == '@' || net_rule_check(rule, &why) < 0)
                        return error_set(reterr, ERROR_POLICY, 0, "%s: \"%s\" %s", path,
                                         rule ? rule : "?", why);
                (void)printf("        ");
                gen_print_string(rule);
                (void)printf(",\n");
        }
        (void)printf("        NULL,\n};\n\n");
        return 0;
}

typedef struct Set {
        JsonDocument *document;         /* owned */
        const char *name, *description; /* borrowed from document, like rules */
        const JsonValue *rules;
} Set;

static void set_clear(Set *set) {
        json_freep(&set->document);
}

static int set_read(const GenFile *file, Set *ret, Error *reterr) {
        const JsonValue *root;
        int r = json_parse(file->bytes, file->length, file->path, &ret->document, reterr);

        if (r < 0)
                return r;
        root = json_root(ret->document);
        ret->name = json_string(json_member(root, "name"));
        ret->description = json_string(json_member(root, "description"));
        ret->rules = json_member(root, "allow");
        if (!ret->name || !ret->description || !json_first(ret->rules) ||
            !set_name_valid(ret->name, file))
                return error_set(reterr, ERROR_POLICY, 0,
                                 "%s: a set needs its file's name, a description and allow",
                                 file->path);
        return 0;
}

static int set_print(const GenFile *file, Error *reterr) {
        _cleanup_(set_clear) Set set = { 0 };
        int r = set_read(file, &set, reterr);

        return r < 0 ? r : set_print_rules(file->path, set.name, set.rules, reterr);
}

static int set_print_row(const GenFile *file, Error *reterr) {
        _cleanup_(set_clear) Set set = { 0 };
        int r = set_read(file, &set, reterr);

        if (r < 0)
                return r;
        (void)printf("        { ");
        gen_print_string(set.name);
        (void)printf(", ");
        gen_print_string(set.description);
        (void)printf(", set_%s,\n          ", set.name);
        (void)printf("\"is not a known set; did you mean @%s?\" },\n", set.name);
        return 0;
}

int main(int argc, char **argv) {
        static const GenTable table = {
                .head = "/* Made by gen-sets from policy/net/sets/. */\n"
                        "#include \"policy/net/rules.h\"\n\n",
                .definitions = set_print,
                .begin = "const NetSet net_sets[] = {\n",
                .row = set_print_row,
                .end = "};\nconst size_t net_sets_count = "
                       "sizeof(net_sets) / sizeof(net_sets[0]);\n",
        };

        (void)argc;
        return gen_main(&table, argv);
}
