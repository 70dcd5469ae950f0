/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a value is what a JSON schema says: type (also an array of types), properties, required,
 * additionalProperties, items, enum, const and anyOf. Other keywords are passed over, and so are
 * those that are no schema's: a schema that says nothing takes everything. */
#pragma once

#include "base/json.h"

enum {
        JSON_SCHEMA_STEPS_MAX = 4 << 20
}; /* members, items and comparisons that one check looks at */

/* 0; -EINVAL with an ERROR_USAGE whose text is "$.limit: must be an integer"; -E2BIG with an
 * ERROR_LIMIT where it would take more than JSON_SCHEMA_STEPS_MAX; -ENOMEM. */
int json_schema_check(const JsonValue *schema, const JsonValue *value, Error *reterr);
