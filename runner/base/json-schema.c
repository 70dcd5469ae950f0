/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json-schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-schema-rules.h"
#include "base/strings.h"

enum {
        TEXT_A_STEP = 1024, /* bytes per step when two texts are compared */
        PATH_SHOWN_MAX = 900,
};

bool schema_step(Check *check) {
        check->over |= ++check->steps > JSON_SCHEMA_STEPS_MAX;
        return !check->over;
}

/* Compares like streq(). Counts one step, and more if long texts are equal. */
static bool is_same_text(Check *check, const char *a, const char *b) {
        while (schema_step(check)) {
                if (strncmp(a, b, TEXT_A_STEP) != 0)
                        return false;
                if (strnlen(a, TEXT_A_STEP) < TEXT_A_STEP)
                        return true;
                a += TEXT_A_STEP;
                b += TEXT_A_STEP;
        }
        return false;
}

const JsonValue *schema_find(Check *check, const JsonValue *object, const char *key) {
        if (!object || json_type(object) != JSON_OBJECT)
                return NULL;
        for (const JsonValue *m = json_first(object); m && !check->over; m = json_next(m))
                if (is_same_text(check, json_key(m), key))
                        return m;
        return NULL;
}

size_t schema_count(Check *check, const JsonValue *value) {
        size_t count = 0;

        for (const JsonValue *v = json_first(value); v && schema_step(check); v = json_next(v))
                count++;
        return count;
}

static bool is_equal_inside(Check *check, const JsonValue *a, const JsonValue *b) {
        const bool objects = json_type(a) == JSON_OBJECT;
        const JsonValue *other = json_first(b);

        if (schema_count(check, a) != schema_count(check, b))
                return false;
        for (const JsonValue *v = json_first(a); v; v = json_next(v)) {
                const JsonValue *w = objects ? schema_find(check, b, json_key(v)) : other;

                if (!w || !schema_equal(check, v, w))
                        return false;
                other = objects ? NULL : json_next(other);
        }
        return true;
}

bool schema_equal(Check *check, const JsonValue *a, const JsonValue *b) {
        double number_a = 0, number_b = 0;
        bool yes_a = false, yes_b = false;

        if (!schema_step(check) || json_type(a) != json_type(b))
                return false;
        if (json_string(a))
                return is_same_text(check, json_string(a), json_string(b));
        if (json_number(a, &number_a) == 0 && json_number(b, &number_b) == 0)
                return number_a == number_b;
        if (json_bool(a, &yes_a) == 0 && json_bool(b, &yes_b) == 0)
                return yes_a == yes_b;
        return json_type(a) == JSON_NULL || is_equal_inside(check, a, b);
}

static char *schema_place_path(const Place *place) {
        _cleanup_free_ char *above = NULL;

        if (!place->above)
                return strdup("$");
        above = schema_place_path(place->above);
        if (!above)
                return NULL;
        return place->key ? json_path_key(above, place->key) : json_path_index(above, place->index);
}

/* Writes the path of a place, cut if the message would have no room after it. */
static char *path_of(const Place *place) {
        _cleanup_free_ char *path = schema_place_path(place);
        char *shown;

        if (!path || strlen(path) < PATH_SHOWN_MAX)
                return TAKE_PTR(path);
        shown = malloc(PATH_SHOWN_MAX);
        if (shown)
                (void)str_visible(path, shown, PATH_SHOWN_MAX);
        return shown;
}

static int too_much(Error *reterr) {
        (void)error_set(reterr, ERROR_LIMIT, 0,
                        "checking it against the schema takes too many steps");
        return -E2BIG;
}

/* --- a value --- */

int schema_refuse(const Check *check, const Place *place, const char *what) {
        _cleanup_free_ char *path = NULL;

        if (check->quiet)
                return -EINVAL;
        path = path_of(place);
        if (!path)
                return error_oom(check->reterr);
        return error_set(check->reterr, ERROR_USAGE, 0, "%s: %s", path, what);
}

int schema_check_value(Check *check, const JsonValue *schema, const JsonValue *value,
                       const Place *place) {
        bool allowed = true;
        int r = 0;

        if (json_bool(schema, &allowed) == 0)
                return allowed ? 0 : schema_refuse(check, place, "is not allowed");
        if (json_type(schema) != JSON_OBJECT || !schema_step(check))
                return 0;
        check->over |= check->depth >= JSON_SCHEMA_NESTED_MAX;
        check->depth++;
        for (const JsonValue *said = json_first(schema); said && r == 0 && schema_step(check);
             said = json_next(said)) {
                const SchemaKeyword *keyword = schema_keyword(json_key(said));

                if (keyword && keyword->rule)
                        r = keyword->rule(check, schema, said, value, place);
        }
        check->depth--;
        return r;
}

