/* SPDX-License-Identifier: Apache-2.0 */
/* Hands a verb over to holt-full, the program that is linked with libraries. */
#pragma once

/* Executes holt-full with this program's own argv: the one in libexec of the installed holt, or the
 * one in the same build tree. Returns only on failure: prints the error and returns the exit
 * code. */
int full_execute(char *const *argv);
