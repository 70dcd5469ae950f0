/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time tool: turns sets/NAME.json... into net-sets.c, the table net_sets[], so that the
 * launcher needs no JSON. A set with a rule that a user could not write fails the build. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strings.h"
#include "policy/net/rules.h"

/* A stub: sets contain rules only, and the real table does not exist yet. */
const NetSet net_sets[1];
const size_t net_sets_count = 0;

typedef struct Input {
        char bytes[64 << 10];
        const char *path;
        size_t length;
} Input;

static int input_read(const char *path, Input *ret, Error *reterr) {
        FILE *file = fopen(path, "re");

        if (!file)
                return error_set(reterr, ERROR_SETUP, errno, "cannot open %s", path);
        ret->path = path;
        ret->length = fread(ret->bytes, 1, sizeof(ret->bytes), file);
        (void)fclose(file);
        if (ret->length == sizeof(ret->bytes))
                return error_set(reterr, ERROR_SETUP, EFBIG, "%s", path);
        return 0;
}

/* Prints a string of C. The files contain plain text, so only two characters need an escape. */
static void print_string(const char *text) {
        (void)putchar('"');
        for (; *text; text++) {
                if (*text == '"' || *text == '\\')
                        (void)putchar('\\');
                (void)putchar(*text);
        }
        (void)putchar('"');
}

/* Whether the name is that of the file, and has only letters, as in "@NAME" and in a C variable. */
static bool set_name_valid(const char *name, const char *path) {
        const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz");

        return length > 0 && !name[length] && strncmp(base, name, length) == 0 &&
               streq(base + length, ".json");
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
                print_string(rule);
                (void)printf(",\n");
        }
        (void)printf("        NULL,\n};\n\n");
        return 0;
}

/* Prints the rules of the set if `rules` is true, and otherwise its row in the table. */
static int set_print(const Input *input, bool rules, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const char *name, *description;
        const JsonValue *root, *allow;
        int r = json_parse(input->bytes, input->length, input->path, &document, reterr);

        if (r < 0)
                return r;
        root = json_root(document);
        name = json_string(json_member(root, "name"));
        description = json_string(json_member(root, "description"));
        allow = json_member(root, "allow");
        if (!name || !description || !json_first(allow) || !set_name_valid(name, input->path))
                return error_set(reterr, ERROR_POLICY, 0,
                                 "%s: a set needs its file's name, a description and allow",
                                 input->path);
        if (rules)
                return set_print_rules(input->path, name, allow, reterr);
        (void)printf("        { ");
        print_string(name);
        (void)printf(", ");
        print_string(description);
        (void)printf(", set_%s },\n", name);
        return 0;
}

static int sets_print(int argc, char **argv, bool rules, Error *reterr) {
        static Input input;

        for (int i = 1; i < argc; i++) {
                int r = input_read(argv[i], &input, reterr);

                if (r == 0)
                        r = set_print(&input, rules, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

int main(int argc, char **argv) {
        Error error;
        int r;

        (void)printf("/* Made by gen-sets from policy/net/sets/. */\n"
                     "#include \"policy/net/rules.h\"\n\n");
        r = sets_print(argc, argv, true, &error);
        if (r == 0) {
                (void)printf("const NetSet net_sets[] = {\n");
                r = sets_print(argc, argv, false, &error);
                (void)printf("};\n"
                             "const size_t net_sets_count = sizeof(net_sets) / "
                             "sizeof(net_sets[0]);\n");
        }
        if (r < 0) {
                error_print(&error, stderr);
                return 1;
        }
        return fflush(stdout) == 0 ? 0 : 1;
}
