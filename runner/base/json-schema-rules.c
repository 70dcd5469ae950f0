/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json-schema-rules.h"

#include <errno.h>
#include <float.h>
#include <string.h>

#include "base/json-write.h"
#include "base/nearest.h"
#include "base/strings.h"

static void rule_append(char *text, size_t size, const char *more) {
        const size_t used = strlen(text);

        (void)snprintf(text + used, size - used, "%s", more);
}

bool schema_append_choice(char *text, size_t size, const char *word, bool first, bool last) {
        const char *between = first ? "" : last ? " or " : ", ";
        const bool fits = strlen(text) + strlen(between) + strlen(word) + sizeof(", ...") <= size;

        rule_append(text, size, fits ? between : ", ...");
        if (fits)
                rule_append(text, size, word);
        return fits;
}

/* Appends a value as JSON, shortened. */
static bool append_value(char *text, size_t size, const JsonValue *value, bool first, bool last) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        char word[64];

        json_copy(&w, NULL, value);
        if (json_write_finish(&w) < 0)
                return false;
        w.data[w.length - 1] = '\0';
        (void)str_visible(w.data, word, sizeof(word));
        return schema_append_choice(text, size, word, first, last);
}

/* Refuses with a message such as "must be at least 3". */
static int refuse_bound(const Check *check, const Place *place, const char *what,
                        const JsonValue *bound) {
        char text[100] = "";

        if (check->quiet)
                return -EINVAL;
        rule_append(text, sizeof(text), what);
        (void)append_value(text, sizeof(text), bound, true, true);
        return schema_refuse(check, place, text);
}

/* --- type --- */

static const struct {
        const char *name, *shown;
        JsonType type;
} types[] = {
        { "string", "a string", JSON_STRING },  { "integer", "an integer", JSON_NUMBER },
        { "number", "a number", JSON_NUMBER },  { "boolean", "true or false", JSON_BOOL },
        { "object", "an object", JSON_OBJECT }, { "array", "an array", JSON_ARRAY },
        { "null", "null", JSON_NULL },
};

const char *schema_type(const char *name, const char **suggested) {
        Nearest nearest = { .word = name };

        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (streq(types[i].name, name))
                        return types[i].shown;
        for (size_t i = 0; suggested && i < ELEMENTSOF(types); i++)
                nearest_try(&nearest, types[i].name);
        if (suggested)
                *suggested = nearest.best;
        return NULL;
}

static const char *type_shown(const char *name) {
        const char *shown = schema_type(name, NULL);

        return shown ? shown : name;
}

/* All doubles from 2^53 on are whole. trunc(3) may need libm, depending on the compiler. */
static bool rule_is_whole(double number) {
        const double most = 9007199254740992;

        return number <= -most || number >= most || (double)(int64_t)number == number;
}

bool schema_has_type(const JsonValue *value, const char *name) {
        double number = 0;

        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                if (!streq(types[i].name, name))
                        continue;
                if (types[i].type != json_type(value))
                        return false;
                (void)json_number(value, &number);
                return !streq(name, "integer") || rule_is_whole(number);
        }
        return true; /* an unknown type */
}

static int check_type(Check *check, const JsonValue *schema, const JsonValue *said,
                      const JsonValue *value, const Place *place) {
        char text[160] = "must be ";
        const JsonValue *first = json_first(said);

        (void)schema;
        if (json_string(said)) {
                if (schema_has_type(value, json_string(said)))
                        return 0;
                rule_append(text, sizeof(text), type_shown(json_string(said)));
                return schema_refuse(check, place, text);
        }
        if (json_type(said) != JSON_ARRAY || !first)
                return 0;
        for (const JsonValue *t = first; t && schema_step(check); t = json_next(t))
                if (!json_string(t) || schema_has_type(value, json_string(t)))
                        return 0;
        for (const JsonValue *t = first; t; t = json_next(t))
                if (check->quiet ||
                    !schema_append_choice(text, sizeof(text), type_shown(json_string(t)),
                                          t == first, !json_next(t)))
                        break;
        return schema_refuse(check, place, text);
}

/* --- enum, const --- */

