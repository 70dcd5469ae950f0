/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "directory-fixture.h"
#include "base/util.h"
#include "reach/reach.h"

/* The test's directory, with the workspace ws in it. */
static char top[64];

static void make_file(const char *path) {
        int fd = open(path, O_WRONLY | O_CREAT, 0644);

        assert_true(fd >= 0);
        fd_close(fd);
}

static int enter(void **state) {
        static const char *const directories[] = { "ws",      "ws/bin", "ws/bin/deep", "out",
                                                   "out/bin", "rw",     "again" };

        (void)state;
        (void)strcpy(top, "/tmp/holt-reach-XXXXXX");
        if (!mkdtemp(top) || chdir(top) < 0)
                return -1;
        for (size_t i = 0; i < ELEMENTSOF(directories); i++)
                if (mkdir(directories[i], 0755) < 0)
                        return -1;
        make_file("ws/tool");
        make_file("ws/bin/tool");
        make_file("ws/bin/deep/tool");
        make_file("out/tool");
        make_file("out/bin/tool");
        make_file("rw/tool");
        return 0;
}

static int leave(void **state) {
        (void)state;
        return remove_directory(top);
}

static char *text(const char *s) {
        return (char *)(uintptr_t)s;
}

enum { MOUNTS = 4 };

/* Mounts "ws" at /work and "rw" at /rw. more is a read-only mount of more_source, or NULL. */
typedef struct Plan {
        LaunchPlan plan;
        PlanMount mounts[MOUNTS];
        char sources[MOUNTS][PATH_MAX];
} Plan;

static void plan_add(Plan *p, const char *source, const char *target, unsigned flags) {
        const size_t i = p->plan.mounts_count++;

        (void)snprintf(p->sources[i], PATH_MAX, "%s/%s", top, source);
        p->mounts[i] = (PlanMount){ .kind = PLAN_BIND,
                                    .flags = flags,
                                    .source = p->sources[i],
                                    .target = text(target),
                                    .origin = text("--workspace"),
                                    .fd = FD_NONE,
                                    .tree_fd = FD_NONE };
        p->plan.mounts = p->mounts;
}

static void plan_begin(Plan *p) {
        *p = (Plan){ .plan = { .workspace = text("/work") } };
        plan_add(p, "ws", "/work", 0);
        plan_add(p, "rw", "/rw", 0);
}

/* Returns what a command can do to path. *ret_inside is its place inside, until the next call. */
static unsigned ask_plan(const Plan *p, const char *path, const char **ret_inside) {
        static Reached reached;
        Reach *reach = NULL;
        Error error;
        int fd = FD_NONE, r;

        if (reach_new(&p->plan, &reach, &error) < 0)
                fail_msg("%s", error.text);
        r = reach_path(reach, path, &fd, &reached);
        reach_free(reach);
        assert_true(r == 0 || r == -ENOENT);
        assert_int_equal(r == 0, fd >= 0);
        fd_close(fd);
        if (ret_inside)
                *ret_inside = reached.how ? reached.inside : "";
        return reached.how;
}

static unsigned ask(const char *path, const char **ret_inside) {
        Plan p;

        plan_begin(&p);
        return ask_plan(&p, path, ret_inside);
}

static void test_files_in_and_out_of_the_workspace(void **state) {
        const char *inside;
        char path[PATH_MAX];

        (void)state;
        assert_int_equal(ask("ws/tool", &inside), REACH_REPLACE | REACH_WRITE);
        assert_string_equal(inside, "/work/tool");
        assert_int_equal(ask("ws/bin/deep/tool", &inside), REACH_REPLACE | REACH_WRITE);
        assert_string_equal(inside, "/work/bin");
        assert_int_equal(ask("rw/tool", &inside), REACH_REPLACE | REACH_WRITE);
        assert_string_equal(inside, "/rw/tool");
        /* The directory itself cannot be renamed, but everything in it can be written. */
        assert_int_equal(ask("ws", NULL), REACH_WRITE);
        assert_int_equal(ask("out/tool", NULL), 0);
        assert_int_equal(ask("out/bin/../tool", NULL), 0);
        assert_int_equal(ask("/bin/sh", NULL), 0);
        assert_int_equal(ask("/dev/null", NULL), 0);
        (void)snprintf(path, sizeof(path), "%s/ws/../ws/./tool", top);
        assert_int_equal(ask(path, NULL), REACH_REPLACE | REACH_WRITE);
}

