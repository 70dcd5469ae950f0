/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <string.h>

#include "base/nearest.h"
#include "policy/layers.h"
#include "policy/syscalls.h"

enum { HELP_COLUMN = 30, HELP_WIDTH = 96 };

/* The state of options_parse(). */
typedef struct Parser {
        const OptionSyntax *syntax;
        const char *const *argv;
        int argc, next; /* next: index of the next argument */
        char *target;
        OptionResult result;
        Error *reterr;
} Parser;

void options_clear(OptionResult *result) {
        free(result->policies);
        free(result->words);
        free(result->operands);
        *result = (OptionResult){ 0 };
}

static void parser_clear(Parser *parser) {
        options_clear(&parser->result);
}

static int usage_cure(const Parser *parser, int r) {
        return error_cure(parser->reterr, r, "\"holt %s --help\" lists the options.",
                          parser->syntax->verb);
}

/* --- finding an option --- */

/* Returns whether argument is name, or "name=VALUE". *ret_value is the VALUE, or NULL. */
static bool name_matches(const char *argument, const char *name, const char **ret_value) {
        size_t length = strlen(name);

        if (strncmp(argument, name, length) != 0)
                return false;
        if (argument[length] != '\0' && argument[length] != '=')
                return false;
        *ret_value = argument[length] == '=' ? argument + length + 1 : NULL;
        return true;
}

/* Options of other tools that differ too much from ours to be taken for typing mistakes. */
static const struct {
        const char *word, *ours, *more; /* more: a second meaning, or NULL */
} other_words[] = {
        { "--bind", "--rw", NULL },
        { "--chdir", "--cwd", NULL },
        { "--mount", "--ro", "--rw" },
        { "--read-only", "--ro", "--workspace-mode ro" },
        { "--readonly", "--ro", "--workspace-mode ro" },
        { "--ro-bind", "--ro", NULL },
        { "--setenv", "--env", NULL },
        { "--verbose", "--report", "--json" },
        { "--volume", "--ro", "--rw" },
        { "--workdir", "--cwd", NULL },
        { "-C", "--cwd", NULL },
        { "-e", "--env", NULL },
        { "-n", "--tail", NULL },
        { "-n", "--limit", NULL },
        { "-v", "--ro", "--rw" },
        { "-w", "--cwd", NULL },
};

static bool has_option(const OptionSyntax *syntax, const char *name) {
        for (size_t i = 0; i < syntax->options_count; i++)
                if (streq(syntax->options[i].name, name))
                        return true;
        for (size_t i = 0; syntax->policy && i < policy_fields_count; i++)
                if (policy_fields[i].option && streq(policy_fields[i].option, name))
                        return true;
        return false;
}

/* Fails with a hint if name is another tool's word for an option of this verb. Otherwise returns
 * 0. */
static int other_option(const Parser *parser, const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(other_words); i++) {
                const char *ours = other_words[i].ours, *more = other_words[i].more;

                if (streq(other_words[i].word, name) && has_option(parser->syntax, ours))
                        return error_set(parser->reterr, ERROR_USAGE, 0,
                                         "unknown option \"%s\"; did you mean %s%s%s?", name, ours,
                                         more ? " or " : "", more ? more : "");
        }
        return 0;
}

static bool is_policy_option(const char *name) {
        bool is = streq(name, "--policy");

        for (size_t i = 0; i < policy_fields_count; i++)
                is |= policy_fields[i].option && streq(policy_fields[i].option, name);
        return is;
}

/* An option of one letter is equally near to all others, so no hint is given for it. */
static void try_options(const OptionSyntax *syntax, Nearest *nearest) {
        if (strlen(nearest->word) <= 2)
                return;
        for (size_t i = 0; i < syntax->options_count; i++)
                nearest_try(nearest, syntax->options[i].name);
        for (size_t i = 0; syntax->policy && i < policy_fields_count; i++)
                if (policy_fields[i].option)
                        nearest_try(nearest, policy_fields[i].option);
        if (syntax->policy)
                nearest_try(nearest, "--policy");
        nearest_try(nearest, "--help");
}