static int check_enum(Check *check, const JsonValue *schema, const JsonValue *said,
                      const JsonValue *value, const Place *place) {
        char text[400] = "must be ";
        const JsonValue *first = json_first(said);

        (void)schema;
        if (json_type(said) != JSON_ARRAY)
                return 0;
        for (const JsonValue *a = first; a; a = json_next(a))
                if (schema_equal(check, value, a))
                        return 0;
        if (check->quiet)
                return -EINVAL;
        for (const JsonValue *a = first; a; a = json_next(a))
                if (!append_value(text, sizeof(text), a, a == first, !json_next(a)))
                        break;
        return schema_refuse(check, place, first ? text : "is not allowed");
}

static int check_const(Check *check, const JsonValue *schema, const JsonValue *said,
                       const JsonValue *value, const Place *place) {
        (void)schema;
        return schema_equal(check, value, said) ? 0 : refuse_bound(check, place, "must be ", said);
}

/* --- numbers --- */

/* Compares a value with a bound: negative, 0 or positive. The result is also 0 if one of them is
 * not a number. */
static int rule_compare(const JsonValue *value, const JsonValue *bound) {
        double number, limit;

        if (json_number(value, &number) < 0 || json_number(bound, &limit) < 0)
                return 0;
        return (number > limit) - (number < limit);
}

static int check_minimum(Check *check, const JsonValue *schema, const JsonValue *said,
                         const JsonValue *value, const Place *place) {
        (void)schema;
        return rule_compare(value, said) < 0 ? refuse_bound(check, place, "must be at least ", said)
                                             : 0;
}

static int check_maximum(Check *check, const JsonValue *schema, const JsonValue *said,
                         const JsonValue *value, const Place *place) {
        (void)schema;
        return rule_compare(value, said) > 0 ? refuse_bound(check, place, "must be at most ", said)
                                             : 0;
}

/* The bound that a value must not reach. In draft 4, true makes the bound of the other keyword
 * exclusive. */
static const JsonValue *rule_exclusive(Check *check, const JsonValue *schema, const JsonValue *said,
                                       const char *other) {
        bool yes = false;

        if (json_bool(said, &yes) == 0)
                return yes ? schema_find(check, schema, other) : NULL;
        return said;
}

static bool rule_reaches(const JsonValue *value, const JsonValue *bound, int side) {
        return bound && json_type(value) == JSON_NUMBER && json_type(bound) == JSON_NUMBER &&
               rule_compare(value, bound) * side >= 0;
}

static int check_above(Check *check, const JsonValue *schema, const JsonValue *said,
                       const JsonValue *value, const Place *place) {
        const JsonValue *bound = rule_exclusive(check, schema, said, "minimum");

        return rule_reaches(value, bound, -1)
                       ? refuse_bound(check, place, "must be more than ", bound)
                       : 0;
}

static int check_below(Check *check, const JsonValue *schema, const JsonValue *said,
                       const JsonValue *value, const Place *place) {
        const JsonValue *bound = rule_exclusive(check, schema, said, "maximum");

        return rule_reaches(value, bound, 1)
                       ? refuse_bound(check, place, "must be less than ", bound)
                       : 0;
}

/* Whether number is a multiple of factor, as people count: 0.3 is a multiple of 0.1, although the
 * doubles' quotient is slightly less than 3. */
static bool is_multiple(double number, double factor) {
        const double most = 9007199254740992, times = number / factor;
        double off;

        if (number > -most && number < most && factor < most && rule_is_whole(number) &&
            rule_is_whole(factor))
                return (int64_t)number % (int64_t)factor == 0;
        if (times >= most || times <= -most) /* too large to have a fraction */
                return true;
        off = number - (double)(int64_t)(times + (times < 0 ? -0.5 : 0.5)) * factor;
        return (off < 0 ? -off : off) <= (number < 0 ? -number : number) * 2 * DBL_EPSILON;
}

static int check_multiple(Check *check, const JsonValue *schema, const JsonValue *said,
                          const JsonValue *value, const Place *place) {
        double number, factor;

        (void)schema;
        if (json_number(value, &number) < 0 || json_number(said, &factor) < 0 || !(factor > 0) ||
            is_multiple(number, factor))
                return 0;
        return refuse_bound(check, place, "must be a multiple of ", said);
}

/* --- sizes --- */

enum { CHARACTERS_A_STEP = 64 }; /* bytes of a text that count as one step */

/* Counts characters and stops above the bound. */
static size_t count_characters(Check *check, const char *text, double bound) {
        size_t count = 0;

        for (size_t i = 0; text[i] && (double)count <= bound; i++) {
                if (i % CHARACTERS_A_STEP == 0 && !schema_step(check))
                        break;
                count += ((unsigned char)text[i] & 0xc0) != 0x80;
        }
        return count;
}

