/* SPDX-License-Identifier: Apache-2.0 */
/* Tests cli/options.c: command lines by table. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/nearest.h"
#include "cli/options.h"

typedef struct Args {
        bool json;
        const char *report;
        StrList allow;
        unsigned color;
} Args;

static const char *const colors[] = { "auto", "always", "never", NULL };

static const Option own[] = {
        { "--json", NULL, "as JSON", OPTION_BOOL, offsetof(Args, json), NULL },
        { "--report", "FILE", "where to", OPTION_STRING, offsetof(Args, report), NULL },
        { "--allow", "NAME", "what", OPTION_LIST, offsetof(Args, allow), NULL },
        { "--color", "auto|always|never", "when", OPTION_ENUM, offsetof(Args, color), colors },
};

static const OptionSyntax run_syntax = {
        .verb = "run",
        .usage = "[OPTIONS] [--] [COMMAND [ARG...]]",
        .summary = "Runs.",
        .options = own,
        .options_count = ELEMENTSOF(own),
        .policy = true,
        .operand_ends = true,
        .help_epilog = "The end.",
};

static const OptionSyntax check_syntax = {
        .verb = "check",
        .usage = "FILE...",
        .summary = "Checks.",
        .options = own,
        .options_count = ELEMENTSOF(own),
        .operands = true,
};

static const OptionSyntax bare_syntax = { .verb = "bare", .usage = "", .summary = "Nothing." };

/* Splits words at '|'; an empty line has no arguments. */
static int parse(const OptionSyntax *syntax, const char *words, Args *args, OptionResult *ret,
                 Error *reterr) {
        static char line[512];
        const char *argv[40] = { "verb" };
        int argc = 1;

        (void)snprintf(line, sizeof(line), "%s", words);
        for (char *at = line; *words; at++) {
                argv[argc++] = at;
                at += strcspn(at, "|");
                if (*at == '\0')
                        break;
                *at = '\0';
        }
        return options_parse(syntax, argc, argv, args, ret, reterr);
}

static void parse_ok(const OptionSyntax *syntax, const char *words, Args *args, OptionResult *ret) {
        Error error = { 0 };

        if (parse(syntax, words, args, ret, &error) != 0)
                fail_msg("%s: %s", words, error.text);
}

static void test_own_options(void **state) {
        OptionResult result = { 0 };
        Args args = { 0 };

        (void)state;
        parse_ok(&run_syntax, "--json|--report=a=b|--allow|x|--allow=y|--color|never", &args,
                 &result);
        assert_true(args.json);
        assert_string_equal(args.report, "a=b");
        assert_int_equal(args.allow.count, 2);
        assert_string_equal(args.allow.items[1], "y");
        assert_int_equal(args.color, 2);
        assert_int_equal(result.operands_count, 0);
        assert_null(result.operands[0]);
        options_clear(&result);

        parse_ok(&run_syntax, "--report|1|--report|2", &args, &result);
        assert_string_equal(args.report, "2");
        options_clear(&result);
        strlist_clear(&args.allow);
}

static void test_operands(void **state) {
        static const struct {
                const OptionSyntax *syntax;
                const char *words;
                size_t count;
                const char *first;
                bool json;
        } cases[] = {
                { &run_syntax, "", 0, NULL, false },
                { &run_syntax, "--json|ls|--json|-x", 3, "ls", true },
                { &run_syntax, "ls|--json", 2, "ls", false },
                { &run_syntax, "--|--json", 1, "--json", false },
                { &run_syntax, "--json|--|--|x", 2, "--", true },
                { &run_syntax, "ls|--|x", 3, "ls", false },
                { &run_syntax, "-|--json", 2, "-", false },
                { &check_syntax, "a|--json|b", 2, "a", true },
                { &check_syntax, "a|--|--json|b", 3, "a", false },
                { &check_syntax, "-", 1, "-", false },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                OptionResult result = { 0 };
                Args args = { 0 };

                parse_ok(cases[i].syntax, cases[i].words, &args, &result);
                assert_int_equal(result.operands_count, cases[i].count);
                assert_null(result.operands[cases[i].count]);
                if (cases[i].first)
                        assert_string_equal(result.operands[0], cases[i].first);
                assert_int_equal(args.json, cases[i].json);
                options_clear(&result);
        }
}

