/* SPDX-License-Identifier: Apache-2.0 */
/* The way from holt to holt-full, which has what needs libraries. */
#pragma once

/* Executes holt-full with this program's own argv: the one that lies beside the installed holt
 * (libexec), or the one of the same build tree. Returns only on failure: the exit code, with the
 * error printed. */
int full_execute(char *const *argv);
