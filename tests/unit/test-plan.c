/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/paths.h"
#include "policy/plan.h"

static const char *const command[] = { "true", NULL };
static const char *const caller_env[] = { "SECRET=s", "LANG=de_DE.UTF-8", "KEEP=k", NULL };

typedef struct Case {
        Policy policy;
        LaunchPlan plan;
        PlanContext context;
        Error error;
} Case;

static void case_start(Case *c) {
        *c = (Case){ .context = { .cwd = "/home/u/project", .argv = command, .env = caller_env } };
        assert_int_equal(policy_preset(&c->policy, "standard", "test", &c->error), 0);
}

static void set(Case *c, const char *path, const char *text) {
        if (policy_set(&c->policy, path, text, ORIGIN_CALLER, "test", &c->error) < 0)
                fail_msg("%s", c->error.text);
}

static int make(Case *c) {
        return plan_make(&c->policy, &c->context, &c->plan, &c->error);
}

static void case_end(Case *c) {
        plan_clear(&c->plan);
        policy_clear(&c->policy);
}

static const PlanMount *find(const Case *c, const char *target) {
        for (size_t i = 0; i < c->plan.mounts_count; i++)
                if (streq(c->plan.mounts[i].target, target))
                        return &c->plan.mounts[i];
        fail_msg("no mount at %s", target);
        return NULL;
}

static void test_paths_are_made_normal(void **state) {
        static const struct {
                const char *base, *path, *result;
        } cases[] = {
                { "/a/b", "c", "/a/b/c" }, { "/a/b", "../c", "/a/c" },
                { "/a", "../../..", "/" }, { "/a", "/x//y/./z/", "/x/y/z" },
                { "/", ".", "/" },         { "/a", "..b/c..", "/a/..b/c.." },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char *path = path_join(cases[i].base, cases[i].path);

                assert_string_equal(path, cases[i].result);
                free(path);
        }
        assert_true(path_below("/a/b", "/a"));
        assert_true(path_below("/a", "/"));
        assert_false(path_below("/ab", "/a"));
}

static void test_the_working_directory_is_the_workspace(void **state) {
        Case c;

        (void)state;
        case_start(&c);
        assert_int_equal(make(&c), 0);
        assert_string_equal(c.plan.workspace, "/home/u/project");
        assert_string_equal(c.plan.cwd, "/home/u/project");
        assert_string_equal(find(&c, "/home/u/project")->source, "/home/u/project");
        assert_int_equal(find(&c, "/home/u/project")->flags & PLAN_READ_ONLY, 0);
        case_end(&c);
}

static void test_the_place_in_the_workspace_is_kept(void **state) {
        Case c;

        (void)state;
        case_start(&c);
        set(&c, "filesystem.workspace.source", "/home/u");
        set(&c, "filesystem.workspace.target", "/workspace");
        assert_int_equal(make(&c), 0);
        assert_string_equal(c.plan.cwd, "/workspace/project");
        case_end(&c);
}

/* The caller's environment contains a secret, and no variable may come in unasked. */
static void test_the_environment_is_made_afresh(void **state) {
        Case c;
        bool lang = false;

        (void)state;
        case_start(&c);
        set(&c, "env.pass", "KEEP");
        set(&c, "env.pass", "MISSING");
        set(&c, "env.set", "HOME=/elsewhere");
        assert_int_equal(make(&c), 0);
        for (size_t i = 0; i < c.plan.env.count; i++) {
                assert_false(str_starts(c.plan.env.items[i], "SECRET="));
                assert_false(str_starts(c.plan.env.items[i], "MISSING="));
                lang |= streq(c.plan.env.items[i], "LANG=de_DE.UTF-8");
        }
        assert_true(lang);
        assert_true(strlist_has(&c.plan.env, "KEEP=k"));
        assert_true(strlist_has(&c.plan.env, "HOME=/elsewhere"));
        assert_false(strlist_has(&c.plan.env, "HOME=/home/agent"));
        case_end(&c);
}

/* Parents come before children, and hidden paths come last, regardless of the order on the command
 * line. */
static void test_mounts_are_ordered(void **state) {
        Case c;

        (void)state;
        case_start(&c);
        set(&c, "filesystem.hide", ".env");
        set(&c, "filesystem.read_only", "/x:/home/u/project/deep/er");
        set(&c, "filesystem.read_write", "/y:/home/u/project/deep");
        assert_int_equal(make(&c), 0);
        assert_int_equal(c.plan.mounts_count, 4);
        assert_string_equal(c.plan.mounts[0].target, "/home/u/project");
        assert_string_equal(c.plan.mounts[1].target, "/home/u/project/deep");
        assert_string_equal(c.plan.mounts[2].target, "/home/u/project/deep/er");
        assert_string_equal(c.plan.mounts[3].target, "/home/u/project/.env");
        case_end(&c);
}

/* A mount point is created only if that leaves no file on the host. */
static void test_mount_points_are_made_in_memory_only(void **state) {
        const unsigned memory = PLAN_MAKE_TARGET, root = PLAN_MAKE_TARGET | PLAN_IN_ROOT;
        Case c;

        (void)state;
        case_start(&c);
        set(&c, "filesystem.read_only", "/x:/data/x");
        set(&c, "filesystem.read_only", "/x:/tmp/x");
        set(&c, "filesystem.read_only", "/x:/usr/local/x");
        set(&c, "filesystem.read_only", "/x:/home/u/project/x");
        set(&c, "filesystem.tmpfs", "/scratch");
        set(&c, "filesystem.read_only", "/x:/scratch/x");
        assert_int_equal(make(&c), 0);
        assert_int_equal(find(&c, "/data/x")->flags & root, root);
        assert_int_equal(find(&c, "/tmp/x")->flags & root, memory);
        assert_int_equal(find(&c, "/scratch")->flags & root, root);
        assert_int_equal(find(&c, "/scratch/x")->flags & root, memory);
        assert_int_equal(find(&c, "/usr/local/x")->flags & root, 0);
        assert_int_equal(find(&c, "/home/u/project/x")->flags & root, 0);
        case_end(&c);
}

