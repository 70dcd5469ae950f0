/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/json-write.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "base/utf8.h"

/* cJSON copies a number into 64 bytes and silently takes what follows as something else. */
enum { NUMBER_MAX = 40 };

/* Digits that a double keeps whatever they are (DBL_DIG). */
enum { DIGITS_EXACT = 15 };
/* ... and that it takes to tell any from its neighbours (DBL_DECIMAL_DIG). */
enum { DIGITS_MAX = 17 };

struct JsonDocument {
        cJSON *root;
};

/* --- the scanner: is it strictly JSON? --- */

typedef struct Scanner {
        const char *start, *at, *end;
        const char *name;
        unsigned depth;
        Error *reterr;
} Scanner;

static int scan_value(Scanner *s);

/* Column in characters, as an editor counts; both from 1. */
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

static int peek(const Scanner *s) {
        return s->at < s->end ? (unsigned char)*s->at : -1;
}

static bool take(Scanner *s, char c) {
        if (peek(s) != (unsigned char)c)
                return false;
        s->at++;
        return true;
}

static void skip_blank(Scanner *s) {
        while (s->at < s->end && strchr(" \t\n\r", *s->at) && *s->at)
                s->at++;
}

static bool is_digit(int c) {
        return c >= '0' && c <= '9';
}

/* Four hex digits, or -1. */
static int scan_hex4(Scanner *s) {
        int value = 0;

        for (int i = 0; i < 4; i++) {
                int c = peek(s);

                if (is_digit(c))
                        value = value * 16 + c - '0';
                else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                        value = value * 16 + (c | 0x20) - 'a' + 10;
                else
                        return -1;
                s->at++;
        }
        return value;
}

/* What follows "\u". A surrogate must come as a pair, high one first. */
static int scan_unicode(Scanner *s) {
        const char *begin = s->at - 2;
        int value = scan_hex4(s), low;

        if (value < 0)
                return scan_fail_at(s, begin, "\\u needs four hex digits");
        if (value == 0)
                return scan_fail_at(s, begin, "\\u0000 would cut the string");
        if (value < 0xd800 || value > 0xdfff)
                return 0;
        if (value > 0xdbff || !take(s, '\\') || !take(s, 'u'))
                return scan_fail_at(s, begin, "half of a surrogate pair");
        low = scan_hex4(s);
        if (low < 0xdc00 || low > 0xdfff)
                return scan_fail_at(s, begin, "half of a surrogate pair");
        return 0;
}

static int scan_escape(Scanner *s) {
        int c = peek(s);

        if (c <= 0 || !strchr("\"\\/bfnrtu", c))
                return scan_fail_at(s, s->at - 1, "unknown escape in a string");
        s->at++;
        return c == 'u' ? scan_unicode(s) : 0;
}

static int scan_string(Scanner *s) {
        const char *begin = s->at++;

        for (;;) {
                size_t sequence;
                int c = peek(s), r;

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

        while (is_digit(peek(s)))
                s->at++;
        return (size_t)(s->at - begin);
}

/* Digits between the first and the last that is not 0. */
static int significant_digits(const char *number) {
        int count = 0, last = 0;

        for (; *number && (*number | 0x20) != 'e'; number++) {
                if (!is_digit(*number) || (count == 0 && *number == '0'))
                        continue;
                count++;
                if (*number != '0')
                        last = count;
        }
        return last;
}

static bool is_integer(double value) {
        return fabs(value) > (double)JSON_INTEGER_MAX || (double)(int64_t)value == value;
}

/* Whether a double, printed with as many digits, is another number. Up to 15 it keeps whatever they
 * are, and past 17 what was meant was no double. */
static bool loses_digits(const char *number, double value) {
        const int count = significant_digits(number);
        char printed[NUMBER_MAX + 1], *at = printed;

        if (count <= DIGITS_EXACT || count > DIGITS_MAX)
                return count > DIGITS_MAX;
        (void)snprintf(printed, sizeof(printed), "%.*e", count - 1, value);
        for (int compared = 0; compared < count; number++) {
                if (!is_digit(*number) || (compared == 0 && *number == '0'))
                        continue;
                while (!is_digit(*at))
                        at++;
                if (*at++ != *number)
                        return true;
                compared++;
        }
        return false;
}

/* A number that cJSON would turn into another one: too long for it, past a double, or an integer
 * (also by rounding, as 0.99999999999999999999) that a double can't tell from its neighbours. */
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
        if (!is_integer(value))
                return 0;
        if (strspn(copy, "-0123456789") == length) {
                if (fabs(value) > (double)JSON_INTEGER_MAX)
                        return scan_fail_at(s, begin,
                                            "an integer past 2^53 - 1, which would lose digits");
        } else if (loses_digits(copy, value)) {
                return scan_fail_at(s, begin, "a number that would lose digits");
        }
        return 0;
}

