/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a value is what a JSON schema says (2020-12, and what older drafts wrote otherwise):
 *
 *   any        type (also an array of types), enum, const, anyOf, oneOf, allOf, not, $ref within
 *              the schema
 *   objects    properties, required, additionalProperties, minProperties, maxProperties
 *   arrays     items, prefixItems, minItems, maxItems, uniqueItems
 *   strings    minLength, maxLength
 *   numbers    minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf
 *
 * Other keywords are passed over, pattern and format among them; where there are patternProperties,
 * so is additionalProperties. What says nothing takes everything. */
#pragma once

#include "base/json.h"

enum {
        /* members, items, comparisons and pieces of long texts that one check looks at */
        JSON_SCHEMA_STEPS_MAX = 4 << 20,
        JSON_SCHEMA_NESTED_MAX = 512, /* schemas in each other, those by $ref included */
};

/* 0; -EINVAL with an ERROR_USAGE whose text is "$.limit: must be an integer"; -E2BIG with an
 * ERROR_LIMIT where it would take more than JSON_SCHEMA_STEPS_MAX or JSON_SCHEMA_NESTED_MAX;
 * -ENOMEM. */
int json_schema_check(const JsonValue *schema, const JsonValue *value, Error *reterr);

/* Whether a schema makes sense: 0; -EINVAL with an ERROR_USAGE whose text is "name:
 * $.properties.limit.type: no type is called \"integr\""; -E2BIG and -ENOMEM as above. */
int json_schema_verify(const JsonValue *schema, const char *name, Error *reterr);
