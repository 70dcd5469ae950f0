/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/limits-hit.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/sys.h"

enum {
        TEXT_LOOKED_AT = 16 * 1024,
        ROOM_MIN = 64 * 1024, /* Bytes; a file system with less is full. */
};

static const struct {
        const char *name, *field, *reason;
} limits[] = {
        [LIMIT_MEMORY] = { "memory", "limits.memory", "a process could not get memory" },
        [LIMIT_PROCESSES] = { "processes", "limits.pids",
                              "no more processes or threads could be started" },
        [LIMIT_OPEN_FILES] = { "open_files", "limits.open_files",
                               "a process could not open more files" },
        [LIMIT_DISK] = { "disk", "filesystem.tmp_size",
                         "the memory for /tmp, the home directory inside and /dev/shm is full" },
        [LIMIT_FILE_SIZE] = { "file_size", "limits.file_size", "a file could not grow" },
};
static_assert(ELEMENTSOF(limits) == LIMIT_KIND_MAX, "every limit has its texts");

/* Messages in lower case. with: another part of the text, or NULL. without: a part of the line that
 * gives the message another meaning, or NULL. */
static const struct {
        LimitKind kind;
        const char *text, *with, *without;
        unsigned stack; /* For a thread that did not start: MiB of its stack. */
        bool shadow;    /* A sanitizer reserves more memory than any limit allows. */
} messages[] = {
        { .kind = LIMIT_MEMORY, .text = "cannot allocate memory", .without = "fork" },
        { .kind = LIMIT_MEMORY, .text = "memoryerror", .without = "native thread" },
        { .kind = LIMIT_MEMORY, .text = "bad_alloc" },
        { .kind = LIMIT_MEMORY, .text = "memory exhausted" },
        { .kind = LIMIT_MEMORY, .text = "out of memory", .without = "native thread" },
        { .kind = LIMIT_MEMORY, .text = "fatal javascript oom" },
        { .kind = LIMIT_MEMORY, .text = "memory allocation of" },
        { .kind = LIMIT_MEMORY, .text = "native memory allocation" },
        { .kind = LIMIT_MEMORY, .text = "cannot allocate vector" },
        { .kind = LIMIT_MEMORY, .text = "reserveshadowmemoryrange failed", .shadow = true },
        { .kind = LIMIT_MEMORY, .text = "can not mmap the shadow memory", .shadow = true },
        { .kind = LIMIT_MEMORY, .text = "sanitizer failed to allocate", .with = "errno: 12" },
        { .kind = LIMIT_PROCESSES, .text = "can't start new thread", .stack = 8 },
        { .kind = LIMIT_PROCESSES, .text = "cannot fork" },
        { .kind = LIMIT_PROCESSES,
          .text = "native thread",
          .with = "unable to create",
          .stack = 1 },
        { .kind = LIMIT_PROCESSES, .text = "failed to create new os thread", .stack = 8 },
        { .kind = LIMIT_PROCESSES, .text = "(uv_thread_create", .stack = 8 },
        { .kind = LIMIT_PROCESSES, .text = "resource temporarily unavailable", .with = "fork" },
        { .kind = LIMIT_PROCESSES,
          .text = "resource temporarily unavailable",
          .with = "std::system_error",
          .stack = 8 },
        { .kind = LIMIT_PROCESSES,
          .text = "resource temporarily unavailable",
          .with = "thread",
          .stack = 2 },
        { .kind = LIMIT_PROCESSES, .text = "resource temporarily unavailable", .with = "spawn" },
        { .kind = LIMIT_OPEN_FILES, .text = "too many open files", .without = "inotify" },
        { .kind = LIMIT_DISK, .text = "no space left on device", .without = "inotify" },
        { .kind = LIMIT_FILE_SIZE, .text = "file too large" },
        { .kind = LIMIT_FILE_SIZE, .text = "file size limit exceeded" },
};

static unsigned limit_bit(LimitKind kind) {
        return 1U << kind;
}

/* --- messages --- */

/* Returns a copy of the end of the text in lower case, without NUL bytes. Owned by the caller. */
static char *lower_end(const char *text, size_t length) {
        const size_t from = length > TEXT_LOOKED_AT ? length - TEXT_LOOKED_AT : 0;
        char *copy = malloc(length - from + 1);

        for (size_t i = from; copy && i < length; i++)
                copy[i - from] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20
                                        : text[i]                        ? text[i]
                                                                         : ' ');
        if (copy)
                copy[length - from] = '\0';
        return copy;
}

