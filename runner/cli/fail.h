/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a verb that has failed: a text for people, or JSON for a program that has asked for
 * it. Both go to stderr, like the results of holt run and holt exec. stdout carries only the
 * requested data, or a part of it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Finds an option anywhere before "--". It must take effect even if other words of the command line
 * are wrong. Returns the text after its name ("" or "=VALUE"), or NULL. *ret_next is the next
 * argument, or "". */
const char *fail_find_option(int argc, char *const *argv, const char *name, const char **ret_next);

/* Returns whether the arguments contain --json, even if the verb does not have that option. */
bool fail_wants_json(int argc, char *const *argv);

/* Prints the error and returns its exit code. json: prints one line with the members "holt",
 * "cause", "exit_code" and "error", like a result of holt run. */
int fail_print(const Error *error, bool json);
