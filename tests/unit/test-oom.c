/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "directory-fixture.h"
#include "outcome/oom.h"

/* --- /proc/self/cgroup --- */

static const struct {
        const char *text;
        int r;
        bool v1;
        const char *path;
} cgroups[] = {
        { "0::/\n", 0, false, "/" },
        { "0::/user.slice/a b:c.scope\n", 0, false, "/user.slice/a b:c.scope" },
        { "4:memory:/docker/1\n0::/\n", 0, true, "/docker/1" },
        { "0::/unified\n4:memory:/docker/1\n", 0, true, "/docker/1" },
        { "11:cpu,memory,cpuacct:/\n", 0, true, "/" },
        { "1:cpu:/a\n0::/b\n", 0, false, "/b" },
        { "0::/..a/b../...\n", 0, false, "/..a/b../..." },
        /* Lines with other names: no memory controller. */
        { "2:name=memory:/a\n3:memory2:/b\n4:mem:/c\n5:xmemory:/d\n0::/e\n", 0, false, "/e" },
        { "2:cpu:/memory:/a\n0::/b\n", 0, false, "/b" },
        { "4:cpu:/a\n", -ENODATA, false, NULL },
        { "", -ENODATA, false, NULL },
        { "\n\n:\n::\n:::\n", -ENODATA, false, NULL },
        { "0\n0:\n0::\n0::a\n", -ENODATA, false, NULL },
        { ":memory:/a\nx:memory:/b\nmemory\n", -ENODATA, false, NULL },
        { "00::/a\n", -ENODATA, false, NULL },
        /* Cut short. */
        { "0::/a", -ENODATA, false, NULL },
        { "4:memory:/docker/1", -ENODATA, false, NULL },
        { "4:mem", -ENODATA, false, NULL },
        /* A path outside the namespace. */
        { "0::/..\n", -EXDEV, false, NULL },
        { "0::/../../a\n", -EXDEV, false, NULL },
        { "4:memory:/a/..\n0::/\n", -EXDEV, false, NULL },
};

static void test_the_cgroup_of_memory_is_found(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cgroups); i++) {
                const char *path = NULL;
                size_t length = 0;
                bool v1 = false;
                int r = oom_find_cgroup(cgroups[i].text, &v1, &path, &length);

                if (r != cgroups[i].r)
                        fail_msg("%s: %d", cgroups[i].text, r);
                assert_int_equal(v1, cgroups[i].v1);
                assert_int_equal(length, cgroups[i].path ? strlen(cgroups[i].path) : 0);
                if (cgroups[i].path)
                        assert_memory_equal(path, cgroups[i].path, length);
                else
                        assert_null(path);
        }
}

/* --- the counters --- */

static const struct {
        const char *text, *key;
        int r;
        uint64_t value;
} counts[] = {
        { "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n", "oom_kill", 0, 5 },
        { "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n", "oom", 0, 4 },
        { "oom_kill_disable 1\nunder_oom 2\noom_kill 3\n", "oom_kill", 0, 3 },
        { "oom_kill 18446744073709551615", "oom_kill", 0, UINT64_MAX },
        { "oom_kill 1\noom_kill 2\n", "oom_kill", 0, 1 },
        { "oom_kill 18446744073709551616\n", "oom_kill", -ERANGE, 0 },
        { "oom_kill 000000000000000000000000000000001\n", "oom_kill", -ERANGE, 0 },
        { "oom_kill -1\n", "oom_kill", -EINVAL, 0 },
        { "oom_kill  1\n", "oom_kill", -EINVAL, 0 },
        { "oom_kill 1 2\n", "oom_kill", -EINVAL, 0 },
        { "oom_kill \n", "oom_kill", -EINVAL, 0 },
        { "oom_kill\n1\n", "oom_kill", -ENODATA, 0 },
        { "oom_kill_disable 0\nunder_oom 0\n", "oom_kill", -ENODATA, 0 },
        { "xoom_kill 1\noom_killx 2\n", "oom_kill", -ENODATA, 0 },
        { "\n\n", "oom_kill", -ENODATA, 0 },
        { "", "oom_kill", -ENODATA, 0 },
};

