/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json-scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strings.h"
#include "base/utf8.h"

/* cJSON copies a number into 64 bytes and silently parses the rest as something else. */
enum { NUMBER_MAX = 40 };

/* Number of digits that a double always keeps (DBL_DIG). */
enum { DIGITS_EXACT = 15 };
/* Number of digits that tell any double from its neighbours (DBL_DECIMAL_DIG). */
enum { DIGITS_MAX = 17 };

typedef struct Scanner {
        const char *start, *at, *end;
        const char *name;
        unsigned depth;
        Error *reterr;
} Scanner;

static int scan_value(Scanner *s);

/* Lines and columns count from 1, and columns count characters, like those of an editor. */
static int scan_fail_at(const Scanner *s, const char *where, const char *what) {
        size_t line = 1, column = 1;
        char quoted[400];

        for (const char *p = s->start; p < where; p++) {
                if (*p == '\n') {
                        line++;
                        column = 1;
                } else if (((unsigned char)*p & 0xc0) != 0x80) {
                        column++;
                }
        }
        return error_set(s->reterr, ERROR_POLICY, 0, "%s:%zu:%zu: %s",
                         str_quote(s->name, quoted, sizeof(quoted)), line, column, what);
}

static int scan_fail(const Scanner *s, const char *what) {
        return scan_fail_at(s, s->at, what);
}

static int scan_peek(const Scanner *s) {
        return s->at < s->end ? (unsigned char)*s->at : -1;
}

static bool scan_take(Scanner *s, char c) {
        if (scan_peek(s) != (unsigned char)c)
                return false;
        s->at++;
        return true;
}

static void skip_blank(Scanner *s) {
        while (s->at < s->end && strchr(" \t\n\r", *s->at) && *s->at)
                s->at++;
}

/* Returns the value of four hex digits, or -1. */
static int scan_hex4(Scanner *s) {
        int value = 0;

        for (int i = 0; i < 4; i++) {
                int c = scan_peek(s);

                if (json_is_digit(c))
                        value = value * 16 + c - '0';
                else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                        value = value * 16 + (c | 0x20) - 'a' + 10;
                else
                        return -1;
                s->at++;
        }
        return value;
}

/* Scans the digits after "\u". A surrogate must come as a pair, high one first. */
static int scan_unicode(Scanner *s) {
        const char *begin = s->at - 2;
        int value = scan_hex4(s), low;

        if (value < 0)
                return scan_fail_at(s, begin, "\\u needs four hex digits");
        if (value == 0)
                return scan_fail_at(s, begin, "\\u0000 would cut the string");
        if (value < 0xd800 || value > 0xdfff)
                return 0;
        if (value > 0xdbff || !scan_take(s, '\\') || !scan_take(s, 'u'))
                return scan_fail_at(s, begin, "half of a surrogate pair");
        low = scan_hex4(s);
        if (low < 0xdc00 || low > 0xdfff)
                return scan_fail_at(s, begin, "half of a surrogate pair");
        return 0;
}

static int scan_escape(Scanner *s) {
        int c = scan_peek(s);

        if (c <= 0 || !strchr("\"\\/bfnrtu", c))
                return scan_fail_at(s, s->at - 1, "unknown escape in a string");
        s->at++;
        return c == 'u' ? scan_unicode(s) : 0;
}

static int scan_string(Scanner *s) {
        const char *begin = s->at++;

        for (;;) {
                size_t sequence;
                int c = scan_peek(s), r;

                if (c < 0)
                        return scan_fail_at(s, begin, "this string does not end");
                if (c < 0x20)
                        return scan_fail(s, "a control character in a string; write it as \\u00XX");
                if (c == '"') {
                        s->at++;
                        return 0;
                }
                if (c == '\\') {
                        s->at++;
                        r = scan_escape(s);
                        if (r < 0)
                                return r;
                        continue;
                }
                sequence = utf8_sequence(s->at, (size_t)(s->end - s->at));
                if (sequence == 0)
                        return scan_fail(s, "not UTF-8");
                s->at += sequence;
        }
}

static size_t scan_digits(Scanner *s) {
        const char *begin = s->at;

        while (json_is_digit(scan_peek(s)))
                s->at++;
        return (size_t)(s->at - begin);
}

/* Counts the digits from the first nonzero one to the last nonzero one. */
static int significant_digits(const char *number) {
        int count = 0, last = 0;

        for (; *number && (*number | 0x20) != 'e'; number++) {
                if (!json_is_digit(*number) || (count == 0 && *number == '0'))
                        continue;
                count++;
                if (*number != '0')
                        last = count;
        }
        return last;
}

/* Whether the double, printed with as many digits as the text has, is a different number. A double
 * keeps any 15 digits. A number of more than 17 digits was never meant as a double. */
static bool loses_digits(const char *number, double value) {
        const int count = significant_digits(number);
        char printed[NUMBER_MAX + 1], *at = printed;

        if (count <= DIGITS_EXACT || count > DIGITS_MAX)
                return count > DIGITS_MAX;
        (void)snprintf(printed, sizeof(printed), "%.*e", count - 1, value);
        for (int compared = 0; compared < count; number++) {
                if (!json_is_digit(*number) || (compared == 0 && *number == '0'))
                        continue;
                while (!json_is_digit(*at))
                        at++;
                if (*at++ != *number)
                        return true;
                compared++;
        }
        return false;
}

