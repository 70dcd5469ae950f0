/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors 0 to 2: what a command may have there, and what holt puts back afterwards. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Fds 0 to 2: opens /dev/null where one is closed, and refuses what leads out of a sandbox
 * (stdio.c). */
int stdio_open(Error *reterr);

/* Whether a command may have fd as its stdin, stdout or stderr: a file that holds data, a pipe, a
 * terminal or another character device, a connected local stream. */
bool stdio_is_harmless(int fd);

/* The error for one that is not; fd is the number that the command would have it by, 0 to 2. */
int stdio_refuse(int fd, Error *reterr);

/* Notes the status flags and locks of fds 0 to 2 before the command has them, and puts them back
 * after it has ended (stdio-state.c). except has a bit for each that the command did not have. */
void stdio_note(void);
void stdio_restore(unsigned except);
