/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "cli/tool-words.h"

/* Returns the words, each in brackets, with "=" before words that are not plain. */
static const char *split(const char *command, const char *home, Error *reterr) {
        static char text[1000];
        ToolWords words = { 0 };
        size_t length = 0;

        text[0] = '\0';
        if (tool_words_split("t", command, home, &words, reterr) < 0)
                return NULL;
        for (size_t i = 0; i < words.count; i++)
                length += (size_t)snprintf(text + length, sizeof(text) - length, "%s[%s]",
                                           words.items[i].plain ? "" : "=", words.items[i].text);
        tool_words_clear(&words);
        return text;
}

static void test_words(void **state) {
        static const struct {
                const char *command, *words;
        } cases[] = {
                { "a", "[a]" },
                { "  a \t b  ", "[a][b]" },
                { "a 'b c' \"d e\"f", "[a]=[b c]=[d ef]" },
                { "a ''", "[a]=[]" },
                { "a 'x'\"y\"\\z", "[a]=[xyz]" },
                { "a b\\ c \\$d \\*", "[a]=[b c]=[$d]=[*]" },
                { "a \"\\$b \\` \\\" \\\\ \\x\"", "[a]=[$b ` \" \\ \\x]" },
                { "a '$b `c` \"* \\d'", "[a]=[$b `c` \"* \\d]" },
                { "a 'b\nc'", "[a]=[b\nc]" },
                { "~/x ~ ~/", "[/home/me/x][/home/me][/home/me/]" },
                { "a '~/x' \\~/x b~ c=~/d", "[a]=[~/x]=[~/x][b~][c=~/d]" },
                { "env A=1 b", "[env][A=1][b]" },
                { "./a=b", "[./a=b]" },
                { "-a=b", "[-a=b]" },
                { "tr a-z A-Z", "[tr][a-z][A-Z]" },
                { "date +%s, @x ^y", "[date][+%s,][@x][^y]" },
        };
        Error error;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *words = split(cases[i].command, "/home/me", &error);

                if (!words || !streq(words, cases[i].words))
                        fail_msg("<%s>: %s", cases[i].command, words ? words : error.text);
        }
}

static void test_syntax_of_a_shell_is_refused(void **state) {
        static const char *const cases[] = {
                "",      " ",      "''",      "a 'b",   "a \"b",     "a \\",      "a \\\nb", "a\nb",
                "a\rb",  "a $b",   "$a",      "${a}",   "a \"$b\"",  "a \"`b`\"", "a `b`",   "a *",
                "a?",    "a [b]",  "a {b,c}", "(a)",    "a;b",       "a|b",       "a & b",   "a&&b",
                "a <b",  "a >b",   "a 2>&1",  "a # b",  "! a",       "~root/a",   "a ~root", "~+/a",
                "A=1 b", "A+=1 b", "A='1' b", "a $'b'", "a ${HOME}", "_a1=x b",
        };
        Error error;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                if (split(cases[i], "/home/me", &error))
                        fail_msg("<%s> is split", cases[i]);
                assert_int_equal(error.kind, ERROR_USAGE);
        }
        /* Tests each special character of shells at each place. */
        for (const char *c = "$*?[]{}();|&<>`!#\n\r"; *c; c++) {
                const char middle[] = { 'a', *c, 'b', '\0' }, first[] = { 'a', ' ', *c, '\0' };

                assert_null(split(middle, "/home/me", &error));
                assert_null(split(first, "/home/me", &error));
        }
        assert_null(split("~/a", NULL, &error));
        assert_null(split("~/a", "relative", &error));
        assert_non_null(split("a", NULL, &error));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_syntax_of_a_shell_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