/* Refuses a number that cJSON would change. Such a number is too long, larger than any double, or
 * an integer that a double cannot tell from its neighbours. This last kind includes numbers that
 * round to such an integer, for example 0.99999999999999999999. */
static int check_number(const Scanner *s, const char *begin) {
        size_t length = (size_t)(s->at - begin);
        char copy[NUMBER_MAX + 1];
        double value;

        if (length > NUMBER_MAX)
                return scan_fail_at(s, begin, "a number of more than 40 characters");
        memcpy(copy, begin, length);
        copy[length] = '\0';
        value = strtod(copy, NULL);
        if (!isfinite(value))
                return scan_fail_at(s, begin, "a number that is too large");
        if (!json_is_integer(value))
                return 0;
        if (strspn(copy, "-0123456789") == length) {
                if (fabs(value) > (double)JSON_INTEGER_MAX)
                        return scan_fail_at(s, begin,
                                            "an integer beyond 2^53 - 1 would lose digits");
        } else if (loses_digits(copy, value)) {
                return scan_fail_at(s, begin, "a number that would lose digits");
        }
        return 0;
}

static int scan_number(Scanner *s) {
        const char *begin = s->at;

        (void)scan_take(s, '-');
        if (scan_take(s, '0')) {
                if (json_is_digit(scan_peek(s)))
                        return scan_fail_at(s, begin, "a number must not start with 0");
        } else if (scan_digits(s) == 0) {
                return scan_fail_at(s, begin, "not a JSON value");
        }
        if (scan_take(s, '.') && scan_digits(s) == 0)
                return scan_fail(s, "a number needs a digit after its decimal point");
        if (scan_take(s, 'e') || scan_take(s, 'E')) {
                if (!scan_take(s, '+'))
                        (void)scan_take(s, '-');
                if (scan_digits(s) == 0)
                        return scan_fail(s, "a number needs a digit in its exponent");
        }
        return check_number(s, begin);
}

static int scan_word(Scanner *s) {
        static const char *const words[] = { "true", "false", "null" };

        for (size_t i = 0; i < ELEMENTSOF(words); i++) {
                size_t length = strlen(words[i]);

                if ((size_t)(s->end - s->at) >= length && memcmp(s->at, words[i], length) == 0) {
                        s->at += length;
                        return 0;
                }
        }
        return scan_fail(s, s->at == s->end ? "expected a value, but the text ends here"
                                            : "not a JSON value");
}

/* Scans a member's key and colon. */
static int scan_key(Scanner *s) {
        int r;

        if (scan_peek(s) != '"')
                return scan_fail(s, "expected a key in double quotes");
        r = scan_string(s);
        if (r < 0)
                return r;
        skip_blank(s);
        return scan_take(s, ':') ? 0 : scan_fail(s, "expected \":\"");
}

/* Scans the members or items of an object or array; the opening bracket has been read. */
static int scan_members(Scanner *s, bool object) {
        char close = object ? '}' : ']';
        int r;

        skip_blank(s);
        if (scan_take(s, close))
                return 0;
        for (bool first = true;; first = false) {
                skip_blank(s);
                if (!first && scan_peek(s) == close)
                        return scan_fail(s, object ? "remove the \",\" before this \"}\""
                                                   : "remove the \",\" before this \"]\"");
                r = object ? scan_key(s) : 0;
                if (r == 0)
                        r = scan_value(s);
                if (r < 0)
                        return r;
                if (scan_take(s, close))
                        return 0;
                if (!scan_take(s, ','))
                        return scan_fail(s, object ? "expected \",\" or \"}\""
                                                   : "expected \",\" or \"]\"");
        }
}

/* Scans one value and the blanks on both sides. */
static int scan_value(Scanner *s) {
        int c, r;

        skip_blank(s);
        c = scan_peek(s);
        if (c == '{' || c == '[') {
                if (s->depth == JSON_DEPTH_MAX)
                        return scan_fail(s, "objects and arrays are nested more than 64 deep");
                s->depth++;
                s->at++;
                r = scan_members(s, c == '{');
                s->depth--;
        } else if (c == '"') {
                r = scan_string(s);
        } else if (c == '-' || json_is_digit(c)) {
                r = scan_number(s);
        } else {
                r = scan_word(s);
        }
        skip_blank(s);
        return r;
}

int json_scan(const char *bytes, size_t length, const char *name, Error *reterr) {
        Scanner s = { bytes, bytes, bytes + length, name, 0, reterr };
        int r;

        /* RFC 8259, section 8.1: JSON texts have no byte order mark. */
        if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
                return scan_fail(&s, "the text starts with a byte order mark; save it without one");
        skip_blank(&s);
        if (s.at == s.end)
                return scan_fail_at(&s, s.start, "the document is empty");
        r = scan_value(&s);
        if (r < 0)
                return r;
        return s.at == s.end ? 0 : scan_fail(&s, "more text after the end of the document");
}
