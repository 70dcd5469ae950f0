/* SPDX-License-Identifier: Apache-2.0 */
/* The supported keywords of JSON Schema, only for base/json-schema.c: the values that each may
 * have, and its check. */
#pragma once

#include "base/json.h"

/* The position of a value. It becomes a path only if an error needs one. */
typedef struct Place {
        const struct Place *above;
        const char *key; /* NULL for an item */
        size_t index;
} Place;

typedef struct Check {
        const JsonValue *root; /* the whole schema, for $ref */
        size_t steps;
        unsigned depth; /* nesting depth of the schemas being checked */
        bool over;      /* the limit of steps or of depth was passed */
        bool quiet;     /* a trial for anyOf or similar: no error is written */
        Error *reterr;
} Check;

/* The kinds of value that a keyword may have. */
typedef enum SchemaSays {
        SAYS_ANYTHING,
        SAYS_TEXT,
        SAYS_BOOL,
        SAYS_NUMBER,
        SAYS_FACTOR,        /* a number above 0 */
        SAYS_BOUND,         /* a number; true or false in old drafts */
        SAYS_COUNT,         /* a whole number, at least 0 */
        SAYS_LIST,          /* an array of anything */
        SAYS_NAMES,         /* an array of strings */
        SAYS_TYPES,         /* the name of a type, or an array of them */
        SAYS_REFERENCE,     /* "#/$defs/name": the place of another schema */
        SAYS_SCHEMA,        /* an object, true or false */
        SAYS_SCHEMAS,       /* an array of schemas */
        SAYS_SCHEMA_OR_ALL, /* a schema, or an array of schemas */
        SAYS_NAMED_SCHEMAS, /* an object of schemas */
} SchemaSays;

/* Checks value against the value `said` of a keyword in schema. Returns 0, -EINVAL if value is
 * refused, or -ENOMEM. */
typedef int SchemaRule(Check *check, const JsonValue *schema, const JsonValue *said,
                       const JsonValue *value, const Place *place);

typedef struct SchemaKeyword {
        const char *name;
        SchemaSays says;
        SchemaRule *rule; /* NULL if the keyword alone checks nothing */
} SchemaKeyword;

/* NULL if the keyword is ignored. */
const SchemaKeyword *schema_keyword(const char *name);

/* Returns the name of a type for errors ("an integer"), or NULL. *suggested becomes the name that
 * was probably meant, or NULL; suggested may be NULL. */
const char *schema_type(const char *name, const char **suggested);
/* Whether value has the type. An unknown type accepts everything. */
bool schema_has_type(const JsonValue *value, const char *name);

/* Builds "a, b or c". Returns false when the text is full; "..." then marks the omission. */
bool schema_append_choice(char *text, size_t size, const char *word, bool first, bool last);

/* --- json-schema-several.c --- */

SchemaRule schema_check_any, schema_check_one, schema_check_all, schema_check_not, schema_check_if;

/* --- json-schema.c, for the rules --- */

int schema_check_value(Check *check, const JsonValue *schema, const JsonValue *value,
                       const Place *place);
/* Counts a step. Returns false when the limit is reached. */
bool schema_step(Check *check);
/* Finds a member like json_member(), and counts steps. The object may be NULL. */
const JsonValue *schema_find(Check *check, const JsonValue *object, const char *key);
/* The number of items or members, and whether two values are equal. Both functions count steps. */
size_t schema_count(Check *check, const JsonValue *value);
bool schema_equal(Check *check, const JsonValue *a, const JsonValue *b);
SchemaRule schema_check_reference;
/* Returns the schema that a $ref names, or NULL. Counts steps. */
const JsonValue *schema_resolve(Check *check, const char *reference);
/* Returns -EINVAL, with the text "$.limit: what" unless the check is quiet; or -ENOMEM. */
int schema_refuse(const Check *check, const Place *place, const char *what);
