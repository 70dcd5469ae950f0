/* SPDX-License-Identifier: Apache-2.0 */
/* Policy documents: JSON -> Policy, by the table of fields. Pure: the caller has read the file. */
#pragma once

#include "base/json.h"
#include "policy/policy.h"

/* Applies a document to policy.
 *
 * As the caller's own (ORIGIN_CALLER), "extends" starts the policy from a preset, and without it
 * POLICY_PRESET_DEFAULT does, unless a preset or another document has been applied before. As the
 * project's (ORIGIN_PROJECT) it may only narrow what is there. As a preset's (ORIGIN_PRESET) it
 * is all there is.
 *
 * name  the file's name, for errors: "NAME: $.limits.pids: what is wrong".
 *
 * 0, -EPERM (the project's file would widen), -EEXIST (a second preset), or another negative errno
 * of json_parse() or policy_set(). On failure policy may have been changed in part. */
int policy_load(Policy *policy, const char *bytes, size_t length, const char *name,
                PolicyOrigin origin, Error *reterr);

/* The same for a document that has been parsed. */
int policy_load_value(Policy *policy, const JsonValue *document, const char *name,
                      PolicyOrigin origin, Error *reterr);
