/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/env-file.h"
#include "cli/other-tools.h"

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
        for (size_t i = 0; i < result->words_count; i++)
                free(result->words[i].owned);
        strlist_clear(&result->env_files);
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
static bool word_matches(const char *argument, const char *name, const char **ret_value) {
        size_t length = strlen(name);

        if (strncmp(argument, name, length) != 0)
                return false;
        if (argument[length] != '\0' && argument[length] != '=')
                return false;
        *ret_value = argument[length] == '=' ? argument + length + 1 : NULL;
        return true;
}

/* Does the same, and also accepts another tool's word for the option, such as "-e". */
static bool name_matches(const char *argument, const char *name, const char **ret_value) {
        if (word_matches(argument, name, ret_value))
                return true;
        for (size_t i = 0; i < other_names_count; i++)
                if (streq(other_names[i].ours, name) &&
                    word_matches(argument, other_names[i].word, ret_value))
                        return true;
        return false;
}

/* Options of other tools that differ too much from ours to be taken for typing mistakes. */
static const struct {
        const char *word, *ours, *more; /* more: a second meaning, or NULL */
} other_words[] = {
        { "--bind", "--rw", NULL },
        { "--chdir", "--cwd", NULL },
        { "--mount", "--ro", "--rw" },
        { "--readonly", "--ro", "--workspace-mode ro" },
        { "--ro-bind", "--ro", NULL },
        { "--setenv", "--env", NULL },
        { "--verbose", "--report", "--json" },
        { "-C", "--cwd", NULL },
        { "-n", "--tail", NULL },
        { "-n", "--limit", NULL },
};

bool options_has(const OptionSyntax *syntax, const char *name, const char **ret_arg) {
        const PolicyField *field;

        for (size_t i = 0; i < syntax->options_count; i++)
                if (streq(syntax->options[i].name, name)) {
                        *ret_arg = syntax->options[i].arg;
                        return true;
                }
        field = syntax->policy ? policy_field_of_option(name) : NULL;
        if (field)
                *ret_arg = field->option_arg;
        return field;
}

/* Fails with a hint if name is another tool's word for an option of this verb. Otherwise returns
 * 0. */
static int other_option(const Parser *parser, const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(other_words); i++) {
                const char *ours = other_words[i].ours, *more = other_words[i].more, *ignored;

                if (streq(other_words[i].word, name) && options_has(parser->syntax, ours, &ignored))
                        return error_set(parser->reterr, ERROR_USAGE, 0,
                                         "unknown option \"%s\"; did you mean %s%s%s?", name, ours,
                                         more ? " or " : "", more ? more : "");
        }
        return 0;
}

static bool is_policy_option(const char *name) {
        return streq(name, "--policy") || policy_field_of_option(name);
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
        const char *hint;
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
        hint = other_option_hint(syntax, name);
        if (hint)
                return error_cure(
                        parser->reterr,
                        error_set(parser->reterr, ERROR_USAGE, 0, "unknown option \"%s\"", name),
                        "%s", hint);
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
                if (r == 0 && streq(field->option, "--tmpfs"))
                        r = other_tmpfs_check(value, parser->reterr);
                if (r < 0)
                        return r;
                result->words[result->words_count++] = (OptionWord){ field, value, NULL };
                return 1;
        }
        return 0;
}

/* -v SRC:DST[:ro] is --rw or --ro. */
static int parse_volume(Parser *parser, const char *argument) {
        OptionResult *result = &parser->result;
        OptionWord word = { 0 };
        const char *value;
        int r;

        if (!name_matches(argument, "-v", &value) && !name_matches(argument, "--volume", &value))
                return 0;
        r = take_value(parser, "-v", "SRC:DST[:ro]", &value);
        if (r == 0)
                r = other_volume(value, &word.field, &word.owned, parser->reterr);
        if (r < 0)
                return r;
        word.value = word.owned;
        result->words[result->words_count++] = word;
        return 1;
}

static int parse_no_config(Parser *parser, const char *argument) {
        const char *value;

        if (!name_matches(argument, "--no-config", &value))
                return 0;
        parser->result.no_config = true;
        return take_value(parser, "--no-config", NULL, &value) < 0 ? -EINVAL : 1;
}

static int parse_env_file(Parser *parser, const char *argument) {
        const char *value;
        int r;

        if (!name_matches(argument, "--env-file", &value))
                return 0;
        r = take_value(parser, "--env-file", "FILE", &value);
        if (r == 0)
                r = strlist_add(&parser->result.env_files, value) < 0 ? error_oom(parser->reterr)
                                                                      : 1;
        return r;
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
        static int (*const of_policy[])(Parser * parser, const char *argument) = {
                parse_policy, parse_no_config, parse_field, parse_volume, parse_env_file
        };
        int r;

        if (streq(argument, "-h") || streq(argument, "--help")) {
                parser->result.help = true;
                return 0;
        }
        r = parse_own(parser, argument);
        for (size_t i = 0; r == 0 && parser->syntax->policy && i < ELEMENTSOF(of_policy); i++)
                r = of_policy[i](parser, argument);
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

static int apply_env_files(const OptionResult *result, Policy *policy, Error *reterr) {
        _cleanup_(strlist_clear) StrList env = { 0 };
        int r = env_files_read(&result->env_files, NULL, &env, reterr);

        for (size_t i = 0; r == 0 && i < env.count; i++)
                r = policy_set(policy, "env.set", env.items[i], ORIGIN_CALLER, "--env-file",
                               reterr);
        return r;
}

int options_apply(const OptionResult *result, Policy *policy, Error *reterr) {
        int failed = apply_env_files(result, policy, reterr);

        if (failed < 0)
                return failed;
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
