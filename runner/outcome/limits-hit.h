/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the sandbox that a failed command has reached.
 *
 * Theory of operation. The kernel tells nobody that a process has met an rlimit, and the processes
 * are gone when the command has ended. So holt looks for the usual messages in the command's last
 * output. It checks them by the facts that remain: the policy's limits, and whether the memory for
 * /tmp or a disk of the host is full.
 *
 * Some facts are certain: a full tmpfs that holt can still see, SIGXFSZ, and a kill by the OOM
 * killer in holt's cgroup. The rest is likely, and the result says so. */
#pragma once

#include "base/json-write.h"
#include "outcome/oom.h"
#include "policy/plan.h"

typedef enum LimitKind {
        LIMIT_MEMORY,
        LIMIT_PROCESSES,
        LIMIT_OPEN_FILES,
        LIMIT_DISK,
        LIMIT_FILE_SIZE,
        LIMIT_KIND_MAX,
} LimitKind;

typedef struct LimitsHit {
        unsigned hit, certain; /* A bit for each LimitKind; certain is a part of hit. */
        bool disk_is_host;     /* The disk that is full is the host's. */
        bool memory_is_host;   /* The memory was the host's, or that of its container. */
        bool memory_is_shadow; /* The memory is a sanitizer's, so no finite limit is enough. */
} LimitsHit;

/* text: the command's last output. inside_fd: O_PATH of the sandbox's root, or FD_NONE. kills may
 * be NULL. signal: the signal that ended the command, or 0. */
LimitsHit limits_hit_find(const LaunchPlan *plan, const char *text, size_t length, int inside_fd,
                          const OomKills *kills, int signal);

/* One limit in words. */
typedef struct LimitText {
        const char *name;   /* "processes" */
        const char *field;  /* "limits.pids", or NULL if neither a policy nor an option helps. */
        const char *option; /* "--pids" or "--memory none", or NULL; holt bwrap has none. */
        const char
                *why_not; /* Why no option raises it; NULL if one does, or if the reason tells. */
        const char *reason;
        uint64_t value; /* In the field's unit; 0 if unknown. */
        bool certain;
} LimitText;

/* Fills in the i-th limit that was hit. Returns false past the last. If policy is NULL, a lower
 * limit of the caller's own (ulimit) is reported as the policy's. */
bool limits_hit_text(const LimitsHit *hit, unsigned i, const LaunchPlan *plan, const Policy *policy,
                     LimitText *ret);

/* Writes "limits_hit". hit may be NULL. */
void limits_hit_write(JsonWriter *w, const LimitsHit *hit, const LaunchPlan *plan,
                      const Policy *policy);