int json_schema_check(const JsonValue *schema, const JsonValue *value, Error *reterr) {
        Check check = { .root = schema, .reterr = reterr };
        int r = schema_check_value(&check, schema, value, &(const Place){ NULL, NULL, 0 });

        return check.over ? too_much(reterr) : r;
}

/* --- $ref --- */

static int hex_value(char c) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *at = c ? strchr(digits, c) : NULL;

        return at ? (int)(at - digits) % 16 : -1;
}

/* Decodes the next byte of a URI's fragment, which may be written as %XX; '\0' at its end. */
static char schema_next_byte(const char **at) {
        const char *s = *at;
        const int high = s[0] == '%' ? hex_value(s[1]) : -1;
        const int low = high >= 0 ? hex_value(s[2]) : -1;

        if (low >= 0 && (high > 0 || low > 0)) {
                *at += 3;
                return (char)(high * 16 + low);
        }
        *at += s[0] != '\0';
        return s[0];
}

/* Decodes the next byte of a part of a JSON pointer (RFC 6901), and stays at the part's end. */
static char next_in_part(const char **at) {
        const char *next = *at;
        const char c = schema_next_byte(&next);
        char escaped;

        if (c == '\0' || c == '/')
                return '\0';
        *at = next;
        if (c != '~')
                return c;
        escaped = schema_next_byte(&next);
        if (escaped != '0' && escaped != '1')
                return c;
        *at = next;
        return escaped == '0' ? '~' : '/';
}

static bool schema_is_part(const char *part, const char *key) {
        char c = next_in_part(&part);

        while (c != '\0' && c == *key) {
                c = next_in_part(&part);
                key++;
        }
        return c == *key;
}

static const JsonValue *member_of(Check *check, const JsonValue *object, const char *part) {
        for (const JsonValue *m = json_first(object); m && schema_step(check); m = json_next(m))
                if (schema_is_part(part, json_key(m)))
                        return m;
        return NULL;
}

static const JsonValue *item_of(Check *check, const JsonValue *array, const char *part) {
        const JsonValue *item = json_first(array);
        char number[8]; /* more digits than any schema has items */
        size_t length = 0;
        char c = next_in_part(&part);

        for (; c != '\0' && length < sizeof(number) - 1; c = next_in_part(&part))
                number[length++] = c;
        number[length] = '\0';
        if (c != '\0' || length == 0 || strspn(number, "0123456789") < length ||
            (number[0] == '0' && length > 1))
                return NULL;
        for (unsigned long i = strtoul(number, NULL, 10); item && i > 0 && schema_step(check); i--)
                item = json_next(item);
        return item;
}

const JsonValue *schema_resolve(Check *check, const char *reference) {
        const JsonValue *value = check->root;

        if (*reference++ != '#')
                return NULL;
        while (value && *reference != '\0') {
                if (schema_next_byte(&reference) != '/')
                        return NULL;
                if (json_type(value) == JSON_ARRAY)
                        value = item_of(check, value, reference);
                else
                        value = member_of(check, value, reference);
                while (next_in_part(&reference) != '\0')
                        ;
        }
        return value;
}

int schema_check_reference(Check *check, const JsonValue *schema, const JsonValue *said,
                           const JsonValue *value, const Place *place) {
        const JsonValue *other = json_string(said) ? schema_resolve(check, json_string(said))
                                                   : NULL;

        (void)schema;
        return other ? schema_check_value(check, other, value, place) : 0;
}

/* --- a schema --- */

typedef struct Verify {
        Check check; /* resolves $ref */
        const char *name;
        Error *reterr;
} Verify;

static int verify_schema(Verify *verify, const JsonValue *schema, const Place *place);

static int schema_senseless(const Verify *verify, const Place *place, const char *what) {
        _cleanup_free_ char *path = path_of(place);

        if (!path)
                return error_oom(verify->reterr);
        return error_set(verify->reterr, ERROR_USAGE, 0, "%s: %s: %s", verify->name, path, what);
}

static int verify_type(const Verify *verify, const JsonValue *said, const Place *place) {
        const char *meant = NULL;
        char text[128], quoted[64];
        int r;

        if (!json_string(said))
                return schema_senseless(verify, place,
                                        "must be the name of a type, or an array of them");
        if (schema_type(json_string(said), &meant))
                return 0;
        (void)snprintf(text, sizeof(text), "no type is called \"%s\"",
                       str_quote(json_string(said), quoted, sizeof(quoted)));
        r = schema_senseless(verify, place, text);
        if (meant)
                return error_cure(verify->reterr, r, "Did you mean \"%s\"?", meant);
        return error_cure(verify->reterr, r,
                          "string, integer, number, boolean, object, array or null.");
}

