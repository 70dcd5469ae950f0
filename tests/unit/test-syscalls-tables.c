/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/: the tables of system calls. */
#include "syscalls-fixture.h"

#include <seccomp.h>
#include <stdlib.h>
#include <sys/syscall.h>

static void test_rows_are_whole(void **state) {
        (void)state;
        assert_int_equal(syscall_rows_count, syscall_numbers_count);
        for (size_t i = 0; i < syscall_rows_count; i++) {
                const SyscallRow *row = &syscall_rows[i];

                assert_true(row->name[0] && row->name[sizeof(row->name) - 1] == '\0');
                assert_int_equal(syscall_row_find(row->name), i); /* no duplicate name */
                if (syscall_numbers[i] >= 0)
                        assert_ptr_equal(row_of(syscall_numbers[i]), row); /* no duplicate number */
                for (size_t preset = 0; preset < SYSCALLS_PRESET_MAX; preset++)
                        assert_true(row->actions[preset] < ACTION_MAX);
                if (row->group == GROUP_BASIC &&
                    row->actions[SYSCALLS_DEFAULT] < ACTION_CHECK_FIRST)
                        assert_int_equal(row->actions[SYSCALLS_STRICT], ACTION_ALLOW);
        }
}

static void test_ranges_are_sorted(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(syscall_checks); i++) {
                const SyscallCheck *check = &syscall_checks[i];

                assert_true(check->count > 0 && check->mask != 0 && check->arg < 6);
                for (size_t j = 0; j < check->count; j++) {
                        assert_true(check->ranges[j].first <= check->ranges[j].last);
                        if (j > 0)
                                assert_true(check->ranges[j - 1].last < check->ranges[j].first);
                }
        }
}

/* The table has every call that libseccomp knows, with the same name and number. */
static void test_numbers_agree_with_libseccomp(void **state) {
        (void)state;
        for (int nr = 0; nr <= 469; nr++) {
                char *name = seccomp_syscall_resolve_num_arch(syscalls_audit_arch, nr);

                if (name) {
                        assert_non_null(syscall_name((unsigned)nr));
                        assert_string_equal(syscall_name((unsigned)nr), name);
                }
                free(name);
        }
}

static void test_numbers_agree_with_this_system(void **state) {
        (void)state;
        assert_int_equal(number_of("read"), SYS_read);
        assert_int_equal(number_of("openat"), SYS_openat);
        assert_int_equal(number_of("newfstatat"), SYS_newfstatat);
        assert_int_equal(number_of("seccomp"), SYS_seccomp);
        assert_int_equal(number_of("pidfd_open"), SYS_pidfd_open);
}

static void test_queries(void **state) {
        (void)state;
        assert_string_equal(syscall_name((unsigned)number_of("mount")), "mount");
        assert_string_equal(syscall_group((unsigned)number_of("mount")), "@mount");
        assert_int_equal(syscall_refusal((unsigned)number_of("mount")), EPERM);
        assert_int_equal(syscall_refusal((unsigned)number_of("clone")), EPERM);
        assert_int_equal(syscall_refusal((unsigned)number_of("read")), EPERM);
        assert_int_equal(syscall_refusal((unsigned)number_of("keyctl")), ENOSYS);
        assert_int_equal(syscall_refusal((unsigned)number_of("shmget")), ENOSYS);
        assert_null(syscall_name(511));
        assert_null(syscall_name(-1U));
        assert_null(syscall_group(511));
        assert_int_equal(syscall_refusal(511), ENOSYS);
}

static void test_counts_of_a_name(void **state) {
        _cleanup_(strlist_clear) StrList namespaces = { 0 };
        unsigned all = 0, vain = 0;

        (void)state;
        assert_int_equal(strlist_add(&namespaces, "unshare"), 0);
        syscalls_count("mount", NULL, &all, &vain);
        assert_int_equal(all, 1);
        assert_int_equal(vain, 1);
        syscalls_count("mount", &namespaces, &all, &vain);
        assert_int_equal(vain, 0);
        syscalls_count("@mount", NULL, &all, &vain);
        assert_true(vain > 1 && vain < all);
        syscalls_count("read", NULL, &all, &vain);
        assert_int_equal(all, 1);
        assert_int_equal(vain, 0);
        syscalls_count("nothing", NULL, &all, &vain);
        assert_int_equal(all, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rows_are_whole),
                cmocka_unit_test(test_ranges_are_sorted),
                cmocka_unit_test(test_numbers_agree_with_libseccomp),
                cmocka_unit_test(test_numbers_agree_with_this_system),
                cmocka_unit_test(test_queries),
                cmocka_unit_test(test_counts_of_a_name),
        };

        return cmocka_run_group_tests_name("syscalls-tables", tests, NULL, NULL);
}
