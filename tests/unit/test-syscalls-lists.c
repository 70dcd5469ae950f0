/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/: programs made of a preset and the policy's lists of calls. */
#include "syscalls-fixture.h"

#include <stdlib.h>

static struct sock_filter room[SYSCALLS_PROGRAM_MAX];

static SyscallProgram compile(unsigned preset, bool notify, const StrList *allow,
                              const StrList *deny) {
        SyscallProgram program = { .filter = room };

        assert_int_equal(syscalls_compile(preset, notify, allow, deny, room, ELEMENTSOF(room),
                                          &program.len, NULL),
                         0);
        assert_true(program.len <= SYSCALLS_PROGRAM_MAX);
        return program;
}

static void test_compiled_without_lists_is_the_builtin(void **state) {
        const StrList none = { 0 };

        (void)state;
        FOREACH_BUILTIN(preset, notify) {
                SyscallProgram builtin = syscalls_builtin(preset, notify);
                SyscallProgram program = compile(preset, notify, &none, &none);

                assert_int_equal(program.len, builtin.len);
                assert_memory_equal(program.filter, builtin.filter,
                                    builtin.len * sizeof(struct sock_filter));
        }
}

static void test_allow_and_deny(void **state) {
        static const char *const allowed[] = { "ptrace", "@sysv_ipc", "clone", "@network",
                                               "@namespace" };
        static const char *const denied[] = { "setns", "chmod", "@aio" };
        StrList allow = { 0 }, deny = { 0 };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(allowed); i++)
                assert_int_equal(strlist_add(&allow, allowed[i]), 0);
        for (size_t i = 0; i < ELEMENTSOF(denied); i++)
                assert_int_equal(strlist_add(&deny, denied[i]), 0);
        FOREACH_BUILTIN(preset, notify) {
                SyscallProgram program = compile(preset, notify, &allow, &deny);
                uint32_t refused = return_value(REPORTED | EPERM, notify);

                assert_program(program, preset, notify, &allow, &deny);
                assert_int_equal(run(program, number_of("ptrace"), 0, 0, 0).value,
                                 SECCOMP_RET_ALLOW);
                assert_int_equal(run(program, number_of("shmget"), 0, 0, 0).value,
                                 SECCOMP_RET_ALLOW);
                assert_int_equal(run(program, number_of("clone"), 0x10000000, 0, 0).value,
                                 SECCOMP_RET_ALLOW);
                assert_int_equal(run(program, number_of("socket"), 16, 3, 0).value,
                                 SECCOMP_RET_ALLOW);
                assert_int_equal(run(program, number_of("socket"), 40, 1, 0).value,
                                 SECCOMP_RET_ERRNO | EAFNOSUPPORT);
                assert_int_equal(run(program, number_of("unshare"), 0, 0, 0).value,
                                 SECCOMP_RET_ALLOW);
                assert_int_equal(run(program, number_of("setns"), 0, 0, 0).value, refused);
                assert_int_equal(run(program, number_of("fchmod"), 0, 0, 0).value,
                                 SECCOMP_RET_ALLOW);
                assert_int_equal(run(program, number_of("io_submit"), 0, 0, 0).value,
                                 return_value(REPORTED | ENOSYS, notify));
        }
        strlist_clear(&allow);
        strlist_clear(&deny);
}

/* The numbers with one answer are in as many separate runs as possible: no jump can reach across
 * such a program. */
static bool checks_ptrace(unsigned preset, const char *allow, const char *deny) {
        StrList allowed = { 0 }, denied = { 0 };
        bool result;

        if (allow)
                assert_int_equal(strlist_add(&allowed, allow), 0);
        if (deny)
                assert_int_equal(strlist_add(&denied, deny), 0);
        result = syscalls_check(preset, &allowed, &denied, "ptrace");
        strlist_clear(&allowed);
        strlist_clear(&denied);
        return result;
}

static void test_whether_a_call_is_checked(void **state) {
        (void)state;
        assert_true(checks_ptrace(SYSCALLS_DEFAULT, NULL, NULL));
        assert_true(checks_ptrace(SYSCALLS_DEFAULT, "@ptrace", "@sysv_ipc"));
        assert_true(checks_ptrace(SYSCALLS_STRICT, "@ptrace", NULL));
        assert_false(checks_ptrace(SYSCALLS_STRICT, NULL, NULL));
        assert_false(checks_ptrace(SYSCALLS_DEFAULT, "ptrace", NULL));
        assert_false(checks_ptrace(SYSCALLS_DEFAULT, NULL, "ptrace"));
        assert_false(checks_ptrace(SYSCALLS_DEFAULT, "@ptrace", "@ptrace"));
        assert_false(checks_ptrace(SYSCALLS_DEFAULT, "no_such_call", NULL));
}

