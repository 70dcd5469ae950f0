/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/: the built-in programs of the presets. */
#include "syscalls-fixture.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_every_number_has_its_action(void **state) {
        (void)state;
        FOREACH_BUILTIN(preset, notify)
        assert_program(syscalls_builtin(preset, notify), preset, notify, NULL, NULL);
}

static void test_unknown_numbers_are_missing(void **state) {
        static const int unknown[] = { 511, 512, 547, 1024, 0x3fffffff };

        (void)state;
        FOREACH_BUILTIN(preset, notify)
        for (size_t i = 0; i < ELEMENTSOF(unknown); i++)
                assert_int_equal(run(syscalls_builtin(preset, notify), unknown[i], 0, 0, 0).value,
                                 SECCOMP_RET_ERRNO | ENOSYS);
}

static void test_foreign_calls_are_killed(void **state) {
        static const uint32_t arches[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_AARCH64,
                                           AUDIT_ARCH_X86_64, 0 };
        static const uint32_t x32[] = { 0x40000000, 0x40000000 | 39, 0x40000000 | 521,
                                        0x7fffffff, 0x80000000,      UINT32_MAX };

        (void)state;
        FOREACH_BUILTIN(preset, notify) {
                SyscallProgram program = syscalls_builtin(preset, notify);

                for (size_t i = 0; i < ELEMENTSOF(arches); i++) {
                        struct seccomp_data data = { .nr = number_of("read"), .arch = arches[i] };
                        uint32_t expected = arches[i] == syscalls_audit_arch
                                                    ? SECCOMP_RET_ALLOW
                                                    : SECCOMP_RET_KILL_PROCESS;

                        assert_int_equal(interpret(program, &data).value, expected);
                }
                for (size_t i = 0; i < ELEMENTSOF(x32); i++)
                        assert_int_equal(run(program, (int)x32[i], 0, 0, 0).value,
                                         syscalls_audit_arch == AUDIT_ARCH_X86_64
                                                 ? SECCOMP_RET_KILL_PROCESS
                                                 : (SECCOMP_RET_ERRNO | ENOSYS));
        }
}

/* confine.c loads the filter before the last steps of the child, which call these. The launcher
 * sleeps then, so a reported call would never be answered. */
static void test_the_last_steps_of_a_child_are_allowed(void **state) {
        static const char *const calls[] = {
                "close",
                "close_range",
                "dup2",
                "dup3",
                "execveat",
                "exit_group",
                "fcntl",
                "fstat",
                "fstatfs",
                "futex",
                "landlock_add_rule",
                "landlock_create_ruleset",
                "landlock_restrict_self",
                "newfstatat",
                "open",
                "openat",
                "prlimit64",
                "sendmsg",
                "statx",
                "umask",
        };

        (void)state;
        FOREACH_BUILTIN(preset, notify)
        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                const int nr = number_of(calls[i]);

                if (nr >= 0)
                        assert_int_equal(run(syscalls_builtin(preset, notify), nr, 0, 0, 0).value,
                                         SECCOMP_RET_ALLOW);
        }
}

static const char *const hot[] = {
        "read",
        "write",
        "close",
        "stat",
        "fstat",
        "newfstatat",
        "statx",
        "lseek",
        "mmap",
        "munmap",
        "mprotect",
        "brk",
        "madvise",
        "futex",
        "sched_yield",
        "clock_gettime",
        "clock_nanosleep",
        "poll",
        "ppoll",
        "select",
        "pselect6",
        "epoll_wait",
        "epoll_pwait",
        "epoll_ctl",
        "recvfrom",
        "sendto",
        "recvmsg",
        "sendmsg",
        "readv",
        "writev",
        "pread64",
        "pwrite64",
        "fcntl",
        "getpid",
        "gettid",
        "getdents64",
        "rt_sigaction",
        "rt_sigprocmask",
        "wait4",
        "accept4",
        "getrandom",
        "access",
        "readlink",
        "execve",
        "exit_group",
        "pipe2",
        "dup2",
        "fork",
};

/* The kernel's bitmap cache answers a call if the program allows it by number and architecture
 * alone. */
static void test_hot_calls_are_free(void **state) {
        (void)state;
        FOREACH_BUILTIN(preset, notify)
        for (size_t i = 0; i < ELEMENTSOF(hot); i++) {
                Outcome outcome;

                if (number_of(hot[i]) < 0)
                        continue;
                outcome = run(syscalls_builtin(preset, notify), number_of(hot[i]), 0, 0, 0);
                assert_int_equal(outcome.value, SECCOMP_RET_ALLOW);
                assert_false(outcome.looked_at_arguments);
        }
}

/* Instructions until an open without a mode is allowed. */
enum { OPEN_STEPS_MAX = 9 };

/* The bitmap cannot answer these calls, so the program must be short for them. */
static void test_opening_is_nearly_free(void **state) {
        static const char *const calls[] = { "openat", "open" };

        (void)state;
        FOREACH_BUILTIN(preset, notify)
        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                Outcome outcome;

                if (number_of(calls[i]) < 0)
                        continue;
                outcome = run(syscalls_builtin(preset, notify), number_of(calls[i]), 0, 0, 0);
                assert_int_equal(outcome.value, SECCOMP_RET_ALLOW);
                assert_true(outcome.steps <= OPEN_STEPS_MAX);
        }
}

/* The verifier of the running kernel accepts them. */
static void test_the_kernel_takes_them(void **state) {
        (void)state;
        if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
                skip();
        FOREACH_BUILTIN(preset, notify) {
                SyscallProgram program = syscalls_builtin(preset, notify);
                struct sock_fprog filter = { program.len,
                                             (struct sock_filter *)(uintptr_t)program.filter };
                pid_t pid = fork();
                int status;

                assert_true(pid >= 0);
                if (pid == 0) {
                        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
                                _exit(1);
                        _exit(syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS ? 0 : 2);
                }
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFEXITED(status));
                assert_int_equal(WEXITSTATUS(status), 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_number_has_its_action),
                cmocka_unit_test(test_unknown_numbers_are_missing),
                cmocka_unit_test(test_foreign_calls_are_killed),
                cmocka_unit_test(test_the_last_steps_of_a_child_are_allowed),
                cmocka_unit_test(test_hot_calls_are_free),
                cmocka_unit_test(test_opening_is_nearly_free),
                cmocka_unit_test(test_the_kernel_takes_them),
        };

        return cmocka_run_group_tests_name("syscalls-programs", tests, NULL, NULL);
}
