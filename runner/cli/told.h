/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers what holt has told in a terminal session, so that a loop does not repeat it.
 *
 * The memory is a key in the user's keyring (keyrings(7)), so it leaves no file behind. Commands
 * inside cannot reach that keyring: their system calls for keys are refused, and a user namespace
 * has other keyrings. Without keyrings, for example in many containers, everything is told each
 * time. The same is true if root runs holt, because the keyring of the run's own user ends with the
 * run. */
#pragma once

#include <stdbool.h>

/* Whether the text is the last one that this function was called with in this terminal session,
 * within an hour. Otherwise, notes the text. */
bool told_before(const char *text);