static void test_missing_files_could_be_made(void **state) {
        const char *inside;

        (void)state;
        assert_int_equal(ask("ws/none", &inside), REACH_REPLACE);
        assert_string_equal(inside, "/work/none");
        assert_int_equal(ask("ws/none/below", &inside), REACH_REPLACE);
        assert_string_equal(inside, "/work/none");
        assert_int_equal(ask("out/none", NULL), 0);
}

static void test_links_are_judged_where_they_are(void **state) {
        const char *inside;
        char path[PATH_MAX];

        (void)state;
        assert_int_equal(symlink("../out/tool", "ws/link"), 0);
        assert_int_equal(ask("ws/link", &inside), REACH_REPLACE);
        assert_string_equal(inside, "/work/link");
        assert_int_equal(symlink("../ws/tool", "out/link"), 0);
        assert_int_equal(ask("out/link", NULL), REACH_REPLACE | REACH_WRITE);
        /* The path leads through a linked directory, and out of it again. */
        (void)snprintf(path, sizeof(path), "%s/ws/bin", top);
        assert_int_equal(symlink(path, "out/dir"), 0);
        assert_int_equal(ask("out/dir/tool", NULL), REACH_REPLACE | REACH_WRITE);
        assert_int_equal(ask("out/dir/../../out/tool", &inside), REACH_REPLACE);
        assert_int_equal(symlink("loop", "out/loop"), 0);
        assert_int_equal(symlink("bin/tool", "out/fine"), 0);
        assert_int_equal(ask("out/fine", NULL), 0);
}

static void test_a_moved_directory_has_another_one_above(void **state) {
        const char *inside;

        (void)state;
        assert_int_equal(chdir("ws/bin"), 0);
        assert_int_equal(ask("../../out/tool", &inside), REACH_REPLACE);
        assert_string_equal(inside, "/work/bin");
        /* The top of the workspace cannot be moved. */
        assert_int_equal(chdir(".."), 0);
        assert_int_equal(ask("../out/tool", NULL), 0);
}

static void test_an_open_file_is_where_it_is(void **state) {
        _cleanup_close_ int fd = open("ws/tool", O_RDONLY), out_fd = open("out/tool", O_RDONLY);
        _cleanup_close_ int gone_fd = FD_NONE;
        char path[PATH_MAX];
        int pair[2];

        (void)state;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        assert_int_equal(ask(path, NULL), REACH_WRITE);
        (void)snprintf(path, sizeof(path), "/dev/fd/%d", out_fd);
        assert_int_equal(ask(path, NULL), 0);
        assert_int_equal(pipe(pair), 0);
        (void)snprintf(path, sizeof(path), "/dev/fd/%d", pair[0]);
        assert_int_equal(ask(path, NULL), 0);
        /* The former place of a removed file is unknown: the sandbox may have it open. */
        make_file("ws/gone");
        gone_fd = open("ws/gone", O_RDONLY);
        assert_int_equal(unlink("ws/gone"), 0);
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", gone_fd);
        assert_int_equal(ask(path, NULL), REACH_WRITE);
}

static void test_a_hard_link_may_be_one_in_the_workspace(void **state) {
        (void)state;
        assert_int_equal(link("ws/tool", "out/twin"), 0);
        assert_int_equal(ask("out/twin", NULL), REACH_LINKED);
        /* Both names are outside, but the file itself does not show that. */
        assert_int_equal(link("out/tool", "out/other"), 0);
        assert_int_equal(ask("out/other", NULL), REACH_LINKED);
}

static void test_a_read_only_mount_covers(void **state) {
        Plan p;

        (void)state;
        plan_begin(&p);
        plan_add(&p, "ws/bin/deep", "/work/bin/deep", PLAN_READ_ONLY);
        assert_int_equal(ask_plan(&p, "ws/bin/deep/tool", NULL), 0);
        assert_int_equal(ask_plan(&p, "ws/bin/tool", NULL), REACH_REPLACE | REACH_WRITE);
        /* The mount covers /elsewhere, but the directory is also visible at /work/bin/deep. */
        plan_begin(&p);
        plan_add(&p, "ws/bin/deep", "/elsewhere", PLAN_READ_ONLY);
        assert_int_equal(ask_plan(&p, "ws/bin/deep/tool", NULL), REACH_REPLACE | REACH_WRITE);
        /* A second writable mount shows the directory at /again/deep, too. */
        plan_begin(&p);
        plan_add(&p, "ws/bin/deep", "/work/bin/deep", PLAN_READ_ONLY);
        plan_add(&p, "ws/bin", "/again", 0);
        assert_int_equal(ask_plan(&p, "ws/bin/deep/tool", NULL), REACH_REPLACE | REACH_WRITE);
}

