/* SPDX-License-Identifier: Apache-2.0 */
/* From the table of fields to JSON: the schema, and a policy as a document. */
#pragma once

#include "base/json-write.h"
#include "policy/policy.h"

/* The JSON Schema (draft 2020-12) of policy documents. It is as strict as policy_load() on names
 * and types, and looser on paths. */
void policy_schema_print(JsonWriter *w);

/* A document that policy_load() makes the same policy of.
 * 0, or -ENOMEM; w may then have a part of it. */
int policy_document_print(const Policy *policy, JsonWriter *w);