static int unknown_option(const Parser *parser, const char *argument) {
        const OptionSyntax *syntax = parser->syntax;
        _cleanup_free_ char *name = strndup(argument, strcspn(argument, "="));
        Nearest nearest = { .word = name };
        char quoted[160];
        int r;

        if (!name)
                return error_oom(parser->reterr);
        if (streq(name, "--help"))
                return usage_cure(
                        parser, error_set(parser->reterr, ERROR_USAGE, 0, "--help takes no value"));
        r = other_option(parser, name);
        if (r < 0)
                return usage_cure(parser, r);
        try_options(syntax, &nearest);

        (void)str_quote(name, quoted, sizeof(quoted));
        if (!syntax->policy && is_policy_option(name)) {
                r = error_set(parser->reterr, ERROR_USAGE, 0,
                              "only holt create and holt run take %s, because they set the policy",
                              quoted);
                return usage_cure(parser, r);
        }
        if (nearest.best)
                r = error_set(parser->reterr, ERROR_USAGE, 0,
                              "unknown option \"%s\"; did you mean %s?", quoted, nearest.best);
        else
                r = error_set(parser->reterr, ERROR_USAGE, 0, "unknown option \"%s\"", quoted);
        if (!nearest.best && syntax->operands)
                return error_cure(parser->reterr, r,
                                  "\"holt %s --help\" lists the options. If this is not an option, "
                                  "write \"--\" before it to end the options.",
                                  syntax->verb);
        return usage_cure(parser, r);
}

/* --- values --- */

static int fail_value(Parser *parser, const char *name, const char *arg) {
        const char *next = parser->next < parser->argc ? parser->argv[parser->next] : "";
        char quoted[160];
        int r = error_set(parser->reterr, ERROR_USAGE, 0, "%s needs a value: %s %s", name, name,
                          arg);

        if (!str_starts(next, "--"))
                return usage_cure(parser, r);
        if (streq(next, "--"))
                return error_cure(parser->reterr, r,
                                  "\"--\" ends the options, so write the value before it.");
        (void)str_quote(next, quoted, sizeof(quoted));
        return error_cure(parser->reterr, r,
                          "holt takes \"%s\" for an option. To use it as a value, write %s=%s",
                          quoted, name, quoted);
}

/* Takes the value of an option: the text after "=", or else the next argument. An argument that
 * starts with "--" is never a value, so "--ro -- make" is an error. arg is the value's name in the
 * help; NULL means that the option takes none. */
static int take_value(Parser *parser, const char *name, const char *arg, const char **value) {
        int r;

        if (!arg && *value) {
                r = error_set(parser->reterr, ERROR_USAGE, 0, "%s takes no value", name);
                return usage_cure(parser, r);
        }
        if (arg && !*value && parser->next < parser->argc &&
            !str_starts(parser->argv[parser->next], "--"))
                *value = parser->argv[parser->next++];
        return arg && (!*value || **value == '\0') ? fail_value(parser, name, arg) : 0;
}

static int options_set_enum(Parser *parser, const Option *option, const char *value) {
        char quoted[160];
        unsigned i = 0;
        int r;

        assert(value);
        while (option->names[i] && !streq(option->names[i], value))
                i++;
        if (option->names[i]) {
                *(unsigned *)(void *)(parser->target + option->offset) = i;
                return 0;
        }
        r = error_set(parser->reterr, ERROR_USAGE, 0, "%s: \"%s\" must be one of %s", option->name,
                      str_quote(value, quoted, sizeof(quoted)), option->arg);
        return usage_cure(parser, r);
}

static int set_option(Parser *parser, const Option *option, const char *value) {
        void *at = parser->target + option->offset;

        switch (option->kind) {
        case OPTION_BOOL:
                *(bool *)at = true;
                return 0;
        case OPTION_STRING:
                *(const char **)at = value;
                return 0;
        case OPTION_LIST:
                return strlist_add(at, value) < 0 ? error_oom(parser->reterr) : 0;
        case OPTION_ENUM:
                return options_set_enum(parser, option, value);
        default:
                assert(false);
                return -EINVAL;
        }
}

/* --- the three kinds of options --- */

/* Each of these parsers returns 1 if it has taken the argument, 0 if the argument is not its own,
 * or a negative errno. */
static int parse_own(Parser *parser, const char *argument) {
        const OptionSyntax *syntax = parser->syntax;
        const char *value;

        for (size_t i = 0; i < syntax->options_count; i++) {
                const Option *option = &syntax->options[i];
                int r;

                if (!name_matches(argument, option->name, &value))
                        continue;
                r = take_value(parser, option->name, option->arg, &value);
                if (r == 0)
                        r = set_option(parser, option, value);
                return r < 0 ? r : 1;
        }
        return 0;
}