/* Each keyword for a size: its unit, and whether it is a lower or upper bound. */
static const struct {
        const char *keyword, *unit;
        JsonType type;
        bool least;
} sizes[] = {
        { "minLength", "character", JSON_STRING, true },
        { "maxLength", "character", JSON_STRING, false },
        { "minItems", "item", JSON_ARRAY, true },
        { "maxItems", "item", JSON_ARRAY, false },
        { "minProperties", "member", JSON_OBJECT, true },
        { "maxProperties", "member", JSON_OBJECT, false },
};

static int rule_check_size(Check *check, const JsonValue *schema, const JsonValue *said,
                           const JsonValue *value, const Place *place) {
        double bound;
        char text[100];
        size_t i = 0;

        (void)schema;
        while (!streq(sizes[i].keyword, json_key(said)))
                i++;
        if (json_type(value) != sizes[i].type || json_number(said, &bound) < 0)
                return 0;
        {
                const double count = (double)(json_string(value)
                                                      ? count_characters(check, json_string(value),
                                                                         bound)
                                                      : schema_count(check, value));

                if (check->over || (sizes[i].least ? count >= bound : count <= bound))
                        return 0;
        }
        (void)snprintf(text, sizeof(text), "must have at %s %.0f %s%s",
                       sizes[i].least ? "least" : "most", bound, sizes[i].unit,
                       bound == 1 ? "" : "s");
        return schema_refuse(check, place, text);
}

/* --- objects --- */

static int rule_check_required(Check *check, const JsonValue *schema, const JsonValue *said,
                               const JsonValue *value, const Place *place) {
        (void)schema;
        if (json_type(value) != JSON_OBJECT)
                return 0;
        for (const JsonValue *n = json_first(said); n && schema_step(check); n = json_next(n)) {
                const Place missing = { place, json_string(n), 0 };

                if (json_string(n) && !schema_find(check, value, json_string(n)))
                        return check->over ? 0 : schema_refuse(check, &missing, "is missing");
        }
        return 0;
}

static int check_properties(Check *check, const JsonValue *schema, const JsonValue *said,
                            const JsonValue *value, const Place *place) {
        int r = 0;

        (void)schema;
        if (json_type(value) != JSON_OBJECT)
                return 0;
        for (const JsonValue *m = json_first(value); m && r == 0 && schema_step(check);
             m = json_next(m)) {
                const Place below = { place, json_key(m), 0 };
                const JsonValue *of = schema_find(check, said, json_key(m));

                if (of)
                        r = schema_check_value(check, of, m, &below);
        }
        return r;
}

/* Checks members that "properties" does not name. With patternProperties the check is skipped,
 * because patterns are not evaluated. */
static int check_additional(Check *check, const JsonValue *schema, const JsonValue *said,
                            const JsonValue *value, const Place *place) {
        const JsonValue *named = schema_find(check, schema, "properties");
        bool allowed = true;
        int r = 0;

        if (json_type(value) != JSON_OBJECT || schema_find(check, schema, "patternProperties"))
                return 0;
        (void)json_bool(said, &allowed);
        for (const JsonValue *m = json_first(value); m && r == 0 && schema_step(check);
             m = json_next(m)) {
                const Place below = { place, json_key(m), 0 };

                if (schema_find(check, named, json_key(m)) || check->over)
                        continue;
                r = allowed ? schema_check_value(check, said, m, &below)
                            : schema_refuse(check, &below, "is not known");
        }
        return r;
}

/* --- arrays --- */

/* Checks the first items, each against its own schema. Returns the number of schemas. */
static int check_first_items(Check *check, const JsonValue *schemas, const JsonValue *value,
                             const Place *place) {
        const JsonValue *schema = json_type(schemas) == JSON_ARRAY ? json_first(schemas) : NULL;
        Place below = { place, NULL, 0 };
        int r = 0;

        if (json_type(value) != JSON_ARRAY)
                return 0;
        for (const JsonValue *i = json_first(value); i && schema && r == 0 && schema_step(check);
             i = json_next(i), schema = json_next(schema)) {
                r = schema_check_value(check, schema, i, &below);
                below.index++;
        }
        return r;
}

