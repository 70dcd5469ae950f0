/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox's limits and processors, as files of /sys.
 *
 * Theory of operation. Java, node and others size their heaps by the memory of the machine, unless
 * they find the limit of a cgroup. They look for files such as memory.max of cgroup v2. The host's
 * own files would reveal more than limits, and would not contain the policy's limits. So holt
 * writes its own files to the sandbox's tmpfs, which becomes read-only with the root.
 *
 * Java believes such files only below a mount point of type cgroup2. Therefore a real one is
 * mounted first, and the files cover it: nothing in it can be reached. Java also reads
 * /proc/cgroups, where a host with cgroup v1 names other hierarchies. On such a host, the sandbox
 * shows the same lines as on one with v2.
 *
 * lscpu and libraries that count processors read the files in /sys/devices/system/cpu. */
#include <string.h>

#include "base/sys.h"
#include "child/build.h"

const char *const shown_processors[SHOWN_PROCESSORS] = { "possible", "present", "online" };

static bool has_limits(const ShownLimits *limits) {
        return limits->memory || limits->cpu_quota;
}

/* Makes the directory path and its parents. */
static int limits_make_directories(int dir_fd, const char *path, Error *error) {
        char part[64];
        int r = 0;

        for (size_t i = 1; r == 0 && i <= strlen(path); i++)
                if (path[i] == '/' || path[i] == '\0') {
                        memcpy(part, path, i);
                        part[i] = '\0';
                        r = build_directory(dir_fd, part, 0755, error);
                }
        return r;
}

static int show_processors(const ShownLimits *limits, Error *error) {
        static const char directory[] = "sys/devices/system/cpu/";
        int r = limits_make_directories(child_state.root_fd, "sys/devices/system/cpu", error);

        for (size_t i = 0; r == 0 && i < SHOWN_PROCESSORS; i++) {
                const char *text = limits->processors[i];
                char path[64];

                memcpy(path, directory, sizeof(directory));
                (void)strncat(path, shown_processors[i], sizeof(path) - sizeof(directory));
                if (text[0])
                        r = build_write_text(child_state.root_fd, path, text, strlen(text), error);
        }
        return r;
}

/* A file with "VALUE\n", or "VALUE SECOND\n". A value of 0 is written as "max". */
typedef struct LimitFile {
        const char *path;
        uint64_t value, second;
} LimitFile;

static int write_limit(const LimitFile *file, Error *error) {
        char text[64] = "", number[24];

        (void)strncat(text, file->value ? build_decimal(file->value, number) : "max", 24);
        if (file->second) {
                (void)strncat(text, " ", 2);
                (void)strncat(text, build_decimal(file->second, number), 24);
        }
        (void)strncat(text, "\n", 2);
        return build_write_text(child_state.scratch_fd, file->path, text, strlen(text), error);
}

/* Creates a directory with these files. */
static int write_limits(const char *directory, const LimitFile *files, size_t count, Error *error) {
        int r = build_directory(child_state.scratch_fd, directory, 0755, error);

        for (size_t i = 0; r == 0 && i < count; i++)
                r = write_limit(&files[i], error);
        return r;
}

/* libuv recognises v1 by /proc/self/cgroup, and reads both limits of v1. */
static int write_v1(const ShownLimits *limits, Error *error) {
        static const char hierarchies[] = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
                                          "cpuset\t0\t1\t1\ncpu\t0\t1\t1\ncpuacct\t0\t1\t1\n"
                                          "memory\t0\t1\t1\n";
        const LimitFile files[] = {
                { "limits/memory/memory.limit_in_bytes", limits->memory, 0 },
                { "limits/memory/memory.soft_limit_in_bytes", INT64_MAX & ~4095LL, 0 },
        };
        int r = build_write_text(child_state.scratch_fd, "cgroups", hierarchies,
                                 sizeof(hierarchies) - 1, error);

        if (r < 0 || !limits->memory)
                return r;
        return write_limits("limits/memory", files, ELEMENTSOF(files), error);
}

static int limits_write(const ShownLimits *limits, Error *error) {
        static const char controllers[] = "cpu memory\n";
        const uint64_t period = limits->cpu_quota ? limits->cpu_period : 100000;
        const LimitFile files[] = {
                { "limits/memory.max", limits->memory, 0 },
                { "limits/cpu.max", limits->cpu_quota, period },
        };
        int r = write_limits("limits", files, ELEMENTSOF(files), error);

        if (r == 0)
                r = build_write_text(child_state.scratch_fd, "limits/cgroup.controllers",
                                     controllers, sizeof(controllers) - 1, error);
        return r == 0 && limits->v1 ? write_v1(limits, error) : r;
}

/* Mounts a cgroup2 at the place of the files. A container may refuse the mount; then Java ignores
 * the files, but other programs read them. */
static void mount_below(void) {
        const char *const none[] = { NULL };
        Error ignored;
        int fd = FD_NONE;

        if (build_filesystem("cgroup2", none,
                             MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                     MOUNT_ATTR_NOEXEC,
                             &fd, LAYER_MOUNT, &ignored) == 0)
                (void)build_attach(fd, child_state.root_fd, "sys/fs/cgroup", &ignored);
        fd_close(fd);
}

static int show_limits(const ShownLimits *limits, Error *error) {
        int r = limits_make_directories(child_state.root_fd, "sys/fs/cgroup", error), fd;

        if (r == 0)
                r = limits_write(limits, error);
        if (r < 0)
                return r;
        mount_below();
        fd = sys_open_tree(child_state.scratch_fd, "limits", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (fd < 0)
                return step_fail(error, LAYER_MOUNT, errno, "cannot clone", "the limits");
        r = build_attach(fd, child_state.root_fd, "sys/fs/cgroup", error);
        fd_close(fd);
        return r;
}

int build_limits(Launch *launch, Error *error) {
        int r = show_processors(&launch->limits, error);

        return r == 0 && has_limits(&launch->limits) ? show_limits(&launch->limits, error) : r;
}

int build_limits_of_proc(const Launch *launch, int proc_fd, Error *error) {
        const MountAttr read_only = { .attr_set = MOUNT_ATTR_RDONLY };

        if (!launch->limits.v1 || !has_limits(&launch->limits))
                return 0;
        return build_clone_to(child_state.scratch_fd, "cgroups", proc_fd, "cgroups", &read_only,
                              error);
}
