/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers what holt has told in a terminal session, so that a loop does not repeat it.
 *
 * The memory is a key in the user's keyring (keyrings(7)), which nothing inside can reach: the
 * system calls for keys are refused there, and a user namespace has other keyrings. It leaves no
 * file behind. Without keyrings, as in many containers, everything is told each time. So it is if
 * root runs holt: the run has a user of its own by then, and that user's keyring ends with it. */
#pragma once

#include <stdbool.h>

/* Whether the text is the last one that this function was called with in this terminal session,
 * within an hour. Otherwise, notes the text. */
bool told_before(const char *text);
