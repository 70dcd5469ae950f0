/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the last bytes of an output, for outcome/complaints.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { TAIL_MAX = 8 * 1024 };

/* At the start, length is zero. */
typedef struct Tail {
        size_t length;
        char data[2 * TAIL_MAX]; /* The last of these bytes, up to TAIL_MAX, are the tail. */
} Tail;

void tail_add(Tail *tail, const char *data, size_t size);

/* If fd is a regular file, returns the place at which the next write begins; otherwise -1. */
off_t tail_file_begin(int fd);
/* Adds the end of what was written to that file since. Opens it again by its number, because fd may
 * be for writing only. */
void tail_file_add(Tail *tail, int fd, off_t began);

/* Whether holt can read what is written to stderr (fd) on its way there: it is a stream socket or
 * the writing end of a pipe without packets, and not also stdin. stdin_fd may be FD_NONE. */
bool tail_can_pass(int fd, int stdin_fd);
