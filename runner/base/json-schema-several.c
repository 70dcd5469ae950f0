/* SPDX-License-Identifier: Apache-2.0 */
/* The keywords with several schemas, "not", and $ref: see base/json-schema-rules.h. */
#include <errno.h>

#include "base/json-schema-rules.h"

enum { REFERENCES_MAX = 8 }; /* longest chain of $ref */

/* The name of the type, if "type" is the only keyword of the schema that checks values. */
static const char *only_type(const JsonValue *schema) {
        const char *type = NULL;

        for (const JsonValue *said = json_first(schema); said; said = json_next(said)) {
                const SchemaKeyword *keyword = json_key(said) ? schema_keyword(json_key(said))
                                                              : NULL;

                if (!keyword || !keyword->rule)
                        continue;
                if (keyword->says != SAYS_TYPES || !json_string(said))
                        return NULL;
                type = json_string(said);
        }
        return type;
}

static const char *several_shown(const char *type) {
        const char *known = schema_type(type, NULL);

        return known ? known : type;
}

/* The "type" of a schema, also through a $ref, or NULL. */
static const JsonValue *several_type_of(Check *check, const JsonValue *schema) {
        for (unsigned i = 0; i < REFERENCES_MAX; i++) {
                const JsonValue *reference = schema_find(check, schema, "$ref");

                if (!reference || !json_string(reference))
                        break;
                schema = schema_resolve(check, json_string(reference));
        }
        return schema_find(check, schema, "type");
}

static bool several_fits(Check *check, const JsonValue *type, const JsonValue *value) {
        if (json_string(type))
                return schema_has_type(value, json_string(type));
        for (const JsonValue *t = json_first(type); t && schema_step(check); t = json_next(t))
                if (json_string(t) && schema_has_type(value, json_string(t)))
                        return true;
        return false;
}

/* Returns the only schema that accepts the type of value, because its errors are the most useful.
 * Python's Optional, for example, generates several schemas. NULL if none or several accept the
 * type, or if one accepts any type. */
static const JsonValue *several_meant(Check *check, const JsonValue *schemas,
                                      const JsonValue *value) {
        const JsonValue *found = NULL;

        for (const JsonValue *s = json_first(schemas); s && schema_step(check); s = json_next(s)) {
                const JsonValue *type = several_type_of(check, s);

                if (!type || (found && several_fits(check, type, value)))
                        return NULL;
                if (!found && several_fits(check, type, value))
                        found = s;
        }
        return found;
}

/* Refuses a value that no schema takes. The error is that of the schema that was probably meant, or
 * "must be a string or null", or else fallback. */
static int refuse_all(Check *check, const Place *place, const JsonValue *schemas,
                      const JsonValue *value, const char *fallback) {
        char text[200] = "must be ";
        const JsonValue *one = check->quiet ? NULL : several_meant(check, schemas, value);

        if (check->quiet)
                return -EINVAL;
        if (one)
                return schema_check_value(check, one, value, place);
        for (const JsonValue *s = json_first(schemas); s; s = json_next(s)) {
                const char *type = only_type(s);

                if (!type)
                        return schema_refuse(check, place, fallback);
                if (!schema_append_choice(text, sizeof(text), several_shown(type),
                                          s == json_first(schemas), !json_next(s)))
                        break;
        }
        return schema_refuse(check, place, text);
}

/* Whether the schema takes the value. Writes no error for a mismatch; -ENOMEM. */
static int several_takes(Check *check, const JsonValue *schema, const JsonValue *value,
                         const Place *place) {
        const bool quiet = check->quiet;
        int r;

        check->quiet = true;
        r = schema_check_value(check, schema, value, place);
        check->quiet = quiet;
        return r == -EINVAL ? 0 : r < 0 ? r : 1;
}

int schema_check_any(Check *check, const JsonValue *schema, const JsonValue *said,
                     const JsonValue *value, const Place *place) {
        (void)schema;
        if (json_type(said) != JSON_ARRAY || !json_first(said))
                return 0;
        for (const JsonValue *s = json_first(said); s && schema_step(check); s = json_next(s)) {
                int r = several_takes(check, s, value, place);

                if (r != 0)
                        return r < 0 ? r : 0;
        }
        return refuse_all(check, place, said, value, "matches no schema of anyOf");
}

int schema_check_one(Check *check, const JsonValue *schema, const JsonValue *said,
                     const JsonValue *value, const Place *place) {
        unsigned count = 0;

        (void)schema;
        if (json_type(said) != JSON_ARRAY || !json_first(said))
                return 0;
        for (const JsonValue *s = json_first(said); s && count < 2 && schema_step(check);
             s = json_next(s)) {
                int r = several_takes(check, s, value, place);

                if (r < 0)
                        return r;
                count += r > 0;
        }
        if (count == 1)
                return 0;
        if (count > 1)
                return schema_refuse(check, place, "matches more than one schema of oneOf");
        return refuse_all(check, place, said, value, "matches no schema of oneOf");
}

int schema_check_all(Check *check, const JsonValue *schema, const JsonValue *said,
                     const JsonValue *value, const Place *place) {
        int r = 0;

        (void)schema;
        for (const JsonValue *s = json_first(said); s && r == 0 && schema_step(check);
             s = json_next(s))
                r = schema_check_value(check, s, value, place);
        return r;
}

int schema_check_not(Check *check, const JsonValue *schema, const JsonValue *said,
                     const JsonValue *value, const Place *place) {
        int r;

        (void)schema;
        if (json_type(said) != JSON_OBJECT && json_type(said) != JSON_BOOL)
                return 0;
        r = several_takes(check, said, value, place);
        if (r <= 0 || check->over)
                return r < 0 ? r : 0;
        return schema_refuse(check, place, "matches the schema in \"not\"");
}

int schema_check_if(Check *check, const JsonValue *schema, const JsonValue *said,
                    const JsonValue *value, const Place *place) {
        const JsonValue *then;
        int r;

        if (json_type(said) != JSON_OBJECT && json_type(said) != JSON_BOOL)
                return 0;
        r = several_takes(check, said, value, place);
        if (r < 0 || check->over)
                return r < 0 ? r : 0;
        then = schema_find(check, schema, r > 0 ? "then" : "else");
        return then ? schema_check_value(check, then, value, place) : 0;
}
