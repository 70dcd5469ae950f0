/* SPDX-License-Identifier: Apache-2.0 */
/* Tests sandbox/shown-limits.c: the limits of cgroups, in a directory that stands for the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox/shown-limits.h"

static char root[] = "/tmp/holt-test-XXXXXX";

/* Writes a file of the host, with its directories. */
static void put(const char *path, const char *text) {
        char full[256];
        FILE *f;

        (void)snprintf(full, sizeof(full), "%s%s", root, path);
        for (char *c = full + sizeof(root); *c; c++)
                if (*c == '/') {
                        *c = '\0';
                        (void)mkdir(full, 0700);
                        *c = '/';
                }
        f = fopen(full, "w");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void clear(void) {
        char command[64];

        (void)snprintf(command, sizeof(command), "rm -rf %s/*", root);
        assert_int_equal(system(command), 0);
}

static ShownLimits read_limits(uint64_t memory) {
        ShownLimits limits;

        shown_limits_read(root, memory, &limits);
        return limits;
}

static void test_the_lowest_limit_of_v2_counts(void **state) {
        ShownLimits limits;

        (void)state;
        clear();
        put("/proc/self/cgroup", "0::/a/b\n");
        put("/sys/fs/cgroup/a/b/memory.max", "max\n");
        put("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
        put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
        put("/sys/fs/cgroup/a/cpu.max", "100000 50000\n");
        put("/sys/fs/cgroup/memory.max", "2147483648\n");
        limits = read_limits(0);
        assert_int_equal(limits.memory, 1 << 30);
        assert_int_equal(limits.cpu_quota, 100000);
        assert_int_equal(limits.cpu_period, 50000);
        assert_false(limits.v1);
        assert_int_equal(read_limits(5 << 20).memory, 5 << 20);
        assert_int_equal(read_limits(3UL << 30).memory, 1 << 30);
}

/* A container shows its own cgroup at the mount point, but perhaps its path on the host. */
static void test_the_mount_point_counts_if_the_path_is_missing(void **state) {
        (void)state;
        clear();
        put("/proc/self/cgroup", "0::/docker/0123\n");
        put("/sys/fs/cgroup/memory.max", "4096\n");
        assert_int_equal(read_limits(0).memory, 4096);
}

static void test_limits_of_v1_count(void **state) {
        (void)state;
        clear();
        put("/proc/self/cgroup", "4:memory:/a\n0::/\n");
        put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
        put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8192\n");
        assert_int_equal(read_limits(0).memory, 8192);
        assert_true(read_limits(0).v1);
}

static void test_odd_files_are_no_limits(void **state) {
        static const char *const texts[] = {
                "", "\n", "max\n", "-", "0\n", "x1\n", "99999999999999999999999\n"
        };

        (void)state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                clear();
                put("/proc/self/cgroup", "0::/\n");
                put("/sys/fs/cgroup/memory.max", texts[i]);
                put("/sys/fs/cgroup/cpu.max", texts[i]);
                assert_int_equal(read_limits(0).memory, 0);
                assert_int_equal(read_limits(0).cpu_quota, 0);
                assert_string_equal(read_limits(0).processors[0], "");
        }
        put("/sys/fs/cgroup/cpu.max", "1000 0\n");
        assert_int_equal(read_limits(0).cpu_quota, 0);
        clear();
        assert_int_equal(read_limits(7).memory, 7);
}

static void test_processors_are_copied(void **state) {
        char longest[400];

        (void)state;
        clear();
        memset(longest, '1', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        put("/sys/devices/system/cpu/possible", "0-3\n");
        put("/sys/devices/system/cpu/online", longest);
        assert_string_equal(read_limits(0).processors[0], "0-3\n");
        assert_string_equal(read_limits(0).processors[1], "");
        assert_string_equal(read_limits(0).processors[2], "");
}

static int make_root(void **state) {
        (void)state;
        return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
        (void)state;
        clear();
        return rmdir(root);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_lowest_limit_of_v2_counts),
                cmocka_unit_test(test_the_mount_point_counts_if_the_path_is_missing),
                cmocka_unit_test(test_limits_of_v1_count),
                cmocka_unit_test(test_odd_files_are_no_limits),
                cmocka_unit_test(test_processors_are_copied),
        };

        return cmocka_run_group_tests_name("shown-limits", tests, make_root, remove_root);
}
