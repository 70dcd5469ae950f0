/* SPDX-License-Identifier: Apache-2.0 */
/* How a verb ends that could not do its part: a text for people, or JSON for a program that has
 * asked for that. Both go to stderr, where holt run and holt exec have their results, too: what is
 * on stdout is what was asked for, or a part of it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* An option, wherever before "--" it is: it holds for what is wrong with the command line as well.
 * Returns what stands behind its name ("" or "=VALUE"), or NULL; *ret_next is the argument after
 * it, or "". */
const char *fail_find_option(int argc, char *const *argv, const char *name, const char **ret_next);

/* Whether --json is there; also for a verb, or a holt, that knows none. */
bool fail_wants_json(int argc, char *const *argv);

/* Prints the error and returns its exit code. json: as one line with the members "holt", "cause",
 * "exit_code" and "error", as results of holt run have them. */
int fail_print(const Error *error, bool json);
