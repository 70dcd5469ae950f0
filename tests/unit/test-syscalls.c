/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "policy/syscalls-table.h"

#ifndef SECCOMP_RET_USER_NOTIF
#define SECCOMP_RET_USER_NOTIF 0x7fc00000U
#endif

#define HIGH (1ULL << 32)

/* --- classic BPF, as much of it as the kernel allows and we emit --- */

typedef struct Outcome {
        uint32_t value;
        bool looked_at_arguments;
} Outcome;

static uint32_t load(const struct seccomp_data *data, uint32_t offset) {
        uint32_t word;

        assert_true(offset % 4 == 0 && offset + 4 <= sizeof(*data));
        memcpy(&word, (const char *)data + offset, sizeof(word));
        return word;
}

static Outcome interpret(SyscallProgram program, const struct seccomp_data *data) {
        Outcome outcome = { 0 };
        uint32_t a = 0;

        for (size_t pc = 0; pc < program.len; pc++) {
                struct sock_filter i = program.filter[pc];

                switch (i.code) {
                case BPF_LD | BPF_W | BPF_ABS:
                        a = load(data, i.k);
                        if (i.k >= offsetof(struct seccomp_data, instruction_pointer))
                                outcome.looked_at_arguments = true;
                        break;
                case BPF_ALU | BPF_AND | BPF_K:
                        a &= i.k;
                        break;
                case BPF_JMP | BPF_JA:
                        pc += i.k;
                        break;
                case BPF_JMP | BPF_JEQ | BPF_K:
                        pc += a == i.k ? i.jt : i.jf;
                        break;
                case BPF_JMP | BPF_JGE | BPF_K:
                        pc += a >= i.k ? i.jt : i.jf;
                        break;
                case BPF_RET | BPF_K:
                        outcome.value = i.k;
                        return outcome;
                default:
                        fail_msg("instruction %zu has code 0x%x", pc, i.code);
                }
        }
        fail_msg("the program has no end");
        return outcome;
}

static Outcome run(SyscallProgram program, int nr, uint64_t a, uint64_t b, uint64_t c) {
        struct seccomp_data data = { .nr = nr, .arch = syscalls_audit_arch, .args = { a, b, c } };

        return interpret(program, &data);
}

static int number_of(const char *name) {
        int row = syscall_row_find(name);

        assert_true(row >= 0);
        return syscall_numbers[row];
}

/* --- the same by the tables --- */

static uint32_t action_of_arguments(SyscallAction action, bool notify, const uint64_t args[3]) {
        while (action >= ACTION_CHECK_FIRST) {
                const SyscallCheck *check = &syscall_checks[action - ACTION_CHECK_FIRST];
                uint32_t value = (uint32_t)args[check->arg] & check->mask;

                action = check->otherwise;
                for (size_t i = 0; i < check->count; i++)
                        if (value >= check->ranges[i].first && value <= check->ranges[i].last)
                                action = check->ranges[i].action;
        }
        return syscall_action_value(action, notify);
}

static const SyscallRow *row_of(int nr) {
        for (size_t i = 0; i < syscall_rows_count; i++)
                if (syscall_numbers[i] == nr)
                        return &syscall_rows[i];
        return NULL;
}

static bool listed(const StrList *list, const SyscallRow *row) {
        return strlist_has(list, row->name) || strlist_has(list, syscall_groups[row->group].name);
}

static SyscallAction refusal_of(const SyscallRow *row) {
        switch (syscall_refusal((unsigned)number_of(row->name))) {
        case EPERM:
                return row->actions[SYSCALLS_STRICT] == ACTION_EPERM ? ACTION_EPERM
                                                                     : ACTION_NOTIFY_EPERM;
        default:
                return row->actions[SYSCALLS_STRICT] == ACTION_ENOSYS ? ACTION_ENOSYS
                                                                      : ACTION_NOTIFY_ENOSYS;
        }
}