static void test_a_count_is_found_by_its_key(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(counts); i++) {
                uint64_t value = 0;
                int r = oom_find_count(counts[i].text, counts[i].key, &value);

                if (r != counts[i].r || value != counts[i].value)
                        fail_msg("%s: %d", counts[i].text, r);
        }
}

/* --- hosts, each below its own directory --- */

typedef struct Host {
        char root[64];
} Host;

static int make_host(void **state) {
        Host *host = calloc(1, sizeof(*host));

        *state = host;
        (void)strcpy(host->root, "/tmp/holt-oom-XXXXXX");
        return mkdtemp(host->root) ? 0 : -1;
}

static int remove_host(void **state) {
        Host *host = *state;
        int r = remove_directory(host->root);

        free(host);
        return r;
}

/* Writes a file, creating its parent directories. */
static void put(const Host *host, const char *name, const char *text) {
        char path[256];
        FILE *file;

        (void)snprintf(path, sizeof(path), "%s%s", host->root, name);
        for (char *slash = path + strlen(host->root) + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                (void)mkdir(path, 0755);
                *slash = '/';
        }
        file = fopen(path, "we");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* The counted kills when file changes from `before` to `after`. */
static OomKills change(const Host *host, const char *file, const char *before, const char *after) {
        OomWatch watch;
        OomKills kills;

        put(host, file, before);
        oom_watch_start(host->root, &watch);
        put(host, file, after);
        kills = oom_watch_end(&watch);
        assert_int_equal(watch.dir_fd, FD_NONE);
        assert_int_equal(watch.fd, FD_NONE);
        return kills;
}

static void assert_kills(OomKills kills, OomScope scope, uint64_t count, uint64_t limit) {
        assert_int_equal(kills.scope, scope);
        assert_int_equal(kills.count, count);
        assert_int_equal(kills.limit, limit);
}

#define V2 "/sys/fs/cgroup"
#define V1 "/sys/fs/cgroup/memory"

static void test_v2_tells_the_limit_that_was_reached(void **state) {
        const Host *host = *state;
        const char *file = V2 "/a/b/memory.events";

        put(host, "/proc/self/cgroup", "0::/a/b\n");
        put(host, V2 "/a/b/memory.max", "67108864\n");
        put(host, V2 "/a/memory.events", "oom 9\noom_kill 9\n");
        assert_kills(change(host, file, "oom 1\noom_kill 1\n", "oom 1\noom_kill 1\n"), OOM_CGROUP,
                     0, 0);
        assert_kills(change(host, file, "oom 1\noom_kill 1\n", "oom 2\noom_kill 3\n"), OOM_CGROUP,
                     2, 67108864);
        /* The limit of a parent cgroup, or the machine's memory. */
        assert_kills(change(host, file, "oom 1\noom_kill 1\n", "oom 1\noom_kill 3\n"), OOM_CGROUP,
                     2, 0);
        put(host, V2 "/a/b/memory.max", "max\n");
        assert_kills(change(host, file, "oom 1\noom_kill 1\n", "oom 2\noom_kill 3\n"), OOM_CGROUP,
                     2, 0);
}

static void test_v2_without_the_controller_counts_above(void **state) {
        const Host *host = *state;

        put(host, "/proc/self/cgroup", "0::/a/b/c\n");
        put(host, V2 "/a/b/c/cgroup.procs", "");
        put(host, "/sys/fs/memory.events", "oom_kill 7\n");
        assert_kills(change(host, V2 "/a/memory.events", "oom_kill 0\n", "oom_kill 1\n"),
                     OOM_CGROUP, 1, 0);
}

/* The mount shows only its own cgroup and those below it, not the parents' names. */
static void test_a_path_that_is_not_there_is_the_mount(void **state) {
        const Host *host = *state;

        put(host, "/proc/self/cgroup", "0::/docker/1\n");
        put(host, V2 "/docker/memory.events", "oom_kill 7\n");
        assert_kills(change(host, V2 "/memory.events", "oom_kill 0\n", "oom_kill 1\n"), OOM_CGROUP,
                     1, 0);
}

static void test_v1_is_read_where_it_has_the_memory(void **state) {
        const Host *host = *state;

        put(host, "/proc/self/cgroup", "4:memory:/a\n0::/a\n");
        put(host, V2 "/unified/a/memory.events", "oom_kill 7\n");
        put(host, V1 "/memory.oom_control", "oom_kill 7\n");
        assert_kills(change(host, V1 "/a/memory.oom_control", "under_oom 0\noom_kill 4\n",
                            "under_oom 1\noom_kill 5\n"),
                     OOM_CGROUP, 1, 0);
}

static void test_a_hybrid_host_may_have_it_in_v2(void **state) {
        const Host *host = *state;

        put(host, "/proc/self/cgroup", "4:cpu:/a\n0::/a\n");
        assert_kills(change(host, V2 "/unified/a/memory.events", "oom_kill 0\n", "oom_kill 1\n"),
                     OOM_CGROUP, 1, 0);
}

static void test_else_the_machine_counts(void **state) {
        static const char *const texts[] = { "", "0::/\n", "0::/../a\n", "4:memory:/\n0::/\n" };
        const Host *host = *state;

        put(host, V2 "/cgroup.procs", "");
        put(host, "/sys/fs/a/memory.events", "oom_kill 7\n");
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                put(host, "/proc/self/cgroup", texts[i]);
                assert_kills(change(host, "/proc/vmstat", "pgfault 1\noom_kill 1\n",
                                    "pgfault 2\noom_kill 2\n"),
                             OOM_MACHINE, 1, 0);
        }
}

