/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the field bridge.routes, for the table of fields. The launcher knows no providers,
 * so it accepts each name there, and leaves the check to holt-full. */
#pragma once

#include "policy/policy.h"

/* Accepts the name of a known provider, and each object. See PolicyField.check. */
int route_field_check(const char *text, const char **ret_why);
/* Handles --route. */
int route_field_set(Policy *policy, const char *value, Error *reterr);
/* Refuses a second route with the name of an earlier one, and too many routes. See
 * PolicyField.after_caller. */
int route_field_added(Policy *policy, const char *where, Error *reterr);