/* Whether the line that contains `at` also contains word. */
static bool line_has(const char *text, const char *at, const char *word) {
        const char *start = at, *found;

        while (start > text && start[-1] != '\n')
                start--;
        found = strstr(start, word);
        return found && found < at + strcspn(at, "\n");
}

/* Whether the stacks of threads fill the memory of a process before their number reaches the
 * policy's limit. */
static bool is_memory_of_threads(const LaunchPlan *plan, unsigned stack) {
        return plan->memory && stack > 0 &&
               (!plan->pids || plan->memory / ((uint64_t)stack << 20) < plan->pids);
}

static LimitsHit find_messages(const LaunchPlan *plan, const char *text, size_t length) {
        _cleanup_free_ char *lower = lower_end(text, length);
        LimitsHit hit = { 0 };

        for (size_t i = 0; lower && i < ELEMENTSOF(messages); i++) {
                const char *at = strstr(lower, messages[i].text);

                if (!at || (messages[i].with && !strstr(lower, messages[i].with)) ||
                    (messages[i].without && line_has(lower, at, messages[i].without)))
                        continue;
                hit.hit |= limit_bit(is_memory_of_threads(plan, messages[i].stack)
                                             ? LIMIT_MEMORY
                                             : messages[i].kind);
                hit.memory_is_shadow |= messages[i].shadow;
        }
        return hit;
}

/* --- facts --- */

static bool is_full(int fd) {
        struct statvfs fs;

        if (fstatvfs(fd, &fs) < 0 || fs.f_blocks == 0)
                return false;
        return (uint64_t)fs.f_bavail * fs.f_frsize < ROOM_MIN ||
               (fs.f_files > 0 && fs.f_favail == 0);
}

/* Whether a tmpfs of the sandbox is full. In a session, /tmp and the home lie on the host's disk.
 */
static bool memory_is_full(int inside_fd) {
        static const char *const places[] = { "dev/shm", "run" };
        bool full = false;

        for (size_t i = 0; inside_fd >= 0 && i < ELEMENTSOF(places); i++) {
                _cleanup_close_ int fd = sys_openat2(inside_fd, places[i], O_PATH | O_CLOEXEC, 0,
                                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                                             RESOLVE_NO_MAGICLINKS);

                full |= fd >= 0 && is_full(fd);
        }
        return full;
}

/* Whether a disk of the host that the sandbox can write is full. */
static bool host_is_full(const LaunchPlan *plan) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]) && plan->mounts[i].fd >= 0 &&
                    !(plan->mounts[i].flags & PLAN_READ_ONLY) && is_full(plan->mounts[i].fd))
                        return true;
        return plan->state.source && plan->state.fd >= 0 && is_full(plan->state.fd);
}

/* Whether stdout or stderr, which the command of holt run shares, is /dev/full. */
static bool output_is_dev_full(void) {
        struct stat st;

        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
                if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && major(st.st_rdev) == 1 &&
                    minor(st.st_rdev) == 7)
                        return true;
        return false;
}

/* Whether stdout or stderr is a file on a disk of the host that is full. */
static bool output_is_full(void) {
        struct stat st;

        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
                if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_full(fd))
                        return true;
        return false;
}

/* Whether the command names /dev/full, which is always full. */
static bool words_have_dev_full(const LaunchPlan *plan) {
        for (size_t i = 0; i < plan->argv.count; i++)
                if (strstr(plan->argv.items[i], "/dev/full"))
                        return true;
        return false;
}

static void check_disk(LimitsHit *hit, const LaunchPlan *plan, int inside_fd) {
        if (!(hit->hit & limit_bit(LIMIT_DISK)))
                return;
        if (output_is_dev_full()) {
                hit->hit &= ~limit_bit(LIMIT_DISK);
        } else if (memory_is_full(inside_fd)) {
                hit->certain |= limit_bit(LIMIT_DISK);
        } else if (host_is_full(plan) || output_is_full()) {
                hit->disk_is_host = true;
                hit->certain |= limit_bit(LIMIT_DISK);
        } else if (!plan->tmp_size || words_have_dev_full(plan)) {
                hit->hit &= ~limit_bit(LIMIT_DISK);
        }
}

