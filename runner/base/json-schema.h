/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a value against a JSON schema (2020-12, and spellings of older drafts):
 *
 *   any        type (also an array of types), enum, const, anyOf, oneOf, allOf, not, $ref within
 *              the schema
 *   objects    properties, required, additionalProperties, minProperties, maxProperties
 *   arrays     items, prefixItems, minItems, maxItems, uniqueItems
 *   strings    minLength, maxLength
 *   numbers    minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
 *
 * Other keywords are ignored, including pattern and format. additionalProperties is ignored too in
 * a schema with patternProperties. A schema without known keywords accepts everything. */
#pragma once

#include "base/json.h"

enum {
        /* Maximum number of members, items, comparisons and pieces of long texts that one check
         * visits. */
        JSON_SCHEMA_STEPS_MAX = 4 << 20,
        JSON_SCHEMA_NESTED_MAX =
                512, /* maximum depth of nested schemas, including those reached by $ref */
};

/* Returns 0, or one of these errors.
 *
 * -EINVAL  with ERROR_USAGE: the value does not match; the text is, for example, "$.limit: must be
 *          an integer"
 * -E2BIG   with ERROR_LIMIT: the check needs more than JSON_SCHEMA_STEPS_MAX or _NESTED_MAX
 * -ENOMEM  memory is out */
int json_schema_check(const JsonValue *schema, const JsonValue *value, Error *reterr);

/* Checks that a schema makes sense. Returns 0, -EINVAL with ERROR_USAGE and a text such as "name:
 * $.properties.limit.type: no type is called \"integr\"", or -E2BIG and -ENOMEM as above. */
int json_schema_verify(const JsonValue *schema, const char *name, Error *reterr);