static void assert_program(SyscallProgram program, unsigned preset, bool notify,
                           const StrList *allow, const StrList *deny) {
        static const uint64_t samples[][3] = {
                { 0, 0, 0 },          { 1, 1, 1 },        { 2, 2, 0 },
                { 16, 3, 0 },         { 10, 1, 132 },     { HIGH, HIGH, HIGH },
                { 0x10000000, 8, 6 }, { 35, 0x5412, 17 }, { 0xffffffff, 0x2000, 0x2000 },
        };

        for (int nr = 0; nr <= 1024; nr++) {
                const SyscallRow *row = row_of(nr);
                SyscallAction action = row ? row->actions[preset] : ACTION_ENOSYS;

                if (row && deny && listed(deny, row))
                        action = refusal_of(row);
                else if (row && allow && strlist_has(allow, row->name))
                        action = ACTION_ALLOW;
                else if (row && allow && listed(allow, row))
                        action = row->actions[SYSCALLS_DEFAULT] >= ACTION_CHECK_FIRST
                                         ? row->actions[SYSCALLS_DEFAULT]
                                         : ACTION_ALLOW;
                for (size_t i = 0; i < ELEMENTSOF(samples); i++) {
                        Outcome outcome = run(program, nr, samples[i][0], samples[i][1],
                                              samples[i][2]);

                        assert_int_equal(outcome.value,
                                         action_of_arguments(action, notify, samples[i]));
                        assert_int_equal(outcome.looked_at_arguments, action >= ACTION_CHECK_FIRST);
                }
        }
}

#define FOREACH_BUILTIN(preset, notify)                                                            \
        for (unsigned preset = 0; preset < SYSCALLS_PRESET_MAX; preset++)                          \
                for (unsigned notify = 0; notify < 2; notify++)

/* --- the tables --- */

