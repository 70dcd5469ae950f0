/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json-schema.h"

#include <errno.h>
#include <string.h>

#include "base/json-write.h"
#include "base/strings.h"

/* Where a value is; made into a path only for an error. */
typedef struct Place {
        const struct Place *above;
        const char *key; /* NULL of an item */
        size_t index;
} Place;

typedef struct Check {
        size_t steps;
        bool over;  /* more steps than allowed */
        bool quiet; /* an anyOf is trying: nothing is written */
        Error *reterr;
} Check;

static int check_value(Check *check, const JsonValue *schema, const JsonValue *value,
                       const Place *place);

/* False when it has been enough. */
static bool step(Check *check) {
        check->over |= ++check->steps > JSON_SCHEMA_STEPS_MAX;
        return !check->over;
}

/* As json_member(), counted. */
static const JsonValue *find(Check *check, const JsonValue *object, const char *key) {
        if (json_type(object) != JSON_OBJECT)
                return NULL;
        for (const JsonValue *m = json_first(object); m && step(check); m = json_next(m))
                if (streq(json_key(m), key))
                        return m;
        return NULL;
}

/* --- errors --- */

static char *place_path(const Place *place) {
        _cleanup_free_ char *above = NULL;

        if (!place->above)
                return strdup("$");
        above = place_path(place->above);
        if (!above)
                return NULL;
        return place->key ? json_path_key(above, place->key) : json_path_index(above, place->index);
}

static int refuse(const Check *check, const Place *place, const char *what) {
        _cleanup_free_ char *path = NULL;

        if (check->quiet)
                return -EINVAL;
        path = place_path(place);
        if (!path)
                return error_oom(check->reterr);
        return error_set(check->reterr, ERROR_USAGE, 0, "%s: %s", path, what);
}

static void append(char *text, size_t size, const char *more) {
        const size_t used = strlen(text);

        (void)snprintf(text + used, size - used, "%s", more);
}

/* "a, b or c" */
static void append_choice(char *text, size_t size, const char *word, bool first, bool last) {
        if (!first)
                append(text, size, last ? " or " : ", ");
        append(text, size, word);
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

static const char *type_shown(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (streq(types[i].name, name))
                        return types[i].shown;
        return name;
}

/* From 2^53 on there are no others. trunc(3) would take libm where the compiler calls it. */
static bool is_whole(double number) {
        const double most = 9007199254740992;

        return number <= -most || number >= most || (double)(int64_t)number == number;
}

static bool has_type(const JsonValue *value, const char *name) {
        double number = 0;

        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                if (!streq(types[i].name, name))
                        continue;
                if (types[i].type != json_type(value))
                        return false;
                (void)json_number(value, &number);
                return !streq(name, "integer") || is_whole(number);
        }
        return true; /* no type that is known */
}

static int check_type(Check *check, const JsonValue *wanted, const JsonValue *value,
                      const Place *place) {
        char text[160] = "must be ";
        const JsonValue *first = json_first(wanted);

        if (json_string(wanted)) {
                if (has_type(value, json_string(wanted)))
                        return 0;
                append(text, sizeof(text), type_shown(json_string(wanted)));
                return refuse(check, place, text);
        }
        if (json_type(wanted) != JSON_ARRAY || !first)
                return 0;
        for (const JsonValue *t = first; t && step(check); t = json_next(t)) {
                if (!json_string(t) || has_type(value, json_string(t)))
                        return 0;
                append_choice(text, sizeof(text), type_shown(json_string(t)), t == first,
                              !json_next(t));
        }
        return refuse(check, place, text);
}

/* --- enum --- */

static bool is_equal(Check *check, const JsonValue *a, const JsonValue *b);

static size_t count_children(Check *check, const JsonValue *value) {
        size_t count = 0;

        for (const JsonValue *v = json_first(value); v && step(check); v = json_next(v))
                count++;
        return count;
}

static bool is_equal_inside(Check *check, const JsonValue *a, const JsonValue *b) {
        const bool objects = json_type(a) == JSON_OBJECT;
        const JsonValue *other = json_first(b);

        if (count_children(check, a) != count_children(check, b))
                return false;
        for (const JsonValue *v = json_first(a); v; v = json_next(v)) {
                const JsonValue *w = objects ? find(check, b, json_key(v)) : other;

                if (!w || !is_equal(check, v, w))
                        return false;
                other = objects ? NULL : json_next(other);
        }
        return true;
}

static bool is_equal(Check *check, const JsonValue *a, const JsonValue *b) {
        double number_a = 0, number_b = 0;
        bool yes_a = false, yes_b = false;

        if (!step(check) || json_type(a) != json_type(b))
                return false;
        if (json_string(a))
                return streq(json_string(a), json_string(b));
        if (json_number(a, &number_a) == 0 && json_number(b, &number_b) == 0)
                return number_a == number_b;
        if (json_bool(a, &yes_a) == 0 && json_bool(b, &yes_b) == 0)
                return yes_a == yes_b;
        return json_type(a) == JSON_NULL || is_equal_inside(check, a, b);
}

/* A value of an enum as its JSON, short. */
static void append_value(char *text, size_t size, const JsonValue *value, bool first, bool last) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        char word[64];

        json_copy(&w, NULL, value);
        if (json_write_finish(&w) < 0)
                return;
        w.data[w.length - 1] = '\0';
        (void)str_visible(w.data, word, sizeof(word));
        append_choice(text, size, word, first, last);
}