static void test_refused(void **state) {
        static const struct {
                const OptionSyntax *syntax;
                const char *words, *message;
        } cases[] = {
                { &run_syntax, "--timeot=3",
                  "unknown option \"--timeot\"; did you mean --timeout?" },
                { &run_syntax, "--reprot|x",
                  "unknown option \"--reprot\"; did you mean --report?" },
                { &run_syntax, "--polic|x", "unknown option \"--polic\"; did you mean --policy?" },
                { &run_syntax, "--quite-another", "unknown option \"--quite-another\"" },
                { &run_syntax, "--help=x", "--help takes no value" },
                { &run_syntax, "-x", "unknown option \"-x\"" },
                { &run_syntax, "--time", "unknown option \"--time\"; did you mean --timeout?" },
                { &run_syntax, "--timeouts|3",
                  "unknown option \"--timeouts\"; did you mean --timeout?" },
                { &run_syntax, "--a\x1b[0m\n", "unknown option \"--a\\x1b[0m\\x0a\"" },
                { &run_syntax, "--report", "--report needs a value: --report FILE" },
                { &run_syntax, "--report=", "--report needs a value: --report FILE" },
                { &run_syntax, "--timeout", "--timeout needs a value: --timeout TIME" },
                { &run_syntax, "--policy", "--policy needs a value: --policy NAME|FILE" },
                { &run_syntax, "--json=yes", "--json takes no value" },
                { &run_syntax, "--allow-wide=yes", "--allow-wide takes no value" },
                { &run_syntax, "--color=blue",
                  "--color: \"blue\" must be one of auto|always|never" },
                { &check_syntax, "--timeout=3",
                  "only holt create and holt run take --timeout, because they set the policy" },
                { &check_syntax, "--policy=ci",
                  "only holt create and holt run take --policy, because they set the policy" },
                { &bare_syntax, "x", "unexpected operand \"x\"" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                OptionResult result = { 0 };
                _cleanup_free_ char *cure = str_format("\"holt %s --help\" lists the options.",
                                                       cases[i].syntax->verb);
                Args args = { 0 };
                Error error = { 0 };

                assert_int_equal(parse(cases[i].syntax, cases[i].words, &args, &result, &error),
                                 -EINVAL);
                assert_string_equal(error.text, cases[i].message);
                assert_string_equal(error.cure, cure);
                assert_int_equal(error.kind, ERROR_USAGE);
                assert_null(result.operands);
        }
}

static void test_policy_options(void **state) {
        _cleanup_(policy_clear) Policy policy = { 0 };
        OptionResult result = { 0 };
        Args args = { 0 };
        Error error = { 0 };

        (void)state;
        /* --policy is applied first, at any position. */
        parse_ok(&run_syntax,
                 "--timeout|5m|--ro=/a|--ro|/b:/c|--env|A=1|--env=B|--allow-wide|--pids|none|"
                 "--policy|ci|--|true",
                 &args, &result);
        assert_int_equal(result.policies_count, 1);
        assert_string_equal(result.policies[0], "ci");
        if (options_policy(&result, &policy, &error) != 0)
                fail_msg("%s", error.text);
        assert_string_equal(policy.preset, "ci");
        assert_int_equal(policy.timeout, 300 * UINT64_C(1000000));
        assert_int_equal(policy.read_only.count, 2);
        assert_true(strlist_has(&policy.env_set, "A=1"));
        assert_true(strlist_has(&policy.env_pass, "B"));
        assert_true(policy.allow_wide);
        assert_int_equal(policy.pids, 0);
        assert_string_equal(result.operands[0], "true");
        options_clear(&result);
}

static void test_policy_errors(void **state) {
        static const struct {
                const char *words;
                int result;
        } cases[] = {
                { "--timeout|soon", -EINVAL },    { "--env|1=2", -EINVAL },
                { "--workspace|:/x", -EINVAL },   { "--workspace|a:/proc", -EINVAL },
                { "--policy|no-such", -ENOENT },  { "--policy|ci|--policy|strict", -EEXIST },
                { "--policy|./x.json", -EINVAL },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                OptionResult result = { 0 };
                Args args = { 0 };
                Error error = { 0 };

                parse_ok(&run_syntax, cases[i].words, &args, &result);
                assert_int_equal(options_policy(&result, &policy, &error), cases[i].result);
                assert_true(error.text[0] == '-');
                options_clear(&result);
        }
}

static void test_workspace(void **state) {
        static const struct {
                const char *words, *source, *target;
                unsigned mode;
        } cases[] = {
                { "", NULL, NULL, WORKSPACE_READ_WRITE },
                { "--workspace|a", "a", NULL, WORKSPACE_READ_WRITE },
                { "--workspace|a:/b", "a", "/b", WORKSPACE_READ_WRITE },
                { "--workspace|a:/b|--workspace|c", "c", NULL, WORKSPACE_READ_WRITE },
                { "--workspace|a:/b|--workspace|none", "a", "/b", WORKSPACE_NONE },
                { "--workspace|none|--workspace|a", "a", NULL, WORKSPACE_READ_WRITE },
                { "--workspace|./none", "./none", NULL, WORKSPACE_READ_WRITE },
                { "--workspace-mode|ro|--workspace|a", "a", NULL, WORKSPACE_READ_ONLY },
                { "--workspace|a:b:/c", "a:b", "/c", WORKSPACE_READ_WRITE },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(policy_clear) Policy policy = { 0 };
                OptionResult result = { 0 };
                Args args = { 0 };

                parse_ok(&run_syntax, cases[i].words, &args, &result);
                assert_int_equal(options_policy(&result, &policy, NULL), 0);
                assert_int_equal(policy.workspace_mode, cases[i].mode);
                assert_int_equal(policy.workspace_source != NULL, cases[i].source != NULL);
                assert_int_equal(policy.workspace_target != NULL, cases[i].target != NULL);
                if (cases[i].source)
                        assert_string_equal(policy.workspace_source, cases[i].source);
                if (cases[i].target)
                        assert_string_equal(policy.workspace_target, cases[i].target);
                options_clear(&result);
        }
}

static void test_file_or_preset(void **state) {
        static const struct {
                const char *name;
                bool file;
        } cases[] = {
                { "ci", false }, { "ci.json", true }, { "./ci", true },   { "/x", true },
                { "-", true },   { "json", false },   { ".json", false }, { "a.json.x", false },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(policy_name_is_file(cases[i].name), cases[i].file);
}

/* The help contains every option of every table, and no line is too long for a terminal. */
static void test_help(void **state) {
        OptionResult result = { 0 };
        Args args = { 0 };
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        (void)state;
        assert_non_null(out);
        options_help(&run_syntax, out);
        assert_int_equal(fclose(out), 0);
        for (size_t i = 0; i < ELEMENTSOF(own); i++)
                assert_non_null(strstr(text, own[i].name));
        for (size_t i = 0; i < policy_fields_count; i++)
                if (policy_fields[i].option && !strstr(text, policy_fields[i].option))
                        fail_msg("%s is not in the help", policy_fields[i].option);
        assert_non_null(strstr(text, "--policy NAME|FILE"));
        assert_non_null(strstr(text, "Usage: holt run [OPTIONS]"));
        assert_non_null(strstr(text, "The end."));
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
                if (strcspn(line, "\n") > 110)
                        fail_msg("%.*s", (int)strcspn(line, "\n"), line);
        free(text);

        parse_ok(&run_syntax, "--json|-h|--no-such", &args, &result);
        assert_true(result.help);
        options_clear(&result);
}

static void test_nearest(void **state) {
        static const struct {
                const char *word, *candidate;
                bool close;
        } cases[] = {
                { "timeout", "timeout", true },
                { "timeuot", "timeout", true },
                { "timout", "timeout", true },
                { "ab", "ba", true },
                { "ab", "xy", false },
                { "", "a", true },
                { "", "ab", false },
                { "landlock", "syscalls", false },
        };
        char word[2000];

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Nearest nearest = { .word = cases[i].word };

                nearest_try(&nearest, cases[i].candidate);
                assert_int_equal(nearest.best != NULL, cases[i].close);
        }
        memset(word, 'a', sizeof(word) - 1);
        word[sizeof(word) - 1] = '\0';
        nearest_try(&(Nearest){ .word = word }, word);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_own_options),    cmocka_unit_test(test_operands),
                cmocka_unit_test(test_refused),        cmocka_unit_test(test_policy_options),
                cmocka_unit_test(test_policy_errors),  cmocka_unit_test(test_workspace),
                cmocka_unit_test(test_file_or_preset), cmocka_unit_test(test_help),
                cmocka_unit_test(test_nearest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