static int parse_field(Parser *parser, const char *argument) {
        OptionResult *result = &parser->result;
        const char *value;

        for (size_t i = 0; i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];
                int r;

                if (!field->option || !name_matches(argument, field->option, &value))
                        continue;
                r = take_value(parser, field->option, field->option_arg, &value);
                if (r < 0)
                        return r;
                result->words[result->words_count++] = (OptionWord){ field, value };
                return 1;
        }
        return 0;
}

static int parse_policy(Parser *parser, const char *argument) {
        OptionResult *result = &parser->result;
        const char *value;
        int r;

        if (!name_matches(argument, "--policy", &value))
                return 0;
        r = take_value(parser, "--policy", "NAME|FILE", &value);
        if (r < 0)
                return r;
        result->policies[result->policies_count++] = value;
        return 1;
}

static int parse_option(Parser *parser, const char *argument) {
        int r;

        if (streq(argument, "-h") || streq(argument, "--help")) {
                parser->result.help = true;
                return 0;
        }
        r = parse_own(parser, argument);
        if (r == 0 && parser->syntax->policy)
                r = parse_policy(parser, argument);
        if (r == 0 && parser->syntax->policy)
                r = parse_field(parser, argument);
        if (r == 0)
                return unknown_option(parser, argument);
        return r < 0 ? r : 0;
}

static int take_operand(Parser *parser) {
        OptionResult *result = &parser->result;
        const char *operand = parser->argv[parser->next++];
        char quoted[160];
        int r;

        if (parser->syntax->operands || parser->syntax->operand_ends) {
                result->operands[result->operands_count++] = operand;
                return 0;
        }
        r = error_set(parser->reterr, ERROR_USAGE, 0, "unexpected operand \"%s\"",
                      str_quote(operand, quoted, sizeof(quoted)));
        return usage_cure(parser, r);
}