LimitsHit limits_hit_find(const LaunchPlan *plan, const char *text, size_t length, int inside_fd,
                          const OomKills *kills, int signal) {
        LimitsHit hit = { 0 };

        if (text)
                hit = find_messages(plan, text, length);

        if (!plan->memory)
                hit.hit &= ~limit_bit(LIMIT_MEMORY);
        if (!plan->pids)
                hit.hit &= ~limit_bit(LIMIT_PROCESSES);
        if (!plan->open_files)
                hit.hit &= ~limit_bit(LIMIT_OPEN_FILES);
        if (signal == SIGXFSZ) {
                hit.hit |= limit_bit(LIMIT_FILE_SIZE);
                hit.certain |= limit_bit(LIMIT_FILE_SIZE);
        }
        if (!plan->file_size)
                hit.hit &= ~limit_bit(LIMIT_FILE_SIZE);
        check_disk(&hit, plan, inside_fd);
        if (kills && kills->scope == OOM_CGROUP && kills->count > 0) {
                hit.memory_is_host = true;
                hit.hit |= limit_bit(LIMIT_MEMORY);
                hit.certain |= limit_bit(LIMIT_MEMORY);
        }
        hit.certain &= hit.hit;
        return hit;
}

/* --- in words --- */

/* Whether the limit in force is the caller's own, which is lower than the policy's. */
static bool is_callers_own(const PolicyField *field, const LaunchPlan *plan, const Policy *policy) {
        uint64_t asked;

        if (!policy || !field->plan)
                return false;
        memcpy(&asked, (const char *)policy + field->offset, sizeof(asked));
        return asked != plan_limit(plan, field);
}

static void limit_describe(LimitKind kind, const LimitsHit *hit, const LaunchPlan *plan,
                           const Policy *policy, LimitText *ret) {
        const PolicyField *field = policy_field(limits[kind].field);

        *ret = (LimitText){ .name = limits[kind].name,
                            .reason = limits[kind].reason,
                            .certain = hit->certain & limit_bit(kind) };
        if (kind == LIMIT_DISK && hit->disk_is_host) {
                ret->reason = "the host's disk is full";
                ret->why_not = "holt does not limit it; free space on it";
        } else if (kind == LIMIT_MEMORY && hit->memory_is_host) {
                ret->reason = "the kernel killed a process because the memory of the host, or of "
                              "holt's container or service, ran out";
        } else if (is_callers_own(field, plan, policy)) {
                ret->reason = "your own limit (ulimit) is lower than the policy's";
                ret->value = plan_limit(plan, field);
        } else if (policy && policy_of_project(policy, field->path)) {
                ret->why_not = "the project's .holt.json sets this limit; change it there";
                ret->value = plan_limit(plan, field);
        } else {
                ret->field = field->path;
                ret->option = policy && policy->without_options ? NULL : field->option;
                ret->value = plan_limit(plan, field);
        }
        if (kind == LIMIT_MEMORY && hit->memory_is_shadow && ret->option) {
                ret->reason = "a sanitizer (-fsanitize) could not reserve its shadow memory of "
                              "several TiB";
                ret->option = "--memory none";
        }
}

bool limits_hit_text(const LimitsHit *hit, unsigned i, const LaunchPlan *plan, const Policy *policy,
                     LimitText *ret) {
        for (LimitKind kind = 0; kind < LIMIT_KIND_MAX; kind++)
                if (hit->hit & limit_bit(kind) && i-- == 0) {
                        limit_describe(kind, hit, plan, policy, ret);
                        return true;
                }
        return false;
}

void limits_hit_write(JsonWriter *w, const LimitsHit *hit, const LaunchPlan *plan,
                      const Policy *policy) {
        LimitText text;

        json_write_array(w, "limits_hit");
        for (unsigned i = 0; hit && limits_hit_text(hit, i, plan, policy, &text); i++) {
                json_write_object(w, NULL);
                json_write_string(w, "limit", text.name);
                json_write_bool(w, "certain", text.certain);
                json_write_string(w, "reason", text.reason);
                json_write_uint_or_null(w, "value", text.value);
                json_write_string(w, "option", text.option);
                json_write_string(w, "field", text.field);
                json_write_string(w, "why_not", text.why_not);
                json_write_end(w);
        }
        json_write_end(w);
}
