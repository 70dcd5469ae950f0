/* SPDX-License-Identifier: Apache-2.0 */
#include "files/grep-pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/strings.h"

typedef struct Cost {
        uint64_t sums[GREP_DEPTH_MAX + 1]; /* Cost of each open group. */
        unsigned depth;
        uint64_t last; /* Cost of the previous atom, which a repetition multiplies. */
} Cost;

/* Returns the place behind the "]" of the bracket expression that starts at s, or the end of s. */
static const char *bracket_end(const char *s) {
        s += *s == '^';
        s += *s == ']';
        while (*s && *s != ']') {
                char kind = 0;

                if (s[0] == '[')
                        kind = s[1];
                /* [:alpha:], [.x.], [=x=] */
                if (kind == ':' || kind == '.' || kind == '=') {
                        for (s += 2; *s && !(s[0] == kind && s[1] == ']'); s++)
                                ;
                        s += *s ? 1 : 0;
                }
                s += *s ? 1 : 0;
        }
        return *s ? s + 1 : s;
}

/* Returns the larger number plus one for "{n}", "{n,}" and "{n,m}". Moves *s behind it. */
static uint64_t pattern_interval(const char **s) {
        uint64_t largest = 0, number = 0;

        for (; **s && **s != '}'; (*s)++) {
                number = isdigit((unsigned char)**s) ? number * 10 + (uint64_t)(**s - '0') : 0;
                if (number > GREP_COST_MAX)
                        number = GREP_COST_MAX;
                if (number > largest)
                        largest = number;
        }
        *s += **s == '}';
        return largest + 1;
}

static void cost_atom(Cost *cost, uint64_t atom) {
        cost->last = atom;
        cost->sums[cost->depth] += atom;
}

/* Multiplies the cost of the previous atom by factor. */
static int cost_repeat(Cost *cost, uint64_t factor) {
        cost->sums[cost->depth] += cost->last * (factor - 1);
        cost->last *= factor;
        return cost->last > GREP_COST_MAX || cost->sums[cost->depth] > GREP_COST_MAX ? -E2BIG : 0;
}

static int cost_group(Cost *cost, bool opens) {
        if (opens) {
                if (cost->depth == GREP_DEPTH_MAX)
                        return -E2BIG;
                cost->sums[++cost->depth] = 1;
                return 0;
        }
        /* An unmatched parenthesis is left to regcomp(3), which refuses it or takes it as a
         * character. */
        if (cost->depth > 0)
                cost->depth--;
        cost_atom(cost, cost->sums[cost->depth + 1]);
        return 0;
}

/* Counts one character, bracket expression or repetition of the pattern. Moves *s behind it. */
static int cost_step(Cost *cost, const char **s) {
        char c = *(*s)++;

        switch (c) {
        case '(':
        case ')':
                return cost_group(cost, c == '(');
        case '{':
                return cost_repeat(cost, pattern_interval(s));
        case '+':
                return cost_repeat(cost, 2);
        case '[':
                *s = bracket_end(*s);
                break;
        case '\\':
                if (isdigit((unsigned char)**s))
                        return -EINVAL;
                *s += **s ? 1 : 0;
                break;
        default:
                break;
        }
        cost_atom(cost, 1);
        return cost->sums[cost->depth] > GREP_COST_MAX ? -E2BIG : 0;
}

static int check_cost(const char *pattern) {
        Cost cost = { 0 };
        int r = strlen(pattern) > GREP_PATTERN_MAX ? -E2BIG : 0;

        while (r == 0 && *pattern)
                r = cost_step(&cost, &pattern);
        return r;
}

int grep_pattern_compile(const char *pattern, bool ignore_case, regex_t *ret, Error *reterr) {
        int flags = REG_EXTENDED | REG_NOSUB | (ignore_case ? REG_ICASE : 0);
        char quoted[512], reason[128];
        int r = check_cost(pattern);

        (void)str_quote(pattern, quoted, sizeof(quoted));
        if (r == -E2BIG)
                return error_cure(
                        reterr,
                        error_set(reterr, ERROR_LIMIT, E2BIG, "cannot search for %s", quoted),
                        "The pattern is too long, or nests too many repetitions.");
        if (r < 0)
                return error_cure(
                        reterr,
                        error_set(reterr, ERROR_USAGE, EINVAL, "cannot search for %s", quoted),
                        "Back-references (\\1) are not supported.");
        r = regcomp(ret, pattern, flags);
        if (r == REG_ESPACE)
                return error_oom(reterr);
        if (r == 0)
                return 0;
        (void)regerror(r, ret, reason, sizeof(reason));
        return error_cure(reterr,
                          error_set(reterr, ERROR_USAGE, EINVAL, "cannot search for %s", quoted),
                          "It is not a valid POSIX extended regular expression: %s.", reason);
}
