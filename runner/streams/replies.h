/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of the caller's terminal to what the command printed.
 *
 * Theory of operation. A terminal answers a query (its title, its size, the cursor's position) by
 * typing. An answer that comes after the command has ended would be typed into the caller's shell.
 * To flush the input at once is not enough: the terminal is another process, perhaps on another
 * machine, and reads what was printed only later. It answers in the order in which it reads. So
 * holt asks a question of its own, waits until the answer to that has come, and throws away all
 * that came before.
 *
 * The command may have asked the same question itself, so its answer must not pass for holt's.
 * Every terminal knows two questions: its status (DSR) and its type (DA). holt sends 32 of them in
 * a random order and waits for answers in just that order.
 *
 * Some terminals do not answer, and some programs hold a pty without being a terminal. So holt asks
 * only if the command printed something that could be a question (base/escapes.h), and waits for
 * half a second at most. What the user typed in the meantime is thrown away with the answers. */
#pragma once

#include <stdbool.h>

/* Whether holt may read from the terminal and change its mode without being stopped: it is in the
 * foreground, or the terminal does not control it. */
bool replies_in_foreground(int fd);

/* Opens the terminal that the inherited fd is once more, so that holt's O_NONBLOCK is not on the
 * caller's fd: for reading and writing, or for writing alone. The caller owns the result. FD_NONE
 * where neither is allowed. */
int replies_open(int inherited_fd);

/* Throws away the answers of the terminal fd, and what else was typed. Does nothing in the
 * terminal's background: the input is another job's there. The mode is as before at the end.
 *
 * may_ask  fd is from replies_open(), so that no call blocks; without it only what has come by now
 *          is thrown away. */
void replies_discard(int fd, bool may_ask);