static int verify_reference(Verify *verify, const JsonValue *said, const Place *place) {
        const char *reference = json_string(said);
        const JsonValue *other;
        int r;

        if (!reference)
                return schema_senseless(verify, place, "must be a string");
        other = schema_resolve(&verify->check, reference);
        if (other && (json_type(other) == JSON_OBJECT || json_type(other) == JSON_BOOL))
                return 0;
        r = schema_senseless(verify, place, "refers to no schema");
        return error_cure(verify->reterr, r,
                          "Refer to a schema in the same document, such as \"#/$defs/NAME\" for an "
                          "entry of \"$defs\" at its top.");
}

/* Verifies each item or member of a keyword's value. */
static int verify_each(Verify *verify, const JsonValue *said, const Place *place,
                       int (*each)(Verify *verify, const JsonValue *one, const Place *place)) {
        Place below = { place, NULL, 0 };
        int r = 0;

        for (const JsonValue *one = json_first(said); one && r == 0; one = json_next(one)) {
                below.key = json_key(one);
                r = each(verify, one, &below);
                below.index++;
        }
        return r;
}

static int verify_name(Verify *verify, const JsonValue *one, const Place *place) {
        return json_string(one) ? 0 : schema_senseless(verify, place, "must be a string");
}

static int verify_each_type(Verify *verify, const JsonValue *one, const Place *place) {
        return verify_type(verify, one, place);
}

/* The type that a keyword's value must have, and the error for any other type. */
static const struct {
        JsonType type, or_type;
        const char *must;
        int (*each)(Verify *verify, const JsonValue *one, const Place *place);
} by_says[] = {
        [SAYS_TEXT] = { JSON_STRING, JSON_STRING, "must be a string", NULL },
        [SAYS_BOOL] = { JSON_BOOL, JSON_BOOL, "must be true or false", NULL },
        [SAYS_NUMBER] = { JSON_NUMBER, JSON_NUMBER, "must be a number", NULL },
        [SAYS_FACTOR] = { JSON_NUMBER, JSON_NUMBER, "must be a number above 0", NULL },
        [SAYS_BOUND] = { JSON_NUMBER, JSON_BOOL, "must be a number", NULL },
        [SAYS_COUNT] = { JSON_NUMBER, JSON_NUMBER, "must be a whole number of at least 0", NULL },
        [SAYS_LIST] = { JSON_ARRAY, JSON_ARRAY, "must be an array", NULL },
        [SAYS_NAMES] = { JSON_ARRAY, JSON_ARRAY, "must be an array of strings", verify_name },
        [SAYS_SCHEMA] = { JSON_OBJECT, JSON_BOOL, "must be a schema", NULL },
        [SAYS_SCHEMAS] = { JSON_ARRAY, JSON_ARRAY, "must be an array of schemas", verify_schema },
        [SAYS_NAMED_SCHEMAS] = { JSON_OBJECT, JSON_OBJECT, "must be an object of schemas",
                                 verify_schema },
};

static int verify_keyword(Verify *verify, const JsonValue *said, const Place *place) {
        const SchemaKeyword *keyword = schema_keyword(json_key(said));
        SchemaSays says = keyword ? keyword->says : SAYS_ANYTHING;
        const bool array = json_type(said) == JSON_ARRAY;
        double number = 1;
        uint64_t count;

        if (says == SAYS_ANYTHING)
                return 0;
        if (says == SAYS_REFERENCE)
                return verify_reference(verify, said, place);
        if (says == SAYS_TYPES)
                return array && json_first(said)
                               ? verify_each(verify, said, place, verify_each_type)
                               : verify_type(verify, said, place);
        if (says == SAYS_SCHEMA_OR_ALL)
                says = array ? SAYS_SCHEMAS : SAYS_SCHEMA;
        if (json_type(said) != by_says[says].type && json_type(said) != by_says[says].or_type)
                return schema_senseless(verify, place, by_says[says].must);
        if (says == SAYS_FACTOR && json_number(said, &number) == 0 && !(number > 0))
                return schema_senseless(verify, place, by_says[says].must);
        if (says == SAYS_COUNT && json_uint(said, JSON_INTEGER_MAX, &count) < 0)
                return schema_senseless(verify, place, by_says[says].must);
        if (says == SAYS_SCHEMA)
                return verify_schema(verify, said, place);
        return by_says[says].each ? verify_each(verify, said, place, by_says[says].each) : 0;
}

static int verify_schema(Verify *verify, const JsonValue *schema, const Place *place) {
        if (json_type(schema) == JSON_BOOL)
                return 0;
        if (json_type(schema) != JSON_OBJECT)
                return schema_senseless(verify, place,
                                        "must be a schema: an object, true or false");
        return verify_each(verify, schema, place, verify_keyword);
}

int json_schema_verify(const JsonValue *schema, const char *name, Error *reterr) {
        Verify verify = { .check = { .root = schema }, .name = name, .reterr = reterr };
        int r = verify_schema(&verify, schema, &(const Place){ NULL, NULL, 0 });

        return verify.check.over ? too_much(reterr) : r;
}
