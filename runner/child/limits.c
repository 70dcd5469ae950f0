/* SPDX-License-Identifier: Apache-2.0 */
#include "child/limits.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/own-limits.h"
#include "child/step.h"

/* A new user namespace counts its processes from zero (Linux 5.14). So RLIMIT_NPROC bounds the
 * sandbox and not the user. */
static const struct {
        const char *name;
        unsigned resource;
        size_t offset; /* Offset of a uint64_t in LaunchPlan; 0 means no limit. */
} limits[] = {
        { "pids", RLIMIT_NPROC, offsetof(LaunchPlan, pids) },
        { "memory", RLIMIT_DATA, offsetof(LaunchPlan, memory) },
        { "file_size", RLIMIT_FSIZE, offsetof(LaunchPlan, file_size) },
        { "open_files", RLIMIT_NOFILE, offsetof(LaunchPlan, open_files) },
};
enum { OPEN_FILES = ELEMENTSOF(limits) - 1 }; /* The row that limits_files() sets. */

/* Lowers a limit to the caller's own. If the policy sets none, the caller's soft limit stays. A
 * soft limit of 0 becomes 1, the closest value, because 0 means no limit here. If the hard limit is
 * 0, the kernel allows no more anyway. */
static uint64_t limits_bound_value(uint64_t value, const struct rlimit *own) {
        if (own->rlim_max == 0)
                return 0;
        if (value == 0 && own->rlim_cur == 0)
                return 1;
        if (value == 0)
                return own->rlim_cur == RLIM_INFINITY ? 0 : own->rlim_cur;
        return own->rlim_max < value ? own->rlim_max : value;
}

/* --- processors --- */

enum { WORD_BITS = 8 * sizeof(unsigned long) };

static bool has_cpu(const unsigned long *set, unsigned cpu) {
        return set[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1;
}

/* Chooses processors among those that holt itself may use. Each process of holt starts at another
 * processor, so that small sandboxes do not all use the first one. If holt has no more than the
 * plan asks for, all of them are kept. */
static void choose_cpus(LaunchPlan *plan) {
        unsigned long own[ELEMENTSOF(plan->cpu_set)] = { 0 };
        unsigned count = 0, skip, left = plan->cpus;

        if (left == 0)
                return;
        if (syscall(SYS_sched_getaffinity, 0, sizeof(own), own) < 0)
                own[0] = 0;
        for (unsigned cpu = 0; cpu < PLAN_CPUS_MAX; cpu++)
                count += has_cpu(own, cpu);
        if (count <= left) {
                plan->cpus = 0;
                return;
        }
        skip = (unsigned)getpid() % count;
        for (unsigned cpu = 0; left > 0; cpu = (cpu + 1) % PLAN_CPUS_MAX) {
                if (!has_cpu(own, cpu) || skip-- > 0)
                        continue;
                skip = 0;
                plan->cpu_set[cpu / WORD_BITS] |= 1UL << (cpu % WORD_BITS);
                left--;
        }
}

static int confine_cpus(const LaunchPlan *plan, Error *error) {
        if (plan->cpus > 0 &&
            syscall(SYS_sched_setaffinity, 0, sizeof(plan->cpu_set), plan->cpu_set) < 0)
                return step_fail(error, LAYER_LIMITS, errno, "cannot set the limit", "processors");
        return 0;
}

/* --- all --- */

void limits_bound(LaunchPlan *plan) {
        for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
                uint64_t *value = (void *)((char *)plan + limits[i].offset);
                struct rlimit own;

                if (getrlimit(limits[i].resource, &own) == 0)
                        *value = limits_bound_value(*value, &own);
        }
        choose_cpus(plan);
        /* The caller's limit does not apply to files that holt writes while it makes the
         * sandbox. */
        own_limit_raise(RLIMIT_FSIZE);
}

