/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/options.h"
#include "cli/other-tools.h"
#include "policy/layers.h"
#include "policy/net/rules.h"
#include "policy/syscalls/syscalls.h"

enum { HELP_COLUMN = 30, HELP_WIDTH = 96 };

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
        { "bridge.", "Services" },  { "layers.", "Layers" },
};

/* Options that belong to no policy field, and the part of the help in which each is printed. Every
 * verb that takes a policy has them. */
static const struct {
        const char *group, *name, *arg, *help;
} help_policy[] = {
        { "", "--policy", "NAME|FILE", "preset (strict, standard, permissive, ci) or policy file" },
        { "", "--no-config", NULL, "ignore the policy in ~/.config/holt/config.json" },
        { "filesystem.", "-v", "SRC:DST[:ro]", "the same as --rw SRC:DST, or --ro SRC:DST" },
        { "env.", "--env-file", "FILE",
          "set the environment variables of this file (NAME=VALUE lines)" },
};

static void help_policy_rows(const char *group, FILE *out) {
        for (size_t i = 0; i < ELEMENTSOF(help_policy); i++)
                if (streq(help_policy[i].group, group))
                        help_row(out, help_policy[i].name, help_policy[i].arg, help_policy[i].help);
}

static void help_fields(const OptionSyntax *syntax, const char *group, const char *title,
                        FILE *out) {
        bool any = false;

        for (size_t i = 0; i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];

                if (!field->option || !str_starts(field->path, group))
                        continue;
                if (!any)
                        (void)fprintf(out, "\n%s:\n", title);
                any = true;
                help_row(out, field->option, field->option_arg,
                         syntax->session && field->session_help ? field->session_help
                                                                : field->help);
        }
        help_policy_rows(group, out);
}

/* --- the values of options --- */

static const char *degradable_layer(size_t i) {
        for (Layer layer = LAYER_USER; layer < LAYER_MAX; layer++)
                if (layer_table[layer].degradable && i-- == 0)
                        return layer_table[layer].name;
        return NULL;
}

/* The result is valid until the next call. */
static const char *help_set(size_t i) {
        static char word[80];

        if (i >= net_sets_count)
                return NULL;
        (void)snprintf(word, sizeof(word), "@%s", net_sets[i].name);
        return word;
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
        { "RULE", "NAME[:PORT], *.NAME[:PORT], ADDRESS:PORT, or one of these sets:", help_set },
        { "LAYER", "layer that may be left out; holt doctor tests each:", degradable_layer },
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

/* Prints other tools' short words for options of the verb. */
static void help_other_names(const OptionSyntax *syntax, FILE *out) {
        char text[80];

        for (size_t i = 0; i < other_names_count; i++) {
                const OtherName *name = &other_names[i];
                const char *arg;

                if (strlen(name->word) > 2 || !options_has(syntax, name->ours, &arg))
                        continue;
                (void)snprintf(text, sizeof(text), "the same as %s", name->ours);
                help_row(out, name->word, arg, text);
        }
}

void options_help(const OptionSyntax *syntax, FILE *out) {
        (void)fprintf(out, "Usage: holt %s%s%s\n\n%s\n\nOptions:\n", syntax->verb,
                      syntax->usage[0] ? " " : "", syntax->usage, syntax->summary);
        if (syntax->policy)
                help_policy_rows("", out);
        for (size_t i = 0; i < syntax->options_count; i++)
                help_row(out, syntax->options[i].name, syntax->options[i].arg,
                         syntax->options[i].help);
        help_other_names(syntax, out);
        help_row(out, "--help", NULL, "print this help and exit");
        for (size_t i = 0; syntax->policy && i < ELEMENTSOF(help_groups); i++)
                help_fields(syntax, help_groups[i].group, help_groups[i].title, out);
        if (syntax->policy)
                help_all_values(syntax, out);
        if (syntax->help_epilog)
                (void)fprintf(out, "\n%s\n", syntax->help_epilog);
}
