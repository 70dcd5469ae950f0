/* SPDX-License-Identifier: Apache-2.0 */
/* What the command prints, where limits.output bounds it.
 *
 * Theory of operation. Without the limit fds 1 and 2 go straight in, and there is no Output. With
 * it each is a pipe inside, which the launcher reads and writes on to the caller's fd, the one that
 * it has inherited; where both are one file one pipe is both, so that what is written to them stays
 * in order. A chunk that the caller has not taken yet holds the reading up, and so the command. An
 * fd that is a terminal is the sandbox's own terminal inside (terminal.h), and what comes out of
 * that counts against the same budget.
 *
 * The limit is exact. What is read past it is counted and dropped, and supervise.c ends the
 * command. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "streams/relay.h"

typedef struct Output Output;

enum { OUTPUT_POLL_MAX = 4 };

/* Looks at fds 0 to 2. To be called with the caller's own rights: a pipe is opened anew, so that
 * writing to it never blocks.
 *
 * limit         bytes; 0 is none, and then *ret is left alone.
 * terminal_fds  bits 1 and 2: this fd is a terminal (TerminalPlan.fds).
 * ret           the caller's; ends with output_free().
 *
 * 0, -EINVAL where the command could write to its stdin past the count, another negative errno. */
int output_prepare(uint64_t limit, unsigned terminal_fds, Output **ret, Error *reterr);
Output *output_free(Output *output);

/* In all that follow output may be NULL. */

/* Makes the pipes. To be called as who the command will be, since /dev/stdout inside is opened with
 * their owner's rights. 0 or a negative errno. */
int output_open(Output *output, Error *reterr);
/* In the child: puts them in the place of fds 1 and 2. 0 or a negative errno. */
int output_place(const Output *output);
/* In the launcher, when the child has them: closes the ends that are the child's. */
void output_placed(Output *output);

/* NULL without an output. */
Budget *output_budget(Output *output);
/* Whether the command has written more than the limit. */
bool output_passed(const Output *output);

/* For poll(2): fills up to OUTPUT_POLL_MAX entries and returns how many; after poll, output_pump()
 * with the same, which returns whether anything has moved. */
struct pollfd;
size_t output_poll(const Output *output, struct pollfd *fds);
bool output_pump(Output *output, const struct pollfd *fds);

/* When all inside have ended: no more is read than what they have left in the pipes. */
void output_end(Output *output);
/* Whether anything is left that the caller is to get. */
bool output_waits(const Output *output);
/* Counts what is left as lost. */
void output_give_up(Output *output);

/* A write to the caller's fd that has failed, but for that nobody reads: 0 where there was none, or
 * a negative errno. */
int output_failure(const Output *output, Error *reterr);

/* Bytes that have gone to the caller, and bytes that the command has written besides. */
void output_count(const Output *output, uint64_t *ret_bytes, uint64_t *ret_dropped);
