/* SPDX-License-Identifier: Apache-2.0 */
/* From the table of fields to JSON: the schema, and a policy as a document. */
#pragma once

#include "base/json-write.h"
#include "policy/policy.h"

/* Writes the JSON Schema (draft 2020-12) of policy documents. It is as strict as policy_load()
 * about names and types, and looser about paths. */
void policy_schema_print(JsonWriter *w);

/* Parts of the schema, for a document that contains it: the type and all properties, and the
 * properties that a whole document must have. The caller has opened the object. */
void policy_schema_members(JsonWriter *w);
void policy_schema_required(JsonWriter *w);

/* Writes a document from which policy_load() makes the same policy. Returns 0, or -ENOMEM; w may
 * then contain a part of it. */
int policy_document_print(const Policy *policy, JsonWriter *w);
