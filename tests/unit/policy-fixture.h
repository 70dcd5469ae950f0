/* SPDX-License-Identifier: Apache-2.0 */
/* Policies for the tests of policy/: how they are made, and what is in them. */
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

/* A document's text on top of a policy, as policy_load() does it; it is called t.json. */
int load(Policy *policy, const char *text, PolicyOrigin origin, Error *reterr);

/* Starts an empty policy by a preset; fails the test where there is none. */
void preset(Policy *policy, const char *name);

/* The value of a field, "-" where it is unset, items joined by a blank. Owned by the caller. */
char *value_of(const Policy *policy, const char *path);

void assert_value(const Policy *policy, const char *path, const char *expected);
