/* SPDX-License-Identifier: Apache-2.0 */
/* How much has been copied, and what a terminal shows of it meanwhile.
 *
 * Theory of operation. A thread looks at the offset of the file that is read at the moment. It is
 * the open file's, and so moves whoever reads it: this process, or the keeper that it was sent to.
 * Nothing is shown in the first second, to a stderr that is no terminal, or from the background. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct ProgressCounts {
        uint64_t files, bytes;
} ProgressCounts;

/* From here to progress_end() it is counted, and shown. */
void progress_begin(void);
void progress_end(void);

/* fd is read from here to progress_done(), and stays open until then. */
void progress_file(int fd);
/* length: bytes of a file that is whole now, which counts; nothing else does. */
void progress_done(bool whole, uint64_t length);

/* Of what was copied since progress_begin(). */
ProgressCounts progress_counts(void);
