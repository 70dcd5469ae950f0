/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors 0 to 2: which ones a command may have, and how holt restores them afterwards. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Opens /dev/null for each closed fd from 0 to 2. Refuses an fd that leads out of the sandbox
 * (stdio.c). */
int stdio_open(Error *reterr);

/* Whether a command may have fd as its stdin, stdout or stderr. Allowed are a file that holds data,
 * a pipe, a terminal, a harmless character device, and a connected local stream. */
bool stdio_is_harmless(int fd);

/* Sets the error for an fd that is not harmless. fd is its number in the command, 0 to 2. */
int stdio_refuse(int fd, Error *reterr);

/* stdio_note() notes the status flags and locks of fds 0 to 2 before the command starts.
 * stdio_restore() puts them back after it has ended (stdio-state.c). except has a bit for each fd
 * that the command did not have. */
void stdio_note(void);
void stdio_restore(unsigned except);
