/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and reads policies for the tests of policy/. */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policy.h"

/* Loads a document's text on top of a policy with policy_load(). The document is called t.json. */
int load(Policy *policy, const char *text, PolicyOrigin origin, Error *reterr);

/* Starts an empty policy from a preset. Fails the test if no such preset exists. */
void preset(Policy *policy, const char *name);

/* Returns the value of a field: "-" if it is unset, items joined by a blank. Owned by the caller.
 */
char *value_of(const Policy *policy, const char *path);

void assert_value(const Policy *policy, const char *path, const char *expected);
