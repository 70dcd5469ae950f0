/* SPDX-License-Identifier: Apache-2.0 */
/* Tests policy/: calls that depend on their arguments. */
#include "syscalls-fixture.h"

typedef struct Sample {
        const char *name;
        uint64_t args[4];
        int in_default, in_strict;
} Sample;

#define SAME(answer) (answer), (answer)

static const Sample samples[] = {
        /* SIGCHLD; the flags of pthread_create, vfork and posix_spawn; an exit signal with bit 0x80
         */
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
        /* PIDFD_GET_*_NAMESPACE; the last two are other requests */
        { "ioctl", { 0, 0xff01 }, SAME(EPERM) },
        { "ioctl", { 0, 0xff09 }, SAME(EPERM) },
        { "ioctl", { 0, 0xff0a }, SAME(EPERM) },
        { "ioctl", { 0, HIGH | 0xff09 }, SAME(EPERM) },
        { "ioctl", { 0, 0xff00 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0xc050ff0b }, SAME(ALLOWED) },
        /* FICLONE, FICLONERANGE, FIDEDUPERANGE, TIOCGPTN, TCSETS2, FIEMAP, SIOCGIFCONF */
        { "ioctl", { 0, 0x40049409 }, SAME(ALLOWED) },
        { "ioctl", { 0, 0x4020940d }, SAME(ALLOWED) },
        { "ioctl", { 0, 0xc0189436 }, SAME(ALLOWED) },
        { "ioctl", { 0, 0x80045430 }, SAME(ALLOWED) },
        { "ioctl", { 0, 0x402c542b }, SAME(ALLOWED) },
        { "ioctl", { 0, 0xc020660b }, SAME(ALLOWED) },
        { "ioctl", { 0, 0x8905 }, SAME(ALLOWED) },
        { "ioctl", { 0, 0x8912 }, ALLOWED, ENOTTY },
        { "ioctl", { 0, HIGH | 0x8927 }, ALLOWED, ENOTTY },
        { "ioctl", { 0, 0x8946 }, ALLOWED, ENOTTY },
        /* btrfs: SNAP_CREATE, SUBVOL_CREATE, SNAP_DESTROY, SNAP_CREATE_V2, SUBVOL_SETFLAGS */
        { "ioctl", { 0, 0x50009401 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0x5000940e }, SAME(ENOTTY) },
        { "ioctl", { 0, 0x5000940f }, SAME(ENOTTY) },
        { "ioctl", { 0, 0x50009417 }, SAME(ENOTTY) },
        { "ioctl", { 0, HIGH | 0x50009417 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0x4008941a }, SAME(ENOTTY) },
        /* bcachefs: SUBVOLUME_CREATE; FS_IOC_SETFLAGS, FSSETXATTR, SETVERSION, MOVE_EXT */
        { "ioctl", { 0, 0x4020bc10 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0x40086602 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0x401c5820 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0x40087602 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0xc028660f }, SAME(ENOTTY) },
        /* XFS_IOC_OPEN_BY_HANDLE, F2FS_IOC_MOVE_RANGE, CIFS_IOC_COPYCHUNK_FILE, SIOCGIFBR */
        { "ioctl", { 0, 0xc038586b }, SAME(ENOTTY) },
        { "ioctl", { 0, 0xc020f509 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0x4004cf03 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0x8940 }, SAME(ENOTTY) },
        { "ioctl", { 0, 0xc048ff0b }, SAME(ALLOWED) },
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
        /* Set-id bits: in a mode that counts, beside bits that the kernel ignores, and without
         * creating a file */
        { "mknod", { 0, 0104755 }, SAME(REPORTED | EPERM) },
        { "mknod", { 0, 0012644 }, SAME(REPORTED | EPERM) },
        { "mknodat", { 0, 0, 0102745 }, SAME(REPORTED | EPERM) },
        { "mknodat", { 0, 0, HIGH | 0004755 }, SAME(REPORTED | EPERM) },
        { "mknodat", { 0, 0, 0101644 }, SAME(ALLOWED) },
        { "creat", { 0, 0755 }, SAME(ALLOWED) },
        { "creat", { 0, 01755 }, SAME(ALLOWED) },
        { "creat", { 0, 02745 }, SAME(REPORTED | EPERM) },
        { "creat", { 0, 04000 }, SAME(REPORTED | EPERM) },
        { "creat", { 0, HIGH | 06755 }, SAME(REPORTED | EPERM) },
        { "open", { 0, 0, 04755 }, SAME(ALLOWED) },
        { "open", { 0, 0102001, 0644 }, SAME(ALLOWED) },
        { "open", { 0, 0102, 0644 }, SAME(ALLOWED) },
        { "open", { 0, 0102, 02745 }, SAME(REPORTED | EPERM) },
        { "open", { 0, HIGH | 0100, HIGH | 04755 }, SAME(REPORTED | EPERM) },
        { "open", { 0, 0301, 01000 | 04755 }, SAME(REPORTED | EPERM) },
        { "open", { 0, HIGH | 2, 04755 }, SAME(ALLOWED) },
        { "openat", { 0, 0, 0, ~0ULL }, SAME(ALLOWED) },
        { "openat", { 0, 0, 02000002, 06755 }, SAME(ALLOWED) },
        { "openat", { 0, 0, 0102, 0777 }, SAME(ALLOWED) },
        { "openat", { 0, 04755, 0102, HIGH | 0777 }, SAME(ALLOWED) },
        { "openat", { 0, 0, 0102, 02745 }, SAME(REPORTED | EPERM) },
        { "openat", { 0, 0, 0102, 04000 }, SAME(REPORTED | EPERM) },
        { "openat", { 0, 0, 020200002, 0755 }, SAME(ALLOWED) },
        { "openat", { 0, 0, 020200002, 04755 }, SAME(REPORTED | EPERM) },
        { "openat", { 0, 0, 020000002, 02755 }, SAME(REPORTED | EPERM) },
        { "openat", { HIGH, HIGH, HIGH | 0100, HIGH | 02000 }, SAME(REPORTED | EPERM) },
        { "openat2", { 0 }, SAME(ENOSYS) },
        { "chmod", { 0, 0755 }, SAME(ALLOWED) },
        { "chmod", { 0, 02745 }, SAME(REPORTED | EPERM) },
        { "fchmodat2", { 0, 0, 04755 }, SAME(REPORTED | EPERM) },
        { "setxattr", { 0 }, SAME(EOPNOTSUPP) },
        { "lsetxattr", { 0 }, SAME(EOPNOTSUPP) },
        { "fsetxattr", { 0 }, SAME(EOPNOTSUPP) },
        { "setxattrat", { 0 }, SAME(EOPNOTSUPP) },
        { "getxattr", { 0 }, SAME(ALLOWED) },
        { "removexattr", { 0 }, SAME(ALLOWED) },
        { "io_setup", { 1, 0 }, SAME(REPORTED | ENOSYS) },
        /* The query, PER_LINUX, UNAME26, ADDR_NO_RANDOMIZE; READ_IMPLIES_EXEC, MMAP_PAGE_ZERO,
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
        { "socket", { 2, 2, 136 }, SAME(REPORTED | EPERM) },
        { "socket", { 10, 2, HIGH | 136 }, SAME(REPORTED | EPERM) },
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
        /* Other ids than the agent's fail as they do for an ordinary user. -1 keeps an id. */
        { "fchown", { 3, 1000, 1000 }, SAME(ALLOWED) },
        { "fchown", { 3, UINT32_MAX, 1000 }, SAME(ALLOWED) },
        { "fchown", { 3, -1ULL, -1ULL }, SAME(ALLOWED) },
        { "fchown", { 3, 0, 1000 }, SAME(EPERM) },
        { "fchown", { 3, 1000, 0 }, SAME(EPERM) },
        { "fchown", { 3, 1000, HIGH | 999 }, SAME(EPERM) },
        { "chown", { 0, 1001, UINT32_MAX }, SAME(EPERM) },
        { "lchown", { 0, UINT32_MAX, 65534 }, SAME(EPERM) },
        { "fchownat", { 0, 0, 1000, UINT32_MAX }, SAME(ALLOWED) },
        { "fchownat", { 1000, 1000, 0, 1000 }, SAME(EPERM) },
        { "fchownat", { 1000, 1000, 1000, 0 }, SAME(EPERM) },
        { "setuid", { 1000 }, SAME(ALLOWED) },
        { "setgid", { 0 }, SAME(EPERM) },
        { "setreuid", { UINT32_MAX, 1000 }, SAME(ALLOWED) },
        { "setregid", { 1000, 0 }, SAME(EPERM) },
        { "setresuid", { 1000, UINT32_MAX, 1000 }, SAME(ALLOWED) },
        { "setresgid", { 1000, 1000, 1001 }, SAME(EPERM) },
        /* One whole call of each kind. */
        { "io_uring_setup", { 1, 0 }, SAME(REPORTED | ENOSYS) },
        /* PTRACE_TRACEME, PEEKUSR, ATTACH, GETREGSET, INTERRUPT, GET_SYSCALL_INFO */
        { "ptrace", { 0 }, ALLOWED, REPORTED | EPERM },
        { "ptrace", { 3, 1 }, ALLOWED, REPORTED | EPERM },
        { "ptrace", { 16, 1, 0, 0x40 }, ALLOWED, REPORTED | EPERM },
        { "ptrace", { 0x4204, 1, 1, 0x40 }, ALLOWED, REPORTED | EPERM },
        { "ptrace", { 0x4207, 1 }, ALLOWED, REPORTED | EPERM },
        { "ptrace", { 0x420e, 1, 88, 0x40 }, ALLOWED, REPORTED | EPERM },
        /* PTRACE_OLDSETOPTIONS, SETOPTIONS and SEIZE, without and with PTRACE_O_TRACEEXIT */
        { "ptrace", { 21, 1, 0, 0x1f }, ALLOWED, REPORTED | EPERM },
        { "ptrace", { 21, 1, 0, 0x40 }, SAME(REPORTED | EPERM) },
        { "ptrace", { 0x4200, 1, 0, 0x10001f }, ALLOWED, REPORTED | EPERM },
        { "ptrace", { 0x4200, 1, 0, 0x10005f }, SAME(REPORTED | EPERM) },
        { "ptrace", { HIGH | 0x4200, 1, 0, HIGH | 0x40 }, SAME(REPORTED | EPERM) },
        { "ptrace", { 0x4206, 1, 0x40, 0 }, ALLOWED, REPORTED | EPERM },
        { "ptrace", { 0x4206, 1, 0, 0x40 }, SAME(REPORTED | EPERM) },
        /* PTRACE_SET_THREAD_AREA, SECCOMP_GET_FILTER, SECCOMP_GET_METADATA and one of the future */
        { "ptrace", { 26, 1, 0, 0 }, SAME(REPORTED | EPERM) },
        { "ptrace", { 0x420c, 1, 0, 0 }, SAME(REPORTED | EPERM) },
        { "ptrace", { 0x420d, 1, 0, 0 }, SAME(REPORTED | EPERM) },
        { "ptrace", { 0x4213, 1, 0, 0 }, SAME(REPORTED | EPERM) },
        { "process_vm_writev", { 1 }, ALLOWED, REPORTED | EPERM },
        { "pidfd_getfd", { 3, 3 }, SAME(REPORTED | EPERM) },
        { "unshare", { 0x10000000 }, SAME(REPORTED | EPERM) },
        { "kcmp", { 0 }, SAME(EPERM) },
        { "shmget", { 0 }, ALLOWED, REPORTED | ENOSYS },
        { "landlock_restrict_self", { 0 }, SAME(ALLOWED) },
};

static void test_arguments(void **state) {
        (void)state;
        FOREACH_BUILTIN(preset, notify)
        for (size_t i = 0; i < ELEMENTSOF(samples); i++) {
                const Sample *s = &samples[i];
                int answer = preset == SYSCALLS_STRICT ? s->in_strict : s->in_default;
                int nr = number_of(s->name);

                if (nr < 0)
                        continue;
                if (run_with(syscalls_builtin(preset, notify), nr, s->args).value !=
                    return_value(answer, notify))
                        fail_msg("%s, row %zu, preset %u", s->name, i, preset);
        }
}

/* The launcher knows only the number of a reported call. */
static void test_reports_have_one_errno(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(samples); i++)
                if ((samples[i].in_strict & REPORTED) && number_of(samples[i].name) >= 0)
                        assert_int_equal(syscall_refusal((unsigned)number_of(samples[i].name)),
                                         samples[i].in_strict & ~REPORTED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_arguments),
                cmocka_unit_test(test_reports_have_one_errno),
        };

        return cmocka_run_group_tests_name("syscalls-arguments", tests, NULL, NULL);
}
