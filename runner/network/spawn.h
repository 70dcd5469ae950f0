/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the programs that lie beside holt, and makes the sockets to them. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Makes a pair of seqpacket sockets with numbers that no program expects. room: bytes of the
 * longest message, or 0. Returns 0 or a negative errno. */
int spawn_socketpair(int ret[2], int room);

/* A program, and what it gets: fds[0] becomes descriptor 3 and fds[1] descriptor 4, which are its
 * only ones beside /dev/null as 0 to 2. */
typedef struct SpawnProgram {
        const char *const *paths; /* tried in this order, relative to the directory of holt */
        size_t paths_count;
        char *const *argv, *const *env;
        int fds[2];
} SpawnProgram;

/* Returns 0 or a negative errno of posix_spawn(3). */
int spawn_beside(const SpawnProgram *program, pid_t *ret);
