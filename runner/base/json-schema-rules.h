/* SPDX-License-Identifier: Apache-2.0 */
/* The keywords of JSON Schema that count, for base/json-schema.c alone: what each may say, and how
 * a value is held to it. */
#pragma once

#include "base/json.h"

/* Where a value is; made into a path only for an error. */
typedef struct Place {
        const struct Place *above;
        const char *key; /* NULL of an item */
        size_t index;
} Place;

typedef struct Check {
        const JsonValue *root; /* of the schema, for $ref */
        size_t steps;
        unsigned depth; /* schemas that are being checked, one inside the other */
        bool over;      /* more steps than allowed, or deeper */
        bool quiet;     /* an anyOf is trying: nothing is written */
        Error *reterr;
} Check;

/* What a keyword says. */
typedef enum SchemaSays {
        SAYS_ANYTHING,
        SAYS_TEXT,
        SAYS_BOOL,
        SAYS_NUMBER,
        SAYS_FACTOR,        /* a number above 0 */
        SAYS_BOUND,         /* a number; true or false in old drafts */
        SAYS_COUNT,         /* a whole number, 0 at least */
        SAYS_LIST,          /* an array of anything */
        SAYS_NAMES,         /* an array of strings */
        SAYS_TYPES,         /* the name of a type, or an array of them */
        SAYS_REFERENCE,     /* "#/$defs/name": where in the schema another is */
        SAYS_SCHEMA,        /* an object, true or false */
        SAYS_SCHEMAS,       /* an array of them */
        SAYS_SCHEMA_OR_ALL, /* one, or an array of them */
        SAYS_NAMED_SCHEMAS, /* an object of them */
} SchemaSays;

/* Holds value to what the keyword of schema has said: 0, -EINVAL once it is refused, -ENOMEM. */
typedef int SchemaRule(Check *check, const JsonValue *schema, const JsonValue *said,
                       const JsonValue *value, const Place *place);

typedef struct SchemaKeyword {
        const char *name;
        SchemaSays says;
        SchemaRule *rule; /* NULL: it says nothing of values by itself */
} SchemaKeyword;

/* NULL of one that is passed over. */
const SchemaKeyword *schema_keyword(const char *name);

/* The name of a type as errors show it ("an integer"), or NULL; suggested, which may be NULL,
 * becomes the one that was meant, or NULL. */
const char *schema_type(const char *name, const char **suggested);
/* Whether value is of the type, or no type has that name. */
bool schema_has_type(const JsonValue *value, const char *name);

/* Makes "a, b or c"; false once there is no room for another, which "..." says. */
bool schema_append_choice(char *text, size_t size, const char *word, bool first, bool last);

/* --- of json-schema-several.c --- */

SchemaRule schema_check_any, schema_check_one, schema_check_all, schema_check_not, schema_check_if;

/* --- of json-schema.c, for the rules --- */

int schema_check_value(Check *check, const JsonValue *schema, const JsonValue *value,
                       const Place *place);
/* False when it has been enough. */
bool schema_step(Check *check);
/* As json_member(), counted; the object may be NULL. */
const JsonValue *schema_find(Check *check, const JsonValue *object, const char *key);
/* How many items or members, and whether two values are the same; both counted. */
size_t schema_count(Check *check, const JsonValue *value);
bool schema_equal(Check *check, const JsonValue *a, const JsonValue *b);
SchemaRule schema_check_reference;
/* What a $ref leads to, or NULL; counted. */
const JsonValue *schema_resolve(Check *check, const char *reference);
/* -EINVAL, with "$.limit: what" where errors are wanted; -ENOMEM. */
int schema_refuse(const Check *check, const Place *place, const char *what);
