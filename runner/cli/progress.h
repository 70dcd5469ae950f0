/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what was copied, and shows the progress on a terminal.
 *
 * Theory of operation. A thread reads the offset of the file that is being copied. The offset
 * belongs to the open file description, so it also moves when the keeper reads the file. Nothing is
 * shown in the first second, from the background, or if stderr is not a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct ProgressCounts {
        uint64_t files, bytes;
} ProgressCounts;

/* The progress is counted and shown between these two calls. */
void progress_begin(void);
void progress_end(void);

/* Starts a file. fd must stay open until progress_done(). */
void progress_file(int fd);
/* Ends a file. It counts, with its length in bytes, only if whole is true. */
void progress_done(bool whole, uint64_t length);

/* Returns the counts since progress_begin(). */
ProgressCounts progress_counts(void);