static void test_a_counter_of_no_use_is_none(void **state) {
        static const char *const texts[][2] = {
                { "", "" },
                { "oom_kill x\n", "oom_kill 1\n" },
                { "oom_kill 1\n", "" },
                { "oom_kill 2\n", "oom_kill 1\n" },
        };
        const Host *host = *state;

        put(host, "/proc/self/cgroup", "0::/\n");
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                assert_kills(change(host, V2 "/memory.events", texts[i][0], texts[i][1]),
                             OOM_UNKNOWN, 0, 0);
}

static void test_a_host_may_show_nothing(void **state) {
        const Host *host = *state;
        OomWatch watch, none = OOM_WATCH_NONE;

        oom_watch_start(host->root, &watch);
        assert_kills(oom_watch_end(&watch), OOM_UNKNOWN, 0, 0);
        assert_kills(oom_watch_end(&none), OOM_UNKNOWN, 0, 0);
}

static void test_a_session_asks_again_and_again(void **state) {
        const Host *host = *state;
        const char *file = V2 "/a/memory.events";
        OomWatch watch;

        put(host, "/proc/self/cgroup", "0::/a\n");
        put(host, file, "oom 1\noom_kill 1\n");
        oom_watch_start(host->root, &watch);
        assert_false(oom_watch_killed(&watch));
        put(host, file, "oom 1\noom_kill 3\n");
        assert_true(oom_watch_killed(&watch));
        assert_false(oom_watch_killed(&watch));
        put(host, file, "oom 1\noom_kill 4\n");
        assert_true(oom_watch_killed(&watch));
        (void)oom_watch_end(&watch);
        assert_false(oom_watch_killed(&watch));
}

#define ON_HOST(test) cmocka_unit_test_setup_teardown(test, make_host, remove_host)

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_cgroup_of_memory_is_found),
                cmocka_unit_test(test_a_count_is_found_by_its_key),
                ON_HOST(test_v2_tells_the_limit_that_was_reached),
                ON_HOST(test_v2_without_the_controller_counts_above),
                ON_HOST(test_a_path_that_is_not_there_is_the_mount),
                ON_HOST(test_v1_is_read_where_it_has_the_memory),
                ON_HOST(test_a_hybrid_host_may_have_it_in_v2),
                ON_HOST(test_else_the_machine_counts),
                ON_HOST(test_a_counter_of_no_use_is_none),
                ON_HOST(test_a_session_asks_again_and_again),
                ON_HOST(test_a_host_may_show_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
