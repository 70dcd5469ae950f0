/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/hints.h"

static void check(const char *hint, const char *wanted) {
        Error error = { 0 };

        (void)strcpy(error.cure, hint);
        hint_for_methods(&error);
        assert_string_equal(error.cure, wanted);
}

static void test_verbs(void **state) {
        (void)state;
        check("holt ls lists them, holt rm NAME takes one away.",
              "session.list lists them, session.remove takes one away.");
        check("Use it, or take it away: holt rm work", "Use it, or take it away: session.remove");
        check("take it away by holt rm.", "take it away by session.remove.");
        check("Look (holt ps NAME), and end it: holt kill NAME ID, or holt stop NAME",
              "Look (process.list), and end it: process.kill, or session.stop");
        check("To create it: holt create work. Done", "To create it: session.create. Done");
        check("holt rebind work\nIf not", "session.rebind\nIf not");
        check("Get it: holt wait NAME ID", "Get it: process.wait");
}

/* These are hints of sandbox/failure.c and session/directory.c, with words that a client chose. */
static void test_commands(void **state) {
        (void)state;
        check("Use it: holt exec work -- COMMAND\nOther words.",
              "Use it: exec with argv: [\"COMMAND\"]\nOther words.");
        check("separately: holt exec NAME -- ls -l\nFor a shell: holt exec NAME -- bash -c 'ls -l'",
              "separately: exec with argv: [\"ls\", \"-l\"]\n"
              "For a shell: exec with argv: [\"bash\", \"-c\", \"ls -l\"]");
        check("holt exec NAME -- bash -c 'echo '\\''a'\\''  b' \"x\"",
              "exec with argv: [\"bash\", \"-c\", \"echo 'a'  b\", \"\\\"x\\\"\"]");
        check("holt exec NAME -- ls  it's", "exec with argv: [\"ls\", \"it's\"]");
        check("To see it: holt wait work p1, holt kv work or holt files work",
              "To see it: process.wait, kv.keys or files.list");
}

static void test_quoted_values(void **state) {
        (void)state;
        check("To set a variable: --env 'A=b c'", "To set a variable: env.set: {\"A\": \"b c\"}");
        check("--env 'A=b=\"c\"'", "env.set: {\"A\": \"b=\\\"c\\\"\"}");
        check("Quote the pattern: --hide '*.pem'",
              "Quote the pattern: filesystem.hide: [\"*.pem\"]");
        check("(--hide .env --hide '*.pem' or '**/.env')",
              "(filesystem.hide: [\".env\"] filesystem.hide: [\"*.pem\"] or '**/.env')");
        check("--ro '/opt/a b' is the command's", "filesystem.read_only: [\"/opt/a b\"] is the "
                                                  "command's");
        check("--policy FILE", "policy_name: \"FILE\"");
}

static void test_options(void **state) {
        (void)state;
        check("Give it up: --protect none", "Give it up: filesystem.protect: [\"none\"]");
        check("needs no files: --workspace none",
              "needs no files: filesystem.workspace.mode: \"none\"");

        check("by --ro or --rw.", "by filesystem.read_only or filesystem.read_write.");
        check("(--ro DIR) and (--env PATH=/usr/bin:/bin)",
              "(filesystem.read_only: [\"DIR\"]) and (env.set: {\"PATH\": \"/usr/bin:/bin\"})");
        check("--ro /opt/a --ro /opt/b.",
              "filesystem.read_only: [\"/opt/a\"] filesystem.read_only: [\"/opt/b\"].");
        check("is --open-files N.", "is limits.open_files: N.");
        check("--allow-degraded seccomp", "allow_degraded: [\"seccomp\"]");
        check("read-only: --ro, --workspace-mode ro",
              "read-only: filesystem.read_only, filesystem.workspace.mode: \"ro\"");
        check("--cwd names another", "cwd names another");
}

/* Other programs have options, too, and some verbs of holt have no method. */
static void test_words_that_stay(void **state) {
        static const char *const hints[] = {
                "",
                "git pack-refs --all",
                "holt doctor tries every layer and says more",
                "without a session: holt run --allow-degraded idmap\nholt run -- COMMAND",
                "docker run --security-opt seccomp=unconfined",
                "a--ro b",
                "holt",
                "--",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++)
                check(hints[i], hints[i]);
}

/* The rewritten hint is longer than the original, so it is cut to the room in an Error. */
static void test_a_hint_that_is_full(void **state) {
        Error error = { 0 };

        (void)state;
        while (strlen(error.cure) + 16 < sizeof(error.cure))
                (void)strcat(error.cure, "--protect none ");
        hint_for_methods(&error);
        assert_int_equal(strlen(error.cure), sizeof(error.cure) - 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_verbs),           cmocka_unit_test(test_commands),
                cmocka_unit_test(test_quoted_values),   cmocka_unit_test(test_options),
                cmocka_unit_test(test_words_that_stay), cmocka_unit_test(test_a_hint_that_is_full),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