static void test_a_pinned_guard_covers(void **state) {
        PlanGuard guards[] = { { .path = text("bin/deep/tool"), .pinned = true },
                               { .path = text("tool") } };
        Plan p;

        (void)state;
        plan_begin(&p);
        p.plan.guards = guards;
        p.plan.guards_count = ELEMENTSOF(guards);
        assert_int_equal(ask_plan(&p, "ws/bin/deep/tool", NULL), 0);
        assert_int_equal(ask_plan(&p, "ws/bin/deep/other", NULL), REACH_REPLACE);
        assert_int_equal(ask_plan(&p, "ws/tool", NULL), REACH_REPLACE | REACH_WRITE);
}

static void test_the_root_of_a_session_is_writable(void **state) {
        char root[PATH_MAX];
        const char *inside;
        Plan p;

        (void)state;
        plan_begin(&p);
        (void)snprintf(root, sizeof(root), "%s/out", top);
        p.plan.root = (PlanMount){ .kind = PLAN_BIND,
                                   .source = root,
                                   .target = text("/"),
                                   .origin = text("the session's"),
                                   .fd = FD_NONE,
                                   .tree_fd = FD_NONE };
        assert_int_equal(ask_plan(&p, "out/bin/tool", &inside), REACH_REPLACE | REACH_WRITE);
        assert_string_equal(inside, "/bin");
        assert_int_equal(ask_plan(&p, "again", NULL), 0);
}

/* A second mount on the host shows the same directory, or one below it. */
static void test_a_bind_mount_of_the_host_is_the_same_place(void **state) {
        const char *inside;

        (void)state;
        if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("ws/bin", "again", NULL, MS_BIND, NULL) < 0)
                skip();
        assert_int_equal(ask("again/tool", &inside), REACH_REPLACE | REACH_WRITE);
        assert_string_equal(inside, "/work/bin/tool");
        assert_int_equal(mount("ws/tool", "out/tool", NULL, MS_BIND, NULL), 0);
        assert_int_equal(ask("out/tool", &inside), REACH_WRITE);
        assert_string_equal(inside, "/work/tool");
        /* A mount inside the workspace comes along with it. */
        assert_int_equal(mount("out/bin", "ws/bin/deep", NULL, MS_BIND, NULL), 0);
        assert_int_equal(ask("out/bin/tool", &inside), REACH_REPLACE | REACH_WRITE);
        assert_string_equal(inside, "/work/bin/deep/tool");
        assert_int_equal(umount2("ws/bin/deep", MNT_DETACH), 0);
        assert_int_equal(umount2("out/tool", MNT_DETACH), 0);
        assert_int_equal(umount2("again", MNT_DETACH), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_files_in_and_out_of_the_workspace, enter,
                                                leave),
                cmocka_unit_test_setup_teardown(test_missing_files_could_be_made, enter, leave),
                cmocka_unit_test_setup_teardown(test_links_are_judged_where_they_are, enter, leave),
                cmocka_unit_test_setup_teardown(test_a_moved_directory_has_another_one_above, enter,
                                                leave),
                cmocka_unit_test_setup_teardown(test_an_open_file_is_where_it_is, enter, leave),
                cmocka_unit_test_setup_teardown(test_a_hard_link_may_be_one_in_the_workspace, enter,
                                                leave),
                cmocka_unit_test_setup_teardown(test_a_read_only_mount_covers, enter, leave),
                cmocka_unit_test_setup_teardown(test_a_pinned_guard_covers, enter, leave),
                cmocka_unit_test_setup_teardown(test_the_root_of_a_session_is_writable, enter,
                                                leave),
                cmocka_unit_test_setup_teardown(test_a_bind_mount_of_the_host_is_the_same_place,
                                                enter, leave),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
