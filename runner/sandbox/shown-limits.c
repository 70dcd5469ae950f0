/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/shown-limits.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "outcome/oom.h"

enum { CGROUP_TEXT_MAX = 4096 };

/* cgroup v1 shows LONG_MAX, rounded down to a page, if there is no limit. */
static const uint64_t no_limit_v1 = 1ULL << 62;

/* Reads the start of a file. Returns false if it is missing, empty or too long. */
static bool read_small(const char *root, const char *path, char *buf, size_t size) {
        char full[PATH_MAX];
        int n = snprintf(full, sizeof(full), "%s%s", root, path);
        _cleanup_close_ int fd = n < 0 || (size_t)n >= sizeof(full)
                                         ? FD_NONE
                                         : open(full, O_RDONLY | O_CLOEXEC);
        ssize_t length = fd < 0 ? -1 : read(fd, buf, size);

        if (length <= 0 || (size_t)length == size)
                return false;
        buf[length] = '\0';
        return true;
}

static void note_memory(const char *text, ShownLimits *limits) {
        char *end;
        unsigned long long value = strtoull(text, &end, 10);

        if (end == text || value == 0 || value >= no_limit_v1) /* "max" has no digits */
                return;
        if (limits->memory == 0 || value < limits->memory)
                limits->memory = value;
}

/* text is "QUOTA PERIOD", in microseconds, or "max PERIOD". */
static void note_cpu(const char *text, ShownLimits *limits) {
        char *end;
        unsigned long long quota = strtoull(text, &end, 10), period;

        if (end == text || quota == 0 || quota > UINT32_MAX)
                return;
        period = strtoull(end, NULL, 10);
        if (period == 0 || period > UINT32_MAX)
                return;
        if (limits->cpu_quota && limits->cpu_quota * period <= quota * limits->cpu_period)
                return;
        limits->cpu_quota = quota;
        limits->cpu_period = period;
}

/* Reads a file of each cgroup from `below` up to the mount point. In a container without a cgroup
 * namespace, the lower ones do not exist there. */
static void read_upwards(const char *root, const char *mount, const char *below, size_t length,
                         const char *file, void (*note)(const char *text, ShownLimits *limits),
                         ShownLimits *limits) {
        char path[PATH_MAX], text[128];

        for (;;) {
                int n;

                while (length > 0 && below[length - 1] == '/')
                        length--;
                n = snprintf(path, sizeof(path), "%s%.*s/%s", mount, (int)length, below, file);
                if (n > 0 && (size_t)n < sizeof(path) && read_small(root, path, text, sizeof(text)))
                        note(text, limits);
                if (length == 0)
                        return;
                while (length > 0 && below[length - 1] != '/')
                        length--;
        }
}

static void read_cgroup(const char *root, ShownLimits *limits) {
        char text[CGROUP_TEXT_MAX];
        const char *path;
        size_t length;

        if (!read_small(root, "/proc/self/cgroup", text, sizeof(text)) ||
            oom_find_cgroup(text, &limits->v1, &path, &length) < 0)
                return;
        if (limits->v1) {
                read_upwards(root, "/sys/fs/cgroup/memory", path, length, "memory.limit_in_bytes",
                             note_memory, limits);
                return;
        }
        read_upwards(root, "/sys/fs/cgroup", path, length, "memory.max", note_memory, limits);
        read_upwards(root, "/sys/fs/cgroup", path, length, "cpu.max", note_cpu, limits);
}

void shown_limits_read(const char *root, uint64_t memory, ShownLimits *ret) {
        *ret = (ShownLimits){ .memory = memory };
        read_cgroup(root, ret);
        for (size_t i = 0; i < ELEMENTSOF(ret->processors); i++) {
                char path[64];

                (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/%s",
                               shown_processors[i]);
                if (!read_small(root, path, ret->processors[i], sizeof(ret->processors[i])))
                        ret->processors[i][0] = '\0';
        }
}