static int scan_number(Scanner *s) {
        const char *begin = s->at;

        (void)take(s, '-');
        if (take(s, '0')) {
                if (is_digit(peek(s)))
                        return scan_fail_at(s, begin, "a number starts with 0");
        } else if (scan_digits(s) == 0) {
                return scan_fail_at(s, begin, "not a JSON value");
        }
        if (take(s, '.') && scan_digits(s) == 0)
                return scan_fail(s, "a number needs a digit behind its point");
        if (take(s, 'e') || take(s, 'E')) {
                if (!take(s, '+'))
                        (void)take(s, '-');
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
        return scan_fail(s, s->at == s->end ? "the text ends where a value should be"
                                            : "not a JSON value");
}

/* A member's key and colon. */
static int scan_key(Scanner *s) {
        int r;

        if (peek(s) != '"')
                return scan_fail(s, "a key in double quotes should be here");
        r = scan_string(s);
        if (r < 0)
                return r;
        skip_blank(s);
        return take(s, ':') ? 0 : scan_fail(s, "a \":\" should be here");
}

/* The inside of an object or array whose opening bracket has been taken. */
static int scan_members(Scanner *s, bool object) {
        char close = object ? '}' : ']';
        int r;

        skip_blank(s);
        if (take(s, close))
                return 0;
        for (bool first = true;; first = false) {
                skip_blank(s);
                if (!first && peek(s) == close)
                        return scan_fail(s, object ? "a \",\" too many before this \"}\""
                                                   : "a \",\" too many before this \"]\"");
                r = object ? scan_key(s) : 0;
                if (r == 0)
                        r = scan_value(s);
                if (r < 0)
                        return r;
                if (take(s, close))
                        return 0;
                if (!take(s, ','))
                        return scan_fail(s, object ? "a \",\" or \"}\" should be here"
                                                   : "a \",\" or \"]\" should be here");
        }
}

/* One value and the blanks on both its sides. */
static int scan_value(Scanner *s) {
        int c, r;

        skip_blank(s);
        c = peek(s);
        if (c == '{' || c == '[') {
                if (s->depth == JSON_DEPTH_MAX)
                        return scan_fail(s, "more than 64 objects and arrays in each other");
                s->depth++;
                s->at++;
                r = scan_members(s, c == '{');
                s->depth--;
        } else if (c == '"') {
                r = scan_string(s);
        } else if (c == '-' || is_digit(c)) {
                r = scan_number(s);
        } else {
                r = scan_word(s);
        }
        skip_blank(s);
        return r;
}

static int scan_document(const char *bytes, size_t length, const char *name, Error *reterr) {
        Scanner s = { bytes, bytes, bytes + length, name, 0, reterr };
        int r;

        /* RFC 8259, section 8.1: no byte order mark. */
        if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
                return scan_fail(&s, "the text starts with a byte order mark; save it without");
        skip_blank(&s);
        if (s.at == s.end)
                return scan_fail_at(&s, s.start, "it is empty");
        r = scan_value(&s);
        if (r < 0)
                return r;
        return s.at == s.end ? 0 : scan_fail(&s, "more text after the end of the document");
}

/* --- equal keys --- */

/* Where the walk is: made into a JSON path only for an error. */
typedef struct Place {
        const struct Place *above;
        const cJSON *value; /* with its key, when above is an object */
        size_t index;       /* when above is an array */
} Place;

static char *place_path(const Place *place) {
        _cleanup_free_ char *above = NULL;

        if (!place->above)
                return strdup("$");
        above = place_path(place->above);
        if (!above)
                return NULL;
        if (place->value->string)
                return json_path_key(above, place->value->string);
        return json_path_index(above, place->index);
}

static int fail_duplicate(const Place *place, const char *key, const char *name, Error *reterr) {
        _cleanup_free_ char *object = place_path(place);
        _cleanup_free_ char *path = object ? json_path_key(object, key) : NULL;
        char quoted[400];

        if (!path)
                return error_oom(reterr);
        return error_set(reterr, ERROR_POLICY, 0, "%s: %s is there twice",
                         str_quote(name, quoted, sizeof(quoted)), path);
}

static int compare_keys(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, because a hostile object has as many keys as fit. */
static int check_keys(const Place *place, size_t count, const char *name, Error *reterr) {
        _cleanup_free_ const char **keys = NULL;
        size_t n = 0;

        if (count < 2 || !cJSON_IsObject(place->value))
                return 0;
        keys = calloc(count, sizeof(*keys));
        if (!keys)
                return error_oom(reterr);
        for (const cJSON *child = place->value->child; child; child = child->next)
                keys[n++] = child->string;
        qsort(keys, n, sizeof(*keys), compare_keys);
        for (size_t i = 1; i < n; i++)
                if (streq(keys[i - 1], keys[i]))
                        return fail_duplicate(place, keys[i], name, reterr);
        return 0;
}

static int check_tree(const Place *place, const char *name, Error *reterr) {
        size_t count = 0;

        for (const cJSON *child = place->value->child; child; child = child->next) {
                const Place below = { place, child, count++ };
                int r = child->child ? check_tree(&below, name, reterr) : 0;

                if (r < 0)
                        return r;
        }
        return check_keys(place, count, name, reterr);
}

/* --- documents --- */

JsonDocument *json_free(JsonDocument *document) {
        if (document)
                cJSON_Delete(document->root);
        free(document);
        return NULL;
}

static int document_make(const char *bytes, size_t length, JsonDocument **ret, Error *reterr) {
        JsonDocument *document = calloc(1, sizeof(*document));

        if (!document)
                return error_oom(reterr);
        document->root = cJSON_ParseWithLengthOpts(bytes, length, NULL, false);
        if (!document->root) {
                /* The scanner has taken it: only memory can be missing. */
                json_free(document);
                return error_oom(reterr);
        }
        *ret = document;
        return 0;
}

int json_parse(const char *bytes, size_t length, const char *name, JsonDocument **ret,
               Error *reterr) {
        return json_parse_large(bytes, length, JSON_SIZE_MAX, name, ret, reterr);
}

int json_parse_large(const char *bytes, size_t length, size_t max, const char *name,
                     JsonDocument **ret, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        char quoted[400];
        int r;

        if (length > max) {
                (void)error_set(reterr, ERROR_POLICY, 0, "%s: more than %zu KiB of JSON",
                                str_quote(name, quoted, sizeof(quoted)), max >> 10);
                return -EFBIG;
        }
        r = scan_document(bytes, length, name, reterr);
        if (r < 0)
                return r;
        r = document_make(bytes, length, &document, reterr);
        if (r < 0)
                return r;
        assert(document);
        r = check_tree(&(const Place){ NULL, document->root, 0 }, name, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(document);
        return 0;
}

/* --- values --- */

static const cJSON *node(const JsonValue *value) {
        return (const cJSON *)(const void *)value;
}

static const JsonValue *from_node(const cJSON *item) {
        return (const JsonValue *)(const void *)item;
}

const JsonValue *json_root(const JsonDocument *document) {
        return from_node(document->root);
}

JsonType json_type(const JsonValue *value) {
        static const struct {
                int bits;
                JsonType type;
        } types[] = {
                { cJSON_NULL, JSON_NULL },     { cJSON_True | cJSON_False, JSON_BOOL },
                { cJSON_Number, JSON_NUMBER }, { cJSON_String, JSON_STRING },
                { cJSON_Array, JSON_ARRAY },   { cJSON_Object, JSON_OBJECT },
        };

        static_assert(ELEMENTSOF(types) == JSON_TYPE_MAX, "every type");
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (node(value)->type & types[i].bits)
                        return types[i].type;
        assert(false);
        return JSON_NULL;
}

const char *json_type_name(JsonType type) {
        static const char *const names[] = {
                [JSON_NULL] = "null",       [JSON_BOOL] = "true or false",
                [JSON_NUMBER] = "a number", [JSON_STRING] = "a string",
                [JSON_ARRAY] = "an array",  [JSON_OBJECT] = "an object",
        };

        static_assert(ELEMENTSOF(names) == JSON_TYPE_MAX, "every type has a name");
        return names[type];
}

const JsonValue *json_first(const JsonValue *value) {
        return from_node(node(value)->child);
}

const JsonValue *json_next(const JsonValue *value) {
        return from_node(node(value)->next);
}

const char *json_key(const JsonValue *value) {
        return node(value)->string;
}

const JsonValue *json_member(const JsonValue *object, const char *key) {
        if (json_type(object) != JSON_OBJECT)
                return NULL;
        for (const JsonValue *member = json_first(object); member; member = json_next(member))
                if (streq(json_key(member), key))
                        return member;
        return NULL;
}

const char *json_string(const JsonValue *value) {
        return json_type(value) == JSON_STRING ? node(value)->valuestring : NULL;
}

int json_bool(const JsonValue *value, bool *ret) {
        if (json_type(value) != JSON_BOOL)
                return -EINVAL;
        *ret = (node(value)->type & cJSON_True) != 0;
        return 0;
}

int json_uint(const JsonValue *value, uint64_t max, uint64_t *ret) {
        double number = node(value)->valuedouble;

        if (json_type(value) != JSON_NUMBER || !is_integer(number))
                return -EINVAL;
        if (number < 0 || number > (double)JSON_INTEGER_MAX || (uint64_t)number > max)
                return -ERANGE;
        *ret = (uint64_t)number;
        return 0;
}

int json_int(const JsonValue *value, int64_t *ret) {
        double number = node(value)->valuedouble;

        if (json_type(value) != JSON_NUMBER || !is_integer(number))
                return -EINVAL;
        if (fabs(number) > (double)JSON_INTEGER_MAX)
                return -ERANGE;
        *ret = (int64_t)number;
        return 0;
}

int json_number(const JsonValue *value, double *ret) {
        if (json_type(value) != JSON_NUMBER)
                return -EINVAL;
        *ret = node(value)->valuedouble;
        return 0;
}

/* --- paths --- */

static bool is_plain(const char *key) {
        static const char plain[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789$-";

        return key[0] && !is_digit(key[0]) && key[strspn(key, plain)] == '\0';
}

char *json_path_key(const char *path, const char *key) {
        char quoted[160];

        if (is_plain(key) && strlen(key) < sizeof(quoted))
                return str_format("%s.%s", path, key);
        return str_format("%s[\"%s\"]", path, str_quote(key, quoted, sizeof(quoted)));
}

char *json_path_index(const char *path, size_t i) {
        return str_format("%s[%zu]", path, i);
}

static void copy_number(JsonWriter *w, const char *key, const JsonValue *value) {
        int64_t integer = 0;
        double number = 0;

        (void)json_number(value, &number);
        if (json_int(value, &integer) == 0 && !(number == 0 && signbit(number)))
                json_write_int(w, key, integer);
        else
                json_write_number(w, key, number);
}

void json_copy(JsonWriter *w, const char *key, const JsonValue *value) {
        const JsonType type = json_type(value);
        bool yes = false;

        if (type == JSON_OBJECT || type == JSON_ARRAY) {
                if (type == JSON_OBJECT)
                        json_write_object(w, key);
                else
                        json_write_array(w, key);
                for (const JsonValue *item = json_first(value); item; item = json_next(item))
                        json_copy(w, json_key(item), item);
                json_write_end(w);
        } else if (type == JSON_STRING) {
                json_write_string(w, key, json_string(value));
        } else if (type == JSON_NUMBER) {
                copy_number(w, key, value);
        } else if (type == JSON_BOOL) {
                (void)json_bool(value, &yes);
                json_write_bool(w, key, yes);
        } else {
                json_write_null(w, key);
        }
}
