/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's OOM killer has done while the command ran.
 *
 * Theory of operation. A process that it kills ends by SIGKILL like any other, and nobody is told
 * why. What there is are counters that only grow, so they must be read twice. The best is that of
 * the cgroup that holt, and so the sandbox, is in: it counts the cgroup's own processes, whether
 * it was the cgroup's limit that was reached, that of one above, or the machine's memory. By
 * cgroup v2 it is oom_kill in memory.events, and by v1 that in memory.oom_control (Linux 4.13).
 *
 * Where there is no such file (the root of v2 has none) /proc/vmstat counts for the whole machine.
 * That is no more than a hint: on a machine of many containers others are killed all day, and a
 * command that somebody has killed would pass for one that took too much memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

typedef enum OomScope {
        OOM_UNKNOWN, /* nothing could be read, or the command was done too soon */
        OOM_CGROUP,  /* processes of the cgroup that holt is in */
        OOM_MACHINE, /* of the whole machine, which may all be somebody else's */
} OomScope;

/* limit: memory.max in bytes, where that is what was reached; 0 where it is not or can't be told
 * (v1, a limit of a cgroup above, the machine's memory). */
typedef struct OomKills {
        OomScope scope;
        uint64_t count; /* processes */
        uint64_t limit;
} OomKills;

typedef struct OomEvents {
        uint64_t oom; /* times that the cgroup's own limit was to be passed; v2 only */
        uint64_t oom_kill;
} OomEvents;

/* Its fds are owned; FD_NONE before oom_watch_start(), and where it has found nothing. */
typedef struct OomWatch {
        OomScope scope;
        int dir_fd; /* the cgroup's, O_PATH: for its limit */
        int fd;     /* the counter's, so that it can be read by who may open nothing any more */
        OomEvents before;
} OomWatch;

/* Its versions do not agree on this. */
/* clang-format off */
#define OOM_WATCH_NONE                                                                             \
        { .dir_fd = FD_NONE, .fd = FD_NONE }
/* clang-format on */

/* Finds the counter and notes it. root is "", but for tests: a directory with the sys and proc to
 * look in. */
void oom_watch_start(const char *root, OomWatch *ret);

/* What has come since; the watch is closed. */
OomKills oom_watch_end(OomWatch *watch);

/* Whether any of the cgroup's has come since the last time, or the start. */
bool oom_watch_killed(OomWatch *watch);

/* --- the kernel's files --- */

/* The cgroup that memory is accounted to, in the text of /proc/self/cgroup (cgroups(7)); *ret_v1 is
 * whether it is one of v1. ret_path points into text, and ends at *ret_length. 0; -ENODATA where
 * there is none; -EXDEV where it lies outside of the cgroup namespace. */
int oom_find_cgroup(const char *text, bool *ret_v1, const char **ret_path, size_t *ret_length);

/* The number that stands behind key, in lines of "key number". 0, -ENODATA (no such line), -EINVAL
 * or -ERANGE. */
int oom_find_count(const char *text, const char *key, uint64_t *ret);