static int check_enum(Check *check, const JsonValue *allowed, const JsonValue *value,
                      const Place *place) {
        char text[400] = "must be ";
        const JsonValue *first = json_first(allowed);

        if (json_type(allowed) != JSON_ARRAY)
                return 0;
        for (const JsonValue *a = first; a; a = json_next(a))
                if (is_equal(check, value, a))
                        return 0;
        if (check->quiet)
                return -EINVAL;
        for (const JsonValue *a = first; a; a = json_next(a))
                append_value(text, sizeof(text), a, a == first, !json_next(a));
        return refuse(check, place, text);
}

static int check_const(Check *check, const JsonValue *wanted, const JsonValue *value,
                       const Place *place) {
        char text[100] = "must be ";

        if (is_equal(check, value, wanted))
                return 0;
        append_value(text, sizeof(text), wanted, true, true);
        return refuse(check, place, text);
}

/* --- objects and arrays --- */

static int check_required(Check *check, const JsonValue *names, const JsonValue *value,
                          const Place *place) {
        if (json_type(value) != JSON_OBJECT)
                return 0;
        for (const JsonValue *n = json_first(names); n && step(check); n = json_next(n)) {
                const Place missing = { place, json_string(n), 0 };

                if (json_string(n) && !find(check, value, json_string(n)))
                        return check->over ? 0 : refuse(check, &missing, "is missing");
        }
        return 0;
}

static int check_member(Check *check, const JsonValue *properties, const JsonValue *additional,
                        const JsonValue *member, const Place *place) {
        const Place below = { place, json_key(member), 0 };
        const JsonValue *schema = properties ? find(check, properties, json_key(member)) : NULL;
        bool allowed = true;

        if (schema)
                return check_value(check, schema, member, &below);
        if (!additional || check->over)
                return 0;
        (void)json_bool(additional, &allowed);
        if (!allowed)
                return refuse(check, &below, "is not known");
        return check_value(check, additional, member, &below);
}

static int check_members(Check *check, const JsonValue *schema, const JsonValue *value,
                         const Place *place) {
        const JsonValue *properties = find(check, schema, "properties");
        const JsonValue *additional = find(check, schema, "additionalProperties");
        int r = 0;

        if (json_type(value) != JSON_OBJECT || (!properties && !additional))
                return 0;
        for (const JsonValue *m = json_first(value); m && r == 0 && step(check); m = json_next(m))
                r = check_member(check, properties, additional, m, place);
        return r;
}

static int check_items(Check *check, const JsonValue *schema, const JsonValue *value,
                       const Place *place) {
        Place below = { place, NULL, 0 };
        int r = 0;

        if (json_type(value) != JSON_ARRAY || json_type(schema) != JSON_OBJECT)
                return 0;
        for (const JsonValue *i = json_first(value); i && r == 0 && step(check); i = json_next(i)) {
                r = check_value(check, schema, i, &below);
                below.index++;
        }
        return r;
}

/* --- anyOf --- */

/* What each of them says of the type, as "a string or null"; false where one says more. */
static bool any_types(const JsonValue *schemas, char *text, size_t size) {
        for (const JsonValue *s = json_first(schemas); s; s = json_next(s)) {
                const JsonValue *type = json_member(s, "type");

                if (!type || !json_string(type))
                        return false;
                append_choice(text, size, type_shown(json_string(type)), s == json_first(schemas),
                              !json_next(s));
        }
        return true;
}

static int check_any(Check *check, const JsonValue *schemas, const JsonValue *value,
                     const Place *place) {
        const bool quiet = check->quiet;
        char text[200] = "must be ";

        if (json_type(schemas) != JSON_ARRAY || !json_first(schemas))
                return 0;
        check->quiet = true;
        for (const JsonValue *s = json_first(schemas); s && step(check); s = json_next(s))
                if (check_value(check, s, value, place) == 0) {
                        check->quiet = quiet;
                        return 0;
                }
        check->quiet = quiet;
        return refuse(check, place,
                      any_types(schemas, text, sizeof(text)) ? text : "is none of what anyOf has");
}

/* --- a schema --- */

static int check_value(Check *check, const JsonValue *schema, const JsonValue *value,
                       const Place *place) {
        static const struct {
                const char *keyword;
                int (*check)(Check *check, const JsonValue *said, const JsonValue *value,
                             const Place *place);
        } keywords[] = {
                { "type", check_type },         { "enum", check_enum },   { "const", check_const },
                { "required", check_required }, { "items", check_items }, { "anyOf", check_any },
        };
        int r = 0;

        if (!step(check) || json_type(schema) != JSON_OBJECT)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(keywords) && r == 0; i++) {
                const JsonValue *said = find(check, schema, keywords[i].keyword);

                if (said)
                        r = keywords[i].check(check, said, value, place);
        }
        return r < 0 ? r : check_members(check, schema, value, place);
}

int json_schema_check(const JsonValue *schema, const JsonValue *value, Error *reterr) {
        Check check = { .reterr = reterr };
        int r = check_value(&check, schema, value, &(const Place){ NULL, NULL, 0 });

        if (!check.over)
                return r;
        (void)error_set(reterr, ERROR_LIMIT, 0, "too much to check against the schema");
        return -E2BIG;
}
