/* SPDX-License-Identifier: Apache-2.0 */
/* Policy documents: JSON to Policy, by the table of fields. The caller has read the file. */
#pragma once

#include "base/json.h"
#include "policy/policy.h"

/* Applies a document to policy. The origin decides its rights:
 *
 * ORIGIN_CALLER   "extends" starts the policy from a preset; see policy_load_over() for a file.
 * Without it POLICY_PRESET_DEFAULT is used, unless a preset or another document was applied before.
 * ORIGIN_PROJECT  the document may only narrow the policy.
 * ORIGIN_PRESET   the document is the whole policy.
 *
 * name  the file's name, for errors: "NAME: $.limits.pids: what is wrong".
 *
 * Returns 0, -EPERM (the project's file would widen), -EEXIST (a second preset), or another
 * negative errno of json_parse() or policy_set(). On failure policy may be partly changed. */
int policy_load(Policy *policy, const char *bytes, size_t length, const char *name,
                PolicyOrigin origin, Error *reterr);

/* The file that a document extends, "./base.json", or NULL if it extends a preset or nothing.
 * Borrowed from document. */
const char *policy_extended_file(const JsonValue *document);

/* The same as policy_load_value() with ORIGIN_CALLER, for a document whose extended file the caller
 * has applied to policy already. */
int policy_load_over(Policy *policy, const JsonValue *document, const char *name, Error *reterr);

/* The same as policy_load() for a parsed document. */
int policy_load_value(Policy *policy, const JsonValue *document, const char *name,
                      PolicyOrigin origin, Error *reterr);
