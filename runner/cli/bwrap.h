/* SPDX-License-Identifier: Apache-2.0 */
/* bubblewrap's command line, as a verb of holt or as a program of its own name. */
#pragma once

/* argv begins with "bwrap". whole is the command line of this process, in which it is contained.
 * Returns the exit code. */
int bwrap_main(int argc, char **argv, char *const *whole);