static int parse_all(Parser *parser) {
        bool options = true;

        while (parser->next < parser->argc && !parser->result.help) {
                const char *argument = parser->argv[parser->next];
                int r = 0;

                if (!options || argument[0] != '-' || argument[1] == '\0') {
                        options = options && !parser->syntax->operand_ends;
                        r = take_operand(parser);
                } else {
                        parser->next++;
                        if (streq(argument, "--"))
                                options = false;
                        else
                                r = parse_option(parser, argument);
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

int options_parse(const OptionSyntax *syntax, int argc, const char *const *argv, void *target,
                  OptionResult *ret, Error *reterr) {
        _cleanup_(parser_clear) Parser parser = {
                .syntax = syntax,
                .argv = argv,
                .argc = argc,
                .next = 1,
                .target = target,
                .reterr = reterr,
        };
        OptionResult *result = &parser.result;
        size_t most = argc > 0 ? (size_t)argc + 1 : 1;
        int r;

        result->policies = calloc(most, sizeof(*result->policies));
        result->words = calloc(most, sizeof(*result->words));
        result->operands = calloc(most, sizeof(*result->operands));
        if (!result->policies || !result->words || !result->operands)
                return error_oom(reterr);
        r = parse_all(&parser);
        if (r < 0)
                return r;
        *ret = *result;
        *result = (OptionResult){ 0 };
        return 0;
}

/* --- from options to a policy --- */

int options_apply(const OptionResult *result, Policy *policy, Error *reterr) {
        for (size_t i = 0; i < result->words_count; i++) {
                const OptionWord *word = &result->words[i];
                int r = policy_set_option(policy, word->field, word->value, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

int options_policy(const OptionResult *result, Policy *policy, Error *reterr) {
        int r = 0;

        if (result->policies_count == 0)
                r = policy_preset(policy, POLICY_PRESET_DEFAULT, "holt", reterr);
        for (size_t i = 0; r == 0 && i < result->policies_count; i++) {
                const char *name = result->policies[i];

                if (policy_name_is_file(name))
                        return error_set(reterr, ERROR_SETUP, 0,
                                         "--policy %s: this program cannot read policy files",
                                         name);
                r = policy_preset(policy, name, "--policy", reterr);
        }
        return r < 0 ? r : options_apply(result, policy, reterr);
}

/* --- help --- */

static void help_row(FILE *out, const char *name, const char *arg, const char *help) {
        int width = fprintf(out, "  %s%s%s", name, arg ? " " : "", arg ? arg : "");

        if (width >= HELP_COLUMN - 1) {
                (void)fputc('\n', out);
                width = 0;
        }
        (void)fprintf(out, "%*s%s\n", HELP_COLUMN - (width < 0 ? 0 : width), "", help);
}

/* The headings of the help, by the first part of a field's path. */
static const struct {
        const char *group, *title;
} help_groups[] = {
        { "filesystem.", "Files" }, { "network.", "Network" }, { "python.", "Python" },
        { "env.", "Environment" },  { "limits.", "Limits" },   { "syscalls.", "System calls" },
        { "layers.", "Layers" },
};

static void help_fields(const char *group, const char *title, FILE *out) {
        bool any = false;

        for (size_t i = 0; i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];

                if (!field->option || !str_starts(field->path, group))
                        continue;
                if (!any)
                        (void)fprintf(out, "\n%s:\n", title);
                any = true;
                help_row(out, field->option, field->option_arg, field->help);
        }
}

/* --- the values of options --- */

static const char *degradable_layer(size_t i) {
        for (Layer layer = LAYER_USER; layer < LAYER_MAX; layer++)
                if (layer_table[layer].degradable && i-- == 0)
                        return layer_table[layer].name;
        return NULL;
}

static const struct {
        const char *arg, *help;
        /* Returns word i of the possible values, or NULL after the last; may be NULL. */
        const char *(*word)(size_t i);
} help_values[] = {
        { "TIME", "number of seconds, or with a unit: 500ms, 30s, 10m, 2h or 1d", NULL },
        { "SIZE", "number of bytes, or with a unit: 64KiB, 512MiB or 2GiB", NULL },
        { "@GROUP",
          "group of system calls; man 5 holt-policy says which are allowed:", syscalls_group_name },
        { "LAYER", "layer that may be left out; holt doctor tries it:", degradable_layer },
};

static bool takes_value(const OptionSyntax *syntax, const char *arg) {
        for (size_t i = 0; i < syntax->options_count; i++)
                if (syntax->options[i].arg && strstr(syntax->options[i].arg, arg))
                        return true;
        for (size_t i = 0; syntax->policy && i < policy_fields_count; i++)
                if (policy_fields[i].option_arg && strstr(policy_fields[i].option_arg, arg))
                        return true;
        return false;
}

static void help_words(const char *(*word)(size_t i), FILE *out) {
        int column = HELP_WIDTH;

        for (size_t i = 0; word(i); i++) {
                if (column + 1 + (int)strlen(word(i)) > HELP_WIDTH)
                        column = fprintf(out, "%s%*s", i > 0 ? "\n" : "", HELP_COLUMN - 1, "");
                column += fprintf(out, " %s", word(i));
        }
        (void)fputc('\n', out);
}

void options_help_values(const char *arg, const char *help, const char *(*word)(size_t i),
                         FILE *out) {
        help_row(out, arg, NULL, help);
        if (word)
                help_words(word, out);
}

static void help_all_values(const OptionSyntax *syntax, FILE *out) {
        (void)fputs("\nValues:\n", out);
        for (size_t i = 0; i < ELEMENTSOF(help_values); i++) {
                if (!takes_value(syntax, help_values[i].arg))
                        continue;
                options_help_values(help_values[i].arg, help_values[i].help, help_values[i].word,
                                    out);
        }
}

void options_help(const OptionSyntax *syntax, FILE *out) {
        (void)fprintf(out, "Usage: holt %s%s%s\n\n%s\n\nOptions:\n", syntax->verb,
                      syntax->usage[0] ? " " : "", syntax->usage, syntax->summary);
        if (syntax->policy)
                help_row(out, "--policy", "NAME|FILE",
                         "preset (strict, standard, permissive, ci) or policy file");
        for (size_t i = 0; i < syntax->options_count; i++)
                help_row(out, syntax->options[i].name, syntax->options[i].arg,
                         syntax->options[i].help);
        help_row(out, "--help", NULL, "print this help and exit");
        for (size_t i = 0; syntax->policy && i < ELEMENTSOF(help_groups); i++)
                help_fields(help_groups[i].group, help_groups[i].title, out);
        if (syntax->policy)
                help_all_values(syntax, out);
        if (syntax->help_epilog)
                (void)fprintf(out, "\n%s\n", syntax->help_epilog);
}
