/* SPDX-License-Identifier: Apache-2.0 */
/* The command's output, if limits.output bounds it, and the end of what it wrote to stderr.
 *
 * Theory of operation. Without the limit, the command inherits fds 1 and 2. With the limit, the
 * command gets a pipe for each. The launcher reads the pipe and writes to the fd that it has
 * inherited. If both fds are one file, one pipe stands for both, so that their output stays in
 * order. The launcher reads no further until the caller has taken the last chunk, so a slow caller
 * holds up the command. An fd that is a terminal becomes the sandbox's own terminal (terminal.h),
 * whose output counts against the same budget.
 *
 * A failed command's last messages tell which paths were refused (outcome/refused.h). If stderr is
 * a file, the launcher reads its end afterwards. If it is a pipe or socket, the command gets a pipe
 * as with the limit. Programs that run others often read both streams from one pipe (2>&1); one
 * pipe then stands for both. If stdin is the same socket, nothing is read.
 *
 * A file that the command could open again makes every open(2) slower (child/landlock.c). If it is
 * stderr, the command gets a pipe instead: nobody seeks in error messages. The same goes for a file
 * that is both stdout and stderr, such as the log of a build. A file that is only stdout stays,
 * since programs may seek in it.
 *
 * The limit is exact. The launcher counts and drops every byte past it, and supervise.c ends the
 * command. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "streams/relay.h"
#include "streams/stdio.h"

typedef struct Output Output;

enum { OUTPUT_POLL_MAX = 4 };

/* Prepares the output of fds 0 to 2. Call it with the caller's own rights: a pipe is opened
 * again so that writing to it never blocks.
 *
 * limit         bytes; 0 means no limit.
 * terminal_fds  bits 1 and 2: this fd is a terminal (TerminalPlan.fds).
 * checked       bits 0 to 2: this fd makes every open(2) slower (landlock_stdio()).
 * stdio         facts about fds 0 to 2.
 * ret           owned by the caller; ends with output_free(). NULL if no pipe or file is needed.
 *
 * Returns 0, -EINVAL if the command could write uncounted bytes to its stdin, or another negative
 * errno. */
int output_prepare(uint64_t limit, unsigned terminal_fds, unsigned checked, const FdFacts stdio[3],
                   Output **ret, Error *reterr);
Output *output_free(Output *output);

/* All functions below accept NULL as output. */

/* Makes the pipes. Call it with the command's user and group: /dev/stdout inside is opened with the
 * rights of the pipe's owner. Returns 0 or a negative errno. */
int output_open(Output *output, Error *reterr);
/* Puts the pipes in the place of fds 1 and 2. Called in the child. Returns 0 or a negative
 * errno. */
int output_place(const Output *output);
/* Closes the child's ends in the launcher, once the child has them. */
void output_placed(Output *output);

/* Returns NULL without a limit. */
Budget *output_budget(Output *output);
/* Whether the command has written more than the limit. */
bool output_passed(const Output *output);

/* output_poll() fills up to OUTPUT_POLL_MAX entries for poll(2) and returns their number. After
 * poll(2), output_pump() takes the same entries and returns whether any byte has moved. */
struct pollfd;
size_t output_poll(Output *output, struct pollfd *fds);
bool output_pump(Output *output, const struct pollfd *fds);

/* Call it after all processes inside have ended: only the bytes that are in the pipes now are still
 * read. */
void output_end(Output *output);
/* Whether some bytes for the caller have not been delivered yet. */
bool output_waits(const Output *output);
/* Counts all remaining bytes as lost. */
void output_give_up(Output *output);

/* Returns the last bytes that were written to stderr, perhaps after bytes of stdout; NULL if they
 * are not known. Borrowed from output. */
const Tail *output_last(Output *output);

/* Returns 0, or a negative errno if a write to the caller's fd has failed. A reader that has gone
 * is not a failure. */
int output_failure(const Output *output, Error *reterr);

/* ret_bytes is the number of bytes that the caller got; ret_dropped is the number of further bytes
 * that the command wrote. */
void output_count(const Output *output, uint64_t *ret_bytes, uint64_t *ret_dropped);
