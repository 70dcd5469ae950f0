/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/operands.h"

#include <string.h>

#include "base/nearest.h"
#include "session/directory.h"

/* Copies word n of a usage, counted from 0, without brackets and dots: "PATH" of "[PATH...]". A
 * word with brackets in brackets is one operand: "[[ADDRESS:]HOSTPORT:]PORT". */
static void usage_word(const char *usage, size_t n, char ret[80]) {
        const char *word = usage;

        for (; n > 0 && *word; n--) {
                word += strcspn(word, " ");
                word += strspn(word, " ");
        }
        if (!str_starts(word, "[["))
                word += strspn(word, "[");
        (void)snprintf(ret, 80, "%.*s", (int)strcspn(word, *word == '[' ? " " : " .]"), word);
}

int operands_check(const char *verb, const char *usage, const char *const *operands, size_t count,
                   size_t least, size_t most, Error *reterr) {
        char word[80], quoted[160];
        int r;

        if (count >= least && count <= most)
                return 0;
        if (count < least) {
                usage_word(usage, count, word);
                r = error_set(reterr, ERROR_USAGE, 0, "missing %s", word);
        } else {
                (void)str_quote(operands[most], quoted, sizeof(quoted));
                r = error_set(reterr, ERROR_USAGE, 0, "unexpected operand \"%s\"", quoted);
        }
        return error_cure(reterr, r, "holt %s %s", verb, usage);
}

/* --- subverbs --- */

static const Subverb *operands_find(const Subverb *table, size_t count, const char *name) {
        for (size_t i = 0; i < count; i++)
                if (streq(table[i].name, name))
                        return &table[i];
        return NULL;
}

/* Lists the names of the table: "get | set | delete". */
static void list_names(const Subverb *table, size_t count, char ret[256]) {
        ret[0] = '\0';
        for (size_t i = 0; i < count; i++)
                (void)snprintf(ret + strlen(ret), 256 - strlen(ret), "%s%s", i ? " | " : "",
                               table[i].name);
}

static int refuse_subverb(const char *verb, const Subverb *table, size_t table_count,
                          const char *const *operands, Error *reterr) {
        Nearest nearest = { .word = operands[1] };
        char quoted[160], names[256];
        int r;

        (void)str_quote(operands[1], quoted, sizeof(quoted));
        if (operands_find(table, table_count, operands[0])) {
                r = error_set(reterr, ERROR_USAGE, 0, "write the session's name before \"%s\"",
                              operands[0]);
                return error_cure(reterr, r, "holt %s %s %s", verb, quoted, operands[0]);
        }
        for (size_t i = 0; i < table_count; i++)
                nearest_try(&nearest, table[i].name);
        list_names(table, table_count, names);
        r = error_set(reterr, ERROR_USAGE, 0, "unknown verb \"%s\"%s%s%s", quoted,
                      nearest.best ? "; did you mean \"" : "", nearest.best ? nearest.best : "",
                      nearest.best ? "\"?" : "");
        return error_cure(reterr, r, "holt %s NAME %s", verb, names);
}

int operands_subverb(const char *verb, const Subverb *table, size_t table_count,
                     const char *const *operands, size_t count, size_t *ret, Error *reterr) {
        const Subverb *subverb = count > 1 ? operands_find(table, table_count, operands[1]) : NULL;
        char names[256], two[80], usage[320];
        int r;

        if (count < 2) {
                const bool named = count == 1 && !operands_find(table, table_count, operands[0]);

                list_names(table, table_count, names);
                r = error_set(reterr, ERROR_USAGE, 0, "missing %s", named ? "VERB" : "NAME");
                return error_cure(reterr, r, "holt %s NAME %s ...", verb, names);
        }
        if (!subverb)
                return refuse_subverb(verb, table, table_count, operands, reterr);
        *ret = (size_t)(subverb - table);
        (void)snprintf(two, sizeof(two), "%s NAME %s", verb, subverb->name);
        (void)snprintf(usage, sizeof(usage), "%s", subverb->usage);
        return operands_check(two, usage, operands + 2, count - 2, subverb->least, subverb->most,
                              reterr);
}

/* --- names --- */

/* Finds "NAME" after "holt VERB" in text. Returns NULL if there is none. */
static char *find_name(char *text) {
        for (char *at = strstr(text, "holt "); at; at = strstr(at + 1, "holt ")) {
                char *name = at + 5 + strspn(at + 5, "abcdefghijklmnopqrstuvwxyz");

                /* "holt route remove NAME" */
                if (str_starts(at + 5, "route "))
                        name = at + 11 + strspn(at + 11, "abcdefghijklmnopqrstuvwxyz");
                if (strncmp(name, " NAME", 5) == 0 && strchr(" \n;,.:", name[5]))
                        return name + 1;
        }
        return NULL;
}

static void name_session(const char *name, char *text, size_t size) {
        char *at;

        while ((at = find_name(text))) {
                const size_t before = (size_t)(at - text);
                _cleanup_free_ char *after = strdup(at + 4);

                if (!after)
                        return;
                (void)snprintf(at, size - before, "%s%s", name, after);
        }
}

void operands_name_session(const char *name, Error *error) {
        if (!name || session_name_check(name, NULL) < 0 || streq(name, "NAME"))
                return;
        if (streq(error->text, "missing NAME"))
                return;
        name_session(name, error->text, sizeof(error->text));
        name_session(name, error->cure, sizeof(error->cure));
}