static void test_ragged_programs(void **state) {
        size_t longest = 0;

        (void)state;
        for (unsigned step = 2; step < 12; step++) {
                StrList allow = { 0 }, deny = { 0 };
                SyscallProgram program;

                for (int nr = 0; nr < SYSCALL_NUMBERS_END; nr++) {
                        const SyscallRow *row = row_of(nr);

                        if (row && (unsigned)nr % step == 0 && row->group != GROUP_BASIC)
                                assert_int_equal(strlist_add(&deny, row->name), 0);
                        else if (row && row->actions[SYSCALLS_STRICT] < ACTION_CHECK_FIRST)
                                assert_int_equal(strlist_add(&allow, row->name), 0);
                }
                FOREACH_BUILTIN(preset, notify) {
                        program = compile(preset, notify, &allow, &deny);
                        assert_program(program, preset, notify, &allow, &deny);
                        if (program.len > longest)
                                longest = program.len;
                }
                strlist_clear(&allow);
                strlist_clear(&deny);
        }
        assert_true(longest > 256 && longest < SYSCALLS_PROGRAM_MAX);
}

static void test_too_little_room(void **state) {
        size_t length = syscalls_builtin(SYSCALLS_DEFAULT, true).len;

        (void)state;
        for (size_t max = 0; max < length; max++) {
                struct sock_filter *exact = malloc(max * sizeof(*exact) + (max == 0));
                unsigned short len = 7;
                Error error;

                assert_non_null(exact);
                assert_int_equal(syscalls_compile(SYSCALLS_DEFAULT, true, NULL, NULL, exact, max,
                                                  &len, &error),
                                 -E2BIG);
                assert_int_equal(len, 7);
                free(exact);
        }
}

/* --- names --- */

static void test_names(void **state) {
        static const char *const good[] = { "read", "mknod", "uretprobe", "@basic", "@io_uring" };
        static const char *const bad[] = { "",       "@",     "Read",  "read ",
                                           "@Mount", "mmap2", "@read", "pipe, dup" };
        const char *why;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_int_equal(syscalls_name_check(good[i], &why), 0);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                why = NULL;
                assert_int_equal(syscalls_name_check(bad[i], &why), -EINVAL);
                assert_non_null(why);
        }
        assert_int_equal(syscalls_name_check("@moun", &why), -EINVAL);
        assert_non_null(strstr(why, " @mount "));
}

static void assert_refused(const char *allow_name, const char *deny_name, const char *says) {
        StrList allow = { 0 }, deny = { 0 };
        unsigned short len = 7;
        Error error;

        if (allow_name)
                assert_int_equal(strlist_add(&allow, allow_name), 0);
        if (deny_name)
                assert_int_equal(strlist_add(&deny, deny_name), 0);
        assert_int_equal(syscalls_compile(SYSCALLS_DEFAULT, true, &allow, &deny, room,
                                          ELEMENTSOF(room), &len, &error),
                         -EINVAL);
        assert_int_equal(len, 7);
        assert_int_equal(error.kind, ERROR_POLICY);
        if (!strstr(error.text, says))
                fail_msg("\"%s\" does not say \"%s\"", error.text, says);
        strlist_clear(&allow);
        strlist_clear(&deny);
}

static void test_bad_names_are_told(void **state) {
        (void)state;
        assert_refused("raed", NULL, "\"raed\" is not");
        assert_refused(NULL, "@everything", "\"@everything\" is not");
        assert_refused(NULL, "ev\x1b[2Jil", "ev\\x1b[2Jil");
        assert_refused(NULL, "execve", "can't be denied");
        assert_refused(NULL, "@basic", "can't be denied");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_compiled_without_lists_is_the_builtin),
                cmocka_unit_test(test_allow_and_deny),
                cmocka_unit_test(test_whether_a_call_is_checked),
                cmocka_unit_test(test_ragged_programs),
                cmocka_unit_test(test_too_little_room),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_bad_names_are_told),
        };

        return cmocka_run_group_tests_name("syscalls-lists", tests, NULL, NULL);
}