static void refused(const char *path, const char *text, const char *why) {
        Case c;

        case_start(&c);
        set(&c, path, text);
        assert_true(make(&c) < 0);
        if (!strstr(c.error.text, why))
                fail_msg("%s", c.error.text);
        case_end(&c);
}

static void test_impossible_plans_are_refused(void **state) {
        Case c;

        (void)state;
        refused("filesystem.read_only", "/x:/home/u/project", "both have the target");
        case_start(&c);
        c.context.cwd = "/";
        assert_true(make(&c) < 0);
        case_end(&c);
}

static void test_an_argument_too_long_is_refused(void **state) {
        static char huge[200 * 1024 + 1];
        const char *const argv[] = { "echo", huge, NULL };
        Case c;

        (void)state;
        memset(huge, 'x', sizeof(huge) - 1);
        case_start(&c);
        c.context.argv = argv;
        assert_true(make(&c) < 0);
        assert_non_null(strstr(c.error.text, "argument 1"));
        assert_non_null(strstr(c.error.cure, "stdin"));
        case_end(&c);
}

static bool is_limit(const PolicyField *field) {
        return str_starts(field->path, "limits.") || streq(field->path, "filesystem.tmp_size");
}

/* The row of a limit is all that carries it to the plan and to results. */
static void test_limits_are_carried(void **state) {
        Case c;

        (void)state;
        case_start(&c);
        assert_int_equal(make(&c), 0);
        assert_int_equal(c.plan.output, 0);
        plan_clear(&c.plan);
        for (size_t i = 0; i < policy_fields_count; i++)
                if (is_limit(&policy_fields[i])) {
                        _cleanup_free_ char *text = policy_number_text(&policy_fields[i],
                                                                       (2 << 20) + i * 1000);

                        set(&c, policy_fields[i].path, text);
                }
        assert_int_equal(make(&c), 0);
        for (size_t i = 0; i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];

                assert_int_equal(field->plan != 0, is_limit(field));
                if (is_limit(field))
                        assert_int_equal(plan_limit(&c.plan, field), (2 << 20) + i * 1000);
                if (is_limit(field) && !streq(field->path, "limits.kill_after"))
                        assert_non_null(field->result);
        }
        assert_int_equal(plan_limit(&c.plan, policy_field("limits.output")), c.plan.output);
        assert_int_equal(plan_limit(&c.plan, policy_field("limits.timeout")), c.plan.timeout);
        case_end(&c);
}

/* Only the calls of the presets are known to leave no change of a file unnoticed
 * (git/unchanged.h). */
static void test_a_plan_tells_whether_more_than_a_preset_is_allowed(void **state) {
        static const struct {
                const char *path, *value;
                Layer degraded;
                bool unfiltered;
        } cases[] = {
                { NULL, NULL, LAYER_NONE, false },
                { "syscalls.preset", "strict", LAYER_NONE, false },
                { "syscalls.deny", "ptrace", LAYER_NONE, false },
                { "syscalls.allow", "ioctl", LAYER_NONE, true },
                { NULL, NULL, LAYER_LANDLOCK, false },
                { NULL, NULL, LAYER_SECCOMP, true },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Case c;

                case_start(&c);
                if (cases[i].path)
                        set(&c, cases[i].path, cases[i].value);
                c.context.degraded = LAYER_BIT(cases[i].degraded);
                assert_int_equal(make(&c), 0);
                assert_int_equal(c.plan.unfiltered, cases[i].unfiltered);
                case_end(&c);
        }
}

/* Some of these paths exist on no kernel that the tests see, so no other test would notice. */
static void test_files_of_proc_about_the_host_are_covered(void **state) {
        static const TreeProc covered[] = {
                { "sys", false },        { "sysrq-trigger", false },
                { "irq", false },        { "bus", false },
                { "fs", false },         { "kcore", true },
                { "keys", true },        { "timer_list", true },
                { "sched_debug", true }, { "latency_stats", true },
                { "acpi", true },        { "scsi", true },
                { "asound", true },      { "interrupts", true },
                { "pressure", true },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(covered); i++) {
                bool found = false;

                for (size_t j = 0; j < tree_proc_count; j++)
                        found |= streq(tree_proc[j].name, covered[i].name) &&
                                 tree_proc[j].masked >= covered[i].masked;
                if (!found)
                        fail_msg("%s", covered[i].name);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_paths_are_made_normal),
                cmocka_unit_test(test_the_working_directory_is_the_workspace),
                cmocka_unit_test(test_the_place_in_the_workspace_is_kept),
                cmocka_unit_test(test_the_environment_is_made_afresh),
                cmocka_unit_test(test_mounts_are_ordered),
                cmocka_unit_test(test_mount_points_are_made_in_memory_only),
                cmocka_unit_test(test_impossible_plans_are_refused),
                cmocka_unit_test(test_an_argument_too_long_is_refused),
                cmocka_unit_test(test_files_of_proc_about_the_host_are_covered),
                cmocka_unit_test(test_limits_are_carried),
                cmocka_unit_test(test_a_plan_tells_whether_more_than_a_preset_is_allowed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
