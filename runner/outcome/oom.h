/* SPDX-License-Identifier: Apache-2.0 */
/* Kills by the kernel's OOM killer while the command ran.
 *
 * Theory of operation. A process that the OOM killer kills ends by SIGKILL like any other, and the
 * kernel does not tell why. The kernel only has counters, which are read before and after the
 * command. The best counter belongs to the cgroup in which holt and the sandbox run. It counts the
 * killed processes of the cgroup. The limit that they reached may be the cgroup's, that of a cgroup
 * above, or the machine's memory. In cgroup v2 the counter is oom_kill in memory.events; in v1 it
 * is oom_kill in memory.oom_control (Linux 4.13).
 *
 * If that file does not exist (the root of v2 has none), /proc/vmstat counts for the whole machine.
 * That is only a hint: on a machine with many containers, other processes are killed all the time.
 * If a person kills the command meanwhile, it would seem to have used too much memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

typedef enum OomScope {
        OOM_UNKNOWN, /* Nothing could be read, or the command ended too soon. */
        OOM_CGROUP,  /* Processes of holt's cgroup. */
        OOM_MACHINE, /* Processes of the whole machine, perhaps none of this sandbox. */
} OomScope;

/* Kills since oom_watch_start(). limit is memory.max in bytes, if that limit was reached. It is 0
 * if another limit was reached or the limit is unknown (v1, a limit of a cgroup above, the
 * machine's memory). */
typedef struct OomKills {
        OomScope scope;
        uint64_t count; /* Number of killed processes. */
        uint64_t limit;
} OomKills;

typedef struct OomEvents {
        uint64_t oom; /* How often the cgroup's own limit was reached; v2 only. */
        uint64_t oom_kill;
} OomEvents;

/* Owns its fds. They are FD_NONE before oom_watch_start(), and if it found no counter. */
typedef struct OomWatch {
        OomScope scope;
        int dir_fd; /* The cgroup's directory, O_PATH, to read its limit. */
        int fd;     /* The counter, opened early: a confined process can open nothing. */
        OomEvents before;
} OomWatch;

/* Different versions of clang-format disagree on this macro. */
/* clang-format off */
#define OOM_WATCH_NONE                                                                             \
        { .dir_fd = FD_NONE, .fd = FD_NONE }
/* clang-format on */

/* Finds the counter and notes its value. root is "", except in tests: there it is a directory that
 * contains sys and proc. */
void oom_watch_start(const char *root, OomWatch *ret);

/* Returns the kills since the start and closes the watch. */
OomKills oom_watch_end(OomWatch *watch);

/* Whether a process of the cgroup was killed since the last call, or since the start. */
bool oom_watch_killed(OomWatch *watch);

/* --- the kernel's files --- */

/* Finds the cgroup to which memory is accounted, in the text of /proc/self/cgroup (cgroups(7)).
 * *ret_v1 tells whether it is of v1. *ret_path points into text and has *ret_length bytes. Returns
 * 0, -ENODATA if there is none, or -EXDEV if it lies outside of the cgroup namespace. */
int oom_find_cgroup(const char *text, bool *ret_v1, const char **ret_path, size_t *ret_length);

/* Finds the number after key in lines of "key number". Returns 0, -ENODATA (no such line), -EINVAL
 * or -ERANGE. */
int oom_find_count(const char *text, const char *key, uint64_t *ret);
