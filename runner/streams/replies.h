/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of the caller's terminal to queries that the command printed.
 *
 * Theory of operation. A terminal answers a query (its title, its size, the cursor's position) by
 * typing. An answer that comes after the command has ended would be typed into the caller's shell.
 * Flushing the input at once is not enough: the terminal is another process, perhaps on another
 * machine, and reads the output later. It answers in the order in which it reads. So holt asks a
 * question of its own, waits for the answer, and throws away everything that came before it.
 *
 * The command may have asked the same question, and the answer to it must not pass for holt's.
 * Every terminal knows two questions: its status (DSR) and its type (DA). holt sends 32 of them in
 * a random order and waits for answers in the same order.
 *
 * Some terminals do not answer, and some programs hold a pty without being a terminal: they log
 * what holt sends. So holt asks only if the command printed something that could be a question
 * (base/escapes.h). It first asks both questions once. It sends the 32 only if the terminal
 * answers. It waits for half a second each time, at most. Keys that the user typed meanwhile are
 * thrown away with the answers. */
#pragma once

#include <stdbool.h>

/* Whether holt may read from the terminal and change its mode without being stopped. It may if it
 * is in the foreground, or if the terminal is not its controlling terminal. */
bool replies_in_foreground(int fd);

/* Opens the terminal of the inherited fd again, so that holt can set O_NONBLOCK without changing
 * the caller's fd. Opens it for reading and writing if allowed, else for writing only. The caller
 * owns the result. Returns FD_NONE if neither is allowed. */
int replies_open(int inherited_fd);

/* Throws away the answers of the terminal fd, and all other input. Restores the terminal's mode.
 * Does nothing if holt is in the background, since the input then belongs to another job.
 *
 * may_ask  fd comes from replies_open(), so that no call blocks. Without it, only the input
 *          that has already arrived is thrown away. */
void replies_discard(int fd, bool may_ask);