static void test_rows_are_whole(void **state) {
        (void)state;
        assert_int_equal(syscall_rows_count, syscall_numbers_count);
        for (size_t i = 0; i < syscall_rows_count; i++) {
                const SyscallRow *row = &syscall_rows[i];

                assert_true(row->name[0] && row->name[sizeof(row->name) - 1] == '\0');
                assert_int_equal(syscall_row_find(row->name), i); /* no name twice */
                if (syscall_numbers[i] >= 0)
                        assert_ptr_equal(row_of(syscall_numbers[i]), row); /* and no number */
                for (size_t preset = 0; preset < SYSCALLS_PRESET_MAX; preset++)
                        assert_true(row->actions[preset] < ACTION_MAX);
                if (row->group == GROUP_BASIC)
                        assert_int_equal(row->actions[SYSCALLS_STRICT],
                                         row->actions[SYSCALLS_DEFAULT]);
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

/* What libseccomp knows, the table has, under the same name and number. */
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

/* --- the built-in programs --- */

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

static const char *const hot[] = {
        "read",
        "write",
        "open",
        "openat",
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

/* The kernel's bitmap cache takes a call whose answer is "allow" without a look at anything but
 * number and architecture. */
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

/* The verifier of the kernel that we run on. */
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

/* --- arguments --- */

enum { ALLOWED = 0, REPORTED = 1 << 16 };

typedef struct Sample {
        const char *name;
        uint64_t args[3];
        int in_default, in_strict; /* ALLOWED, or an errno, or one that is REPORTED */
} Sample;

#define SAME(answer) (answer), (answer)

static const Sample samples[] = {
        /* SIGCHLD; what pthread_create, vfork and posix_spawn pass; an exit signal with bit 0x80 */
        { "clone", { 0x11 }, SAME(ALLOWED) },
        { "clone", { 0x3d0f00 }, SAME(ALLOWED) },
        { "clone", { 0x1200011 }, SAME(ALLOWED) },
        { "clone", { 0x4111 }, SAME(ALLOWED) },
        { "clone", { 0x91 }, SAME(ALLOWED) },
        { "clone", { HIGH | 0x11 }, SAME(ALLOWED) },
        { "clone", { 0x10000011 }, SAME(REPORTED | EPERM) },
        { "clone", { 0x00020011 }, SAME(REPORTED | EPERM) },
        { "clone", { 0x02000011 }, SAME(REPORTED | EPERM) },
        { "clone", { 0x04000011 }, SAME(REPORTED | EPERM) },
        { "clone", { 0x08000011 }, SAME(REPORTED | EPERM) },
        { "clone", { 0x20000011 }, SAME(REPORTED | EPERM) },
        { "clone", { 0x40000011 }, SAME(REPORTED | EPERM) },
        { "clone", { HIGH | 0x10000011 }, SAME(REPORTED | EPERM) },
        { "clone3", { 0 }, SAME(ENOSYS) },
        /* TCGETS, TIOCGWINSZ, FIONBIO, TIOCSCTTY, FIOASYNC */
        { "ioctl", { 0, 0x5401 }, SAME(ALLOWED) },
        { "ioctl", { 0, 0x5413 }, SAME(ALLOWED) },
        { "ioctl", { 0, 0x5421 }, SAME(ALLOWED) },
        { "ioctl", { 0, 0x540e }, SAME(ALLOWED) },
        { "ioctl", { 0, 0x5452 }, SAME(ALLOWED) },
        { "ioctl", { 0x5412, 0x5411 }, SAME(ALLOWED) },
        /* TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD */
        { "ioctl", { 0, 0x5412 }, SAME(EPERM) },
        { "ioctl", { 0, 0x541c }, SAME(EPERM) },
        { "ioctl", { 0, 0x541d }, SAME(EPERM) },
        { "ioctl", { 0, 0x5423 }, SAME(EPERM) },
        { "ioctl", { 0, HIGH | 0x5412 }, SAME(EPERM) },
        { "ioctl", { 0, ~0ULL << 32 | 0x541c }, SAME(EPERM) },
        /* S_IFREG, S_IFIFO, S_IFSOCK, none; S_IFCHR, S_IFBLK, S_IFDIR */
        { "mknod", { 0, 0100644 }, SAME(ALLOWED) },
        { "mknod", { 0, 0010644 }, SAME(ALLOWED) },
        { "mknod", { 0, 0140644 }, SAME(ALLOWED) },
        { "mknod", { 0, 0000644 }, SAME(ALLOWED) },
        { "mknod", { 0, 0020644 }, SAME(EPERM) },
        { "mknod", { 0, 0060644 }, SAME(EPERM) },
        { "mknod", { 0, 0040644 }, SAME(EPERM) },
        { "mknod", { 0, HIGH | 0200000 | 0060644 }, SAME(EPERM) },
        { "mknodat", { 0, 0, 0010644 }, SAME(ALLOWED) },
        { "mknodat", { 0, 0060000, 0100644 }, SAME(ALLOWED) },
        { "mknodat", { 0, 0, 0020644 }, SAME(EPERM) },
        { "mknodat", { 0, 0, HIGH | 0060644 }, SAME(EPERM) },
        /* The question, PER_LINUX, UNAME26, ADDR_NO_RANDOMIZE; READ_IMPLIES_EXEC, MMAP_PAGE_ZERO,
         * PER_LINUX32, PER_SVR4 */
        { "personality", { 0xffffffff }, SAME(ALLOWED) },
        { "personality", { ~0ULL }, SAME(ALLOWED) },
        { "personality", { 0 }, ALLOWED, EPERM },
        { "personality", { 0x20000 }, ALLOWED, EPERM },
        { "personality", { 0x40000 }, ALLOWED, EPERM },
        { "personality", { 0x60000 }, ALLOWED, EPERM },
        { "personality", { 0x400000 }, SAME(EPERM) },
        { "personality", { 0x440000 }, SAME(EPERM) },
        { "personality", { 0x100000 }, SAME(EPERM) },
        { "personality", { 8 }, SAME(EPERM) },
        { "personality", { 1 | 0x4100000 }, SAME(EPERM) },
        { "personality", { HIGH | 0x400000 }, SAME(EPERM) },
        { "personality", { 0xfffffffe }, SAME(EPERM) },
        /* PR_SET_NAME, NO_NEW_PRIVS, SECCOMP, DUMPABLE, PDEATHSIG, SUBREAPER, VMA, PTRACER */
        { "prctl", { 15 }, SAME(ALLOWED) },
        { "prctl", { 38, 1 }, SAME(ALLOWED) },
        { "prctl", { 22, 2 }, SAME(ALLOWED) },
        { "prctl", { 4, 1 }, SAME(ALLOWED) },
        { "prctl", { 1, 9 }, SAME(ALLOWED) },
        { "prctl", { 36, 1 }, SAME(ALLOWED) },
        { "prctl", { 0x53564d41 }, SAME(ALLOWED) },
        { "prctl", { 0x59616d61 }, SAME(ALLOWED) },
        { "prctl", { HIGH | 15 }, SAME(ALLOWED) },
        /* PR_SET_MM, TASK_PERF_EVENTS_DISABLE, SET_IO_FLUSHER, SCHED_CORE, unknown ones */
        { "prctl", { 35 }, SAME(EPERM) },
        { "prctl", { HIGH | 35 }, SAME(EPERM) },
        { "prctl", { 31 }, SAME(EINVAL) },
        { "prctl", { 57 }, SAME(EINVAL) },
        { "prctl", { 62 }, SAME(EINVAL) },
        { "prctl", { 0 }, SAME(EINVAL) },
        { "prctl", { 1000 }, SAME(EINVAL) },
        { "prctl", { UINT32_MAX }, SAME(EINVAL) },
        /* SECCOMP_SET_MODE_FILTER with TSYNC, LOG; with NEW_LISTENER, alone and with others */
        { "seccomp", { 1, 0 }, SAME(ALLOWED) },
        { "seccomp", { 1, 1 | 2 }, SAME(ALLOWED) },
        { "seccomp", { 2, 0 }, SAME(ALLOWED) },
        { "seccomp", { 1, 8 }, SAME(EBUSY) },
        { "seccomp", { 1, 8 | 1 | 16 }, SAME(EBUSY) },
        { "seccomp", { 1, HIGH | 8 }, SAME(EBUSY) },
        { "seccomp", { HIGH | 1, 8 }, SAME(EBUSY) },
        /* AF_UNIX, AF_INET, AF_INET6 with SOCK_CLOEXEC and SOCK_NONBLOCK */
        { "socket", { 1, 1, 0 }, SAME(ALLOWED) },
        { "socket", { 1, 5 | 02000000, 0 }, SAME(ALLOWED) },
        { "socket", { 2, 1 | 02000000 | 04000, 0 }, SAME(ALLOWED) },
        { "socket", { 2, 1, 6 }, SAME(ALLOWED) },
        { "socket", { 10, 2 | 02000000, 17 }, SAME(ALLOWED) },
        { "socket", { 2, 2, 1 }, SAME(ALLOWED) },
        { "socket", { 10, 2, 58 }, SAME(ALLOWED) },
        /* SOCK_RAW, SOCK_PACKET; SCTP, MPTCP, L2TP */
        { "socket", { 2, 3, 1 }, SAME(EPERM) },
        { "socket", { 2, 10, 0 }, SAME(EPERM) },
        { "socket", { 10, HIGH | 3 | 02000000, 255 }, SAME(EPERM) },
        { "socket", { 2, 1, 132 }, SAME(EPROTONOSUPPORT) },
        { "socket", { 2, 1, 262 }, SAME(EPROTONOSUPPORT) },
        { "socket", { 10, 2, 115 }, SAME(EPROTONOSUPPORT) },
        { "socket", { 2, 1, HIGH | 132 }, SAME(EPROTONOSUPPORT) },
        /* NETLINK_ROUTE; NETLINK_KOBJECT_UEVENT, NETLINK_AUDIT */
        { "socket", { 16, 3, 0 }, ALLOWED, EAFNOSUPPORT },
        { "socket", { 16, 3 | 02000000, HIGH }, ALLOWED, EAFNOSUPPORT },
        { "socket", { 16, 3, 15 }, EPROTONOSUPPORT, EAFNOSUPPORT },
        { "socket", { 16, 3, 9 }, EPROTONOSUPPORT, EAFNOSUPPORT },
        { "socket", { 16, 3, HIGH | 12 }, EPROTONOSUPPORT, EAFNOSUPPORT },
        /* AF_UNSPEC, AF_PACKET, AF_ALG, AF_VSOCK, AF_BLUETOOTH */
        { "socket", { 0, 1, 0 }, SAME(EAFNOSUPPORT) },
        { "socket", { 17, 3, 0 }, SAME(EAFNOSUPPORT) },
        { "socket", { 38, 5, 0 }, SAME(EAFNOSUPPORT) },
        { "socket", { 40, 1, 0 }, SAME(EAFNOSUPPORT) },
        { "socket", { 31, 3, 1 }, SAME(EAFNOSUPPORT) },
        { "socket", { HIGH | 40, 1, 0 }, SAME(EAFNOSUPPORT) },
        { "socket", { HIGH | 1, 1, 0 }, SAME(ALLOWED) },
        { "socketpair", { 1, 1, 0 }, SAME(ALLOWED) },
        { "socketpair", { 30, 5, 0 }, SAME(EAFNOSUPPORT) },
        /* Whole calls, one of each kind. */
        { "io_uring_setup", { 1, 0 }, SAME(REPORTED | ENOSYS) },
        { "ptrace", { 0 }, SAME(REPORTED | EPERM) },
        { "unshare", { 0x10000000 }, SAME(REPORTED | EPERM) },
        { "kcmp", { 0 }, SAME(EPERM) },
        { "shmget", { 0 }, ALLOWED, REPORTED | ENOSYS },
        { "landlock_restrict_self", { 0 }, SAME(ALLOWED) },
};

static uint32_t value_of(int answer, bool notify) {
        if (answer == ALLOWED)
                return SECCOMP_RET_ALLOW;
        if ((answer & REPORTED) && notify)
                return SECCOMP_RET_USER_NOTIF;
        return SECCOMP_RET_ERRNO | (uint32_t)(answer & ~REPORTED);
}

static void test_arguments(void **state) {
        (void)state;
        FOREACH_BUILTIN(preset, notify)
        for (size_t i = 0; i < ELEMENTSOF(samples); i++) {
                const Sample *s = &samples[i];
                int answer = preset == SYSCALLS_STRICT ? s->in_strict : s->in_default;
                int nr = number_of(s->name);

                if (nr < 0)
                        continue;
                if (run(syscalls_builtin(preset, notify), nr, s->args[0], s->args[1], s->args[2])
                            .value != value_of(answer, notify))
                        fail_msg("%s, row %zu, preset %u", s->name, i, preset);
        }
}

/* The launcher answers a report by the number alone. */
static void test_reports_have_one_errno(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(samples); i++)
                if ((samples[i].in_strict & REPORTED) && number_of(samples[i].name) >= 0)
                        assert_int_equal(syscall_refusal((unsigned)number_of(samples[i].name)),
                                         samples[i].in_strict & ~REPORTED);
}

/* --- allow and deny --- */

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
                uint32_t refused = value_of(REPORTED | EPERM, notify);

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
                                 value_of(REPORTED | ENOSYS, notify));
        }
        strlist_clear(&allow);
        strlist_clear(&deny);
}

/* As many runs as names can make: programs of which no jump can reach the other end. */
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
                cmocka_unit_test(test_rows_are_whole),
                cmocka_unit_test(test_ranges_are_sorted),
                cmocka_unit_test(test_numbers_agree_with_libseccomp),
                cmocka_unit_test(test_numbers_agree_with_this_system),
                cmocka_unit_test(test_queries),
                cmocka_unit_test(test_every_number_has_its_action),
                cmocka_unit_test(test_unknown_numbers_are_missing),
                cmocka_unit_test(test_foreign_calls_are_killed),
                cmocka_unit_test(test_hot_calls_are_free),
                cmocka_unit_test(test_the_kernel_takes_them),
                cmocka_unit_test(test_arguments),
                cmocka_unit_test(test_reports_have_one_errno),
                cmocka_unit_test(test_compiled_without_lists_is_the_builtin),
                cmocka_unit_test(test_allow_and_deny),
                cmocka_unit_test(test_ragged_programs),
                cmocka_unit_test(test_too_little_room),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_bad_names_are_told),
        };

        return cmocka_run_group_tests_name("syscalls", tests, NULL, NULL);
}