static int set_limit(unsigned resource, uint64_t value, const char *name, Error *error) {
        const struct rlimit limit = { .rlim_cur = value, .rlim_max = value };

        if (value > 0 && setrlimit(resource, &limit) < 0)
                return step_fail(error, LAYER_LIMITS, errno, "cannot set the limit", name);
        return 0;
}

/* Sets the limit of core files to 1: if core_pattern is a pipe, only this value stops it (core(5)).
 * If the caller's hard limit is 0, it stays. */
static int limit_core(Error *error) {
        struct rlimit own;

        if (getrlimit(RLIMIT_CORE, &own) == 0 && own.rlim_max == 0)
                return 0;
        return set_limit(RLIMIT_CORE, 1, "core", error);
}

/* Limits pending signals and message queues. A sandbox's share counts against the limits of the
 * user as a whole. So it gets less than a user's defaults, which are about 30,000 signals and
 * 819,200 bytes. */
static int limit_shares(Error *error) {
        static const struct {
                unsigned resource;
                rlim_t max;
                const char *name;
        } shares[] = {
                { RLIMIT_SIGPENDING, 1024, "pending signals" },
                { RLIMIT_MSGQUEUE, 409600, "message queues" },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(shares); i++) {
                struct rlimit own;

                if (getrlimit(shares[i].resource, &own) < 0 || own.rlim_max > shares[i].max)
                        r = set_limit(shares[i].resource, shares[i].max, shares[i].name, error);
        }
        return r;
}

/* Makes stacks smaller if there is little memory. RLIMIT_DATA counts the whole stack of a thread.
 * glibc makes it as large as the limit of the main stack, usually 8 MiB. With 40 MiB, Node then
 * waits forever for a thread that it could not start. The command may raise this limit again. */
static int limit_stack(const LaunchPlan *plan, Error *error) {
        enum { SHARE = 16, SIZE_MIN = 1 << 20, SIZE_USUAL = 8 << 20, PAGE = 4096 };
        uint64_t size = plan->memory / SHARE & ~(uint64_t)(PAGE - 1);
        struct rlimit own;

        if (plan->memory == 0 || size >= SIZE_USUAL || getrlimit(RLIMIT_STACK, &own) < 0)
                return 0;
        if (size < SIZE_MIN)
                size = SIZE_MIN;
        if (own.rlim_cur <= size)
                return 0;
        own.rlim_cur = size;
        return setrlimit(RLIMIT_STACK, &own) < 0
                       ? step_fail(error, LAYER_LIMITS, errno, "cannot set the limit", "stack")
                       : 0;
}

static int limits_set(const LaunchPlan *plan, size_t i, Error *error) {
        const uint64_t *value = (const void *)((const char *)plan + limits[i].offset);

        return set_limit(limits[i].resource, *value, limits[i].name, error);
}

int limits_confine(Launch *launch, Error *error) {
        int r;

        if (launch->layers.missing & LAYER_BIT(LAYER_LIMITS))
                return 0;
        r = limit_core(error);
        if (r == 0)
                r = limit_shares(error);
        if (r == 0)
                r = confine_cpus(launch->plan, error);
        if (r == 0)
                r = limit_stack(launch->plan, error);
        for (size_t i = 0; r == 0 && i < OPEN_FILES; i++)
                r = limits_set(launch->plan, i, error);
        return r;
}

/* Closes the child's descriptors of mounts. The launcher keeps its own. */
static void close_mounts(const LaunchPlan *plan) {
        for (size_t i = 0; i < child_state.writable_count; i++)
                if (child_state.writable_fds[i] != child_state.root_fd)
                        fd_close(child_state.writable_fds[i]);
        child_state.writable_count = 0;
        for (size_t i = 0; i < plan->mounts_count; i++)
                fd_close(plan->mounts[i].fd);
}

/* Loading the filter takes a descriptor, so those of the mounts must not fill the limit. */
int limits_files(Launch *launch, Error *error) {
        close_mounts(launch->plan);
        return launch->layers.missing & LAYER_BIT(LAYER_LIMITS)
                       ? 0
                       : limits_set(launch->plan, OPEN_FILES, error);
}