static int check_prefix(Check *check, const JsonValue *schema, const JsonValue *said,
                        const JsonValue *value, const Place *place) {
        (void)schema;
        return check_first_items(check, said, value, place);
}

/* Checks the items after those of prefixItems. Older drafts wrote prefixItems as an array of
 * schemas here. */
static int rule_check_items(Check *check, const JsonValue *schema, const JsonValue *said,
                            const JsonValue *value, const Place *place) {
        const JsonValue *prefix = schema_find(check, schema, "prefixItems");
        size_t skipped;
        Place below = { place, NULL, 0 };
        int r = 0;

        if (json_type(said) == JSON_ARRAY)
                return check_first_items(check, said, value, place);
        if (json_type(value) != JSON_ARRAY)
                return 0;
        skipped = prefix ? schema_count(check, prefix) : 0;
        for (const JsonValue *i = json_first(value); i && r == 0 && schema_step(check);
             i = json_next(i)) {
                if (below.index >= skipped)
                        r = schema_check_value(check, said, i, &below);
                below.index++;
        }
        return r;
}

static int check_unique(Check *check, const JsonValue *schema, const JsonValue *said,
                        const JsonValue *value, const Place *place) {
        Place below = { place, NULL, 0 };
        bool wanted = false;

        (void)schema;
        (void)json_bool(said, &wanted);
        if (!wanted || json_type(value) != JSON_ARRAY)
                return 0;
        for (const JsonValue *i = json_first(value); i && !check->over; i = json_next(i)) {
                for (const JsonValue *before = json_first(value); before != i && !check->over;
                     before = json_next(before))
                        if (schema_equal(check, before, i))
                                return schema_refuse(check, &below, "is a duplicate");
                below.index++;
        }
        return 0;
}

/* --- all keywords --- */

const SchemaKeyword *schema_keyword(const char *name) {
        static const SchemaKeyword keywords[] = {
                { "type", SAYS_TYPES, check_type },
                { "enum", SAYS_LIST, check_enum },
                { "const", SAYS_ANYTHING, check_const },
                { "properties", SAYS_NAMED_SCHEMAS, check_properties },
                { "required", SAYS_NAMES, rule_check_required },
                { "additionalProperties", SAYS_SCHEMA, check_additional },
                { "items", SAYS_SCHEMA_OR_ALL, rule_check_items },
                { "prefixItems", SAYS_SCHEMAS, check_prefix },
                { "uniqueItems", SAYS_BOOL, check_unique },
                { "minimum", SAYS_NUMBER, check_minimum },
                { "maximum", SAYS_NUMBER, check_maximum },
                { "exclusiveMinimum", SAYS_BOUND, check_above },
                { "exclusiveMaximum", SAYS_BOUND, check_below },
                { "multipleOf", SAYS_FACTOR, check_multiple },
                { "minLength", SAYS_COUNT, rule_check_size },
                { "maxLength", SAYS_COUNT, rule_check_size },
                { "minItems", SAYS_COUNT, rule_check_size },
                { "maxItems", SAYS_COUNT, rule_check_size },
                { "minProperties", SAYS_COUNT, rule_check_size },
                { "maxProperties", SAYS_COUNT, rule_check_size },
                { "anyOf", SAYS_SCHEMAS, schema_check_any },
                { "oneOf", SAYS_SCHEMAS, schema_check_one },
                { "allOf", SAYS_SCHEMAS, schema_check_all },
                { "not", SAYS_SCHEMA, schema_check_not },
                { "if", SAYS_SCHEMA, schema_check_if },
                { "then", SAYS_SCHEMA, NULL },
                { "else", SAYS_SCHEMA, NULL },
                { "$ref", SAYS_REFERENCE, schema_check_reference },
                { "$defs", SAYS_NAMED_SCHEMAS, NULL },
                { "definitions", SAYS_NAMED_SCHEMAS, NULL },
                { "patternProperties", SAYS_NAMED_SCHEMAS, NULL },
                { "pattern", SAYS_TEXT, NULL },
                { "format", SAYS_TEXT, NULL },
                { "title", SAYS_TEXT, NULL },
                { "description", SAYS_TEXT, NULL },
        };

        /* Runs for each member of a schema on every check; comparing the first letter rules out
         * most keywords. */
        for (size_t i = 0; i < ELEMENTSOF(keywords); i++)
                if (keywords[i].name[0] == name[0] && streq(keywords[i].name, name))
                        return &keywords[i];
        return NULL;
}
