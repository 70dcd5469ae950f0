/* SPDX-License-Identifier: Apache-2.0 */
/* File descriptors 0 to 2: which ones a command may have, and how holt restores them afterwards. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"

/* Facts about an open file that are asked once and passed around. No process can change the type of
 * the file, its inode, and the access mode while the fd refers to the same open file. All other
 * facts can change: other status flags, the size, the owner, the mode, the number of links. Ask for
 * these again if a check depends on them. */
typedef struct FdFacts {
        int flags;      /* The result of F_GETFL, or negative if the fd is closed. */
        struct stat st; /* All zero, which is no type of a file, if fstat(2) failed. */
} FdFacts;

void fd_facts(int fd, FdFacts *ret);
/* The facts about fds 0 to 2. */
void fd_facts_stdio(FdFacts ret[3]);
/* The access mode, such as O_RDONLY, or negative if the fd is closed. */
int fd_facts_access(const FdFacts *facts);
/* Whether both are one file. */
bool fd_facts_same_inode(const FdFacts *a, const FdFacts *b);

/* Opens /dev/null for each closed fd from 0 to 2. Refuses an fd that leads out of the sandbox
 * (stdio.c). ret is NULL, or an array for the facts about fds 0 to 2. */
int stdio_open(FdFacts *ret, Error *reterr);

/* Whether a command may have fd as its stdin, stdout or stderr. Allowed are a file that holds data,
 * a pipe, a terminal, a harmless character device, and a connected local stream. */
bool stdio_is_harmless(int fd);

/* Sets the error for an fd that is not harmless. fd is its number in the command, 0 to 2. */
int stdio_refuse(int fd, Error *reterr);

/* stdio_note() notes the status flags, which are among the facts, and the locks of fds 0 to 2
 * before the command starts. stdio_restore() puts them back after it has ended (stdio-state.c).
 * except has a bit for each fd that the command did not have. */
void stdio_note(const FdFacts facts[3]);
void stdio_restore(unsigned except);
