/* SPDX-License-Identifier: Apache-2.0 */
/* The group of each system call, and its action in each preset.
 *
 * The calling code is hostile, has no capability, and can get none. A call is refused for one of
 * these reasons:
 *
 * - It reaches beyond the namespaces (@keyring, @handle, @clock).
 * - It creates namespaces (@namespace).
 * - It has been a rich source of kernel holes, and ordinary programs do not need it (@io_uring,
 *   @bpf, @userfault, @perf).
 * - The kernel would refuse it anyway, and a report explains why a program fails (@mount, @module).
 *
 * Calls that only narrow rights (Landlock, seccomp, capset) are allowed. Calls that ordinary
 * programs make and that fail harmlessly without a capability (setuid, chown) are allowed too.
 * Debuggers and sanitizers use @ptrace. With it, a command reaches only processes whose
 * /proc/PID/mem it can write anyway. init and its monitors are not dumpable, and host processes
 * have no PID inside.
 *
 * A refused call fails with ENOSYS if libraries have a fallback, and with EPERM otherwise. A group
 * is allowed or refused as a whole, so that --allow-syscall @file never allows a call that nobody
 * considered. @ptrace is the only exception.
 *
 * strict omits calls that an agent's commands rarely use. */
#include "policy/syscalls/table.h"

const SyscallGroup syscall_groups[GROUP_MAX] = {
#define GROUP_ROW(id, name, help) [GROUP_##id] = { name, help },
        SYSCALL_GROUPS(GROUP_ROW)
#undef GROUP_ROW
};

/* Versions of clang-format disagree about a body in braces. */
/* clang-format off */
#define GATED_ROW(group, name, in_default, in_strict, gate) \
        { name, GROUP_##group, \
          { [SYSCALLS_DEFAULT] = (in_default), [SYSCALLS_STRICT] = (in_strict) }, (gate) }
/* clang-format on */
#define ROW(group, name, in_default, in_strict)                                                    \
        GATED_ROW(group, name, in_default, in_strict, GATE_NONE)
static_assert(SYSCALLS_PRESET_MAX == 2, "a row has an action for each preset");

#define ALLOW(group, name) ROW(group, name, ACTION_ALLOW, ACTION_ALLOW)
#define NOT_STRICT(group, name) ROW(group, name, ACTION_ALLOW, ACTION_NOTIFY_ENOSYS)
#define CHECK(group, name, check) ROW(group, name, ACTION_CHECK_##check, ACTION_CHECK_##check)
#define CHECK_STRICTER(group, name, check)                                                         \
        ROW(group, name, ACTION_CHECK_##check, ACTION_CHECK_##check##_STRICT)
#define EPERM_(group, name) ROW(group, name, ACTION_EPERM, ACTION_EPERM)
#define EOPNOTSUPP_(group, name) ROW(group, name, ACTION_EOPNOTSUPP, ACTION_EOPNOTSUPP)
#define ENOSYS_(group, name) ROW(group, name, ACTION_ENOSYS, ACTION_ENOSYS)
#define REPORT_EPERM(group, name) ROW(group, name, ACTION_NOTIFY_EPERM, ACTION_NOTIFY_EPERM)
#define REPORT_ENOSYS(group, name) ROW(group, name, ACTION_NOTIFY_ENOSYS, ACTION_NOTIFY_ENOSYS)
/* No policy makes these calls work, so the report suggests no grant. */
#define REPORT_OWN(group, name)                                                                    \
        GATED_ROW(group, name, ACTION_NOTIFY_EPERM, ACTION_NOTIFY_EPERM, GATE_OWN)
#define REPORT_HOST(group, name)                                                                   \
        GATED_ROW(group, name, ACTION_NOTIFY_EPERM, ACTION_NOTIFY_EPERM, GATE_HOST)

const SyscallRow syscall_rows[] = {
        /* None of these can be denied. After the filter is loaded, the launcher's child still hands
         * over the notification fd, moves its own fds into place and executes init. Nobody could
         * answer a notification before that. init runs under the filter too. Only the kernel's own
         * trampolines call uretprobe and uprobe. A refusal would kill a program that the host is
         * probing. That concerns Linux 6.11 to 6.13; later kernels do not ask the filter. */
        ALLOW(BASIC, "arch_prctl"),
        ALLOW(BASIC, "brk"),
        ALLOW(BASIC, "close"),
        ALLOW(BASIC, "close_range"),
        ALLOW(BASIC, "dup2"),
        ALLOW(BASIC, "dup3"),
        ALLOW(BASIC, "execve"),
        ALLOW(BASIC, "execveat"),
        ALLOW(BASIC, "exit"),
        ALLOW(BASIC, "exit_group"),
        ALLOW(BASIC, "faccessat"),
        ALLOW(BASIC, "fcntl"),
        ALLOW(BASIC, "futex"),
        ALLOW(BASIC, "getpid"),
        ALLOW(BASIC, "kill"),
        ALLOW(BASIC, "mmap"),
        ALLOW(BASIC, "mprotect"),
        ALLOW(BASIC, "munmap"),
        ALLOW(BASIC, "ppoll"),
        ALLOW(BASIC, "read"),
        ALLOW(BASIC, "recvfrom"),
        ALLOW(BASIC, "restart_syscall"),
        ALLOW(BASIC, "rseq"),
        ALLOW(BASIC, "rt_sigaction"),
        ALLOW(BASIC, "rt_sigprocmask"),
        ALLOW(BASIC, "rt_sigreturn"),
        ALLOW(BASIC, "sendmsg"),
        ALLOW(BASIC, "sendto"),
        ALLOW(BASIC, "set_robust_list"),
        ALLOW(BASIC, "set_tid_address"),
        ALLOW(BASIC, "setpgid"),
        ALLOW(BASIC, "signalfd4"),
        ALLOW(BASIC, "uprobe"),
        ALLOW(BASIC, "uretprobe"),
        ALLOW(BASIC, "wait4"),
        ALLOW(BASIC, "write"),
        CHECK(BASIC, "clone", CLONE),
        CHECK_STRICTER(BASIC, "ioctl", IOCTL),
        CHECK(BASIC, "prctl", PRCTL),

        ALLOW(FILE, "access"),
        ALLOW(FILE, "chdir"),
        CHECK(FILE, "chmod", MODE_ARG1),
        CHECK(FILE, "chown", IDS_ARG1_2),
        CHECK(FILE, "creat", MODE_ARG1),
        ALLOW(FILE, "faccessat2"),
        ALLOW(FILE, "fchdir"),
        CHECK(FILE, "fchmod", MODE_ARG1),
        CHECK(FILE, "fchmodat", MODE_ARG2),
        CHECK(FILE, "fchmodat2", MODE_ARG2),
        CHECK(FILE, "fchown", IDS_ARG1_2),
        CHECK(FILE, "fchownat", IDS_ARG2_3),
        ALLOW(FILE, "fgetxattr"),
        ALLOW(FILE, "file_getattr"),
        EOPNOTSUPP_(FILE, "file_setattr"), /* sets the attributes that the refused ioctls set */
        ALLOW(FILE, "flistxattr"),
        ALLOW(FILE, "fremovexattr"),
        ALLOW(FILE, "fstat"),
        ALLOW(FILE, "fstatfs"),
        ALLOW(FILE, "futimesat"),
        ALLOW(FILE, "getcwd"),
        ALLOW(FILE, "getdents"),
        ALLOW(FILE, "getdents64"),
        ALLOW(FILE, "getxattr"),
        ALLOW(FILE, "getxattrat"),
        ALLOW(FILE, "inotify_add_watch"),
        ALLOW(FILE, "inotify_init"),
        ALLOW(FILE, "inotify_init1"),
        ALLOW(FILE, "inotify_rm_watch"),
        CHECK(FILE, "lchown", IDS_ARG1_2),
        ALLOW(FILE, "lgetxattr"),
        ALLOW(FILE, "link"),
        ALLOW(FILE, "linkat"),
        ALLOW(FILE, "listxattr"),
        ALLOW(FILE, "listxattrat"),
        ALLOW(FILE, "llistxattr"),
        ALLOW(FILE, "lremovexattr"),
        ALLOW(FILE, "lstat"),
        ALLOW(FILE, "mkdir"),
        ALLOW(FILE, "mkdirat"),
        ALLOW(FILE, "newfstatat"),
        CHECK(FILE, "open", OPEN),
        CHECK(FILE, "openat", OPENAT),
        ALLOW(FILE, "readlink"),
        ALLOW(FILE, "readlinkat"),
        ALLOW(FILE, "removexattr"),
        ALLOW(FILE, "removexattrat"),
        ALLOW(FILE, "rename"),
        ALLOW(FILE, "renameat"),
        ALLOW(FILE, "renameat2"),
        ALLOW(FILE, "rmdir"),
        ALLOW(FILE, "stat"),
        ALLOW(FILE, "statfs"),
        ALLOW(FILE, "statx"),
        ALLOW(FILE, "symlink"),
        ALLOW(FILE, "symlinkat"),
        ALLOW(FILE, "truncate"),
        ALLOW(FILE, "umask"),
        ALLOW(FILE, "unlink"),
        ALLOW(FILE, "unlinkat"),
        ALLOW(FILE, "utime"),
        ALLOW(FILE, "utimensat"),
        ALLOW(FILE, "utimes"),
        CHECK(FILE, "mknod", MKNOD),
        CHECK(FILE, "mknodat", MKNODAT),

        /* vmsplice lends pages of the caller's memory to a pipe. Many kernel exploits use it, and
         * hardly any program. */
        ALLOW(IO, "cachestat"),
        ALLOW(IO, "copy_file_range"),
        ALLOW(IO, "dup"),
        ALLOW(IO, "epoll_create"),
        ALLOW(IO, "epoll_create1"),
        ALLOW(IO, "epoll_ctl"),
        ALLOW(IO, "epoll_pwait"),
        ALLOW(IO, "epoll_pwait2"),
        ALLOW(IO, "epoll_wait"),
        ALLOW(IO, "eventfd"),
        ALLOW(IO, "eventfd2"),
        ALLOW(IO, "fadvise64"),
        ALLOW(IO, "fallocate"),
        ALLOW(IO, "fdatasync"),
        ALLOW(IO, "flock"),
        ALLOW(IO, "fsync"),
        ALLOW(IO, "ftruncate"),
        ALLOW(IO, "lseek"),
        ALLOW(IO, "pipe"),
        ALLOW(IO, "pipe2"),
        ALLOW(IO, "poll"),
        ALLOW(IO, "pread64"),
        ALLOW(IO, "preadv"),
        ALLOW(IO, "preadv2"),
        ALLOW(IO, "pselect6"),
        ALLOW(IO, "pwrite64"),
        ALLOW(IO, "pwritev"),
        ALLOW(IO, "pwritev2"),
        ALLOW(IO, "readahead"),
        ALLOW(IO, "readv"),
        ALLOW(IO, "select"),
        ALLOW(IO, "sendfile"),
        ALLOW(IO, "signalfd"),
        ALLOW(IO, "splice"),
        ALLOW(IO, "sync"),
        ALLOW(IO, "sync_file_range"),
        ALLOW(IO, "syncfs"),
        ALLOW(IO, "tee"),
        ALLOW(IO, "writev"),
        NOT_STRICT(IO, "vmsplice"),

        ALLOW(PROCESS, "fork"),
        ALLOW(PROCESS, "getcpu"),
        ALLOW(PROCESS, "getpgid"),
        ALLOW(PROCESS, "getpgrp"),
        ALLOW(PROCESS, "getppid"),
        ALLOW(PROCESS, "getpriority"),
        ALLOW(PROCESS, "getrandom"),
        ALLOW(PROCESS, "getrlimit"),
        ALLOW(PROCESS, "getrusage"),
        ALLOW(PROCESS, "getsid"),
        ALLOW(PROCESS, "gettid"),
        ALLOW(PROCESS, "pidfd_open"),
        ALLOW(PROCESS, "pidfd_send_signal"),
        CHECK(PROCESS, "prlimit64", PRLIMIT),
        ALLOW(PROCESS, "setpriority"),
        CHECK(PROCESS, "setrlimit", SETRLIMIT),
        ALLOW(PROCESS, "setsid"),
        ALLOW(PROCESS, "sysinfo"),
        ALLOW(PROCESS, "times"),
        ALLOW(PROCESS, "uname"),
        ALLOW(PROCESS, "vfork"),
        ALLOW(PROCESS, "waitid"),
        CHECK_STRICTER(PROCESS, "personality", PERSONALITY),

        /* Without a capability these calls change nothing or fail cleanly. Login-like programs,
         * test suites and package managers use them, and expect EPERM for another user's id. */
        ALLOW(IDENTITY, "capget"),
        ALLOW(IDENTITY, "capset"),
        ALLOW(IDENTITY, "getegid"),
        ALLOW(IDENTITY, "geteuid"),
        ALLOW(IDENTITY, "getgid"),
        ALLOW(IDENTITY, "getgroups"),
        ALLOW(IDENTITY, "getresgid"),
        ALLOW(IDENTITY, "getresuid"),
        ALLOW(IDENTITY, "getuid"),
        ALLOW(IDENTITY, "setfsgid"),
        ALLOW(IDENTITY, "setfsuid"),
        CHECK(IDENTITY, "setgid", ID_ARG0),
        ALLOW(IDENTITY, "setgroups"),
        CHECK(IDENTITY, "setregid", IDS_ARG0_1),
        CHECK(IDENTITY, "setresgid", IDS_ARG0_2),
        CHECK(IDENTITY, "setresuid", IDS_ARG0_2),
        CHECK(IDENTITY, "setreuid", IDS_ARG0_1),
        CHECK(IDENTITY, "setuid", ID_ARG0),

        ALLOW(MEMORY, "madvise"),
        ALLOW(MEMORY, "map_shadow_stack"),
        ALLOW(MEMORY, "membarrier"),
        ALLOW(MEMORY, "memfd_create"),
        ALLOW(MEMORY, "mincore"),
        ALLOW(MEMORY, "mlock"),
        ALLOW(MEMORY, "mlock2"),
        ALLOW(MEMORY, "mlockall"),
        ALLOW(MEMORY, "mremap"),
        ALLOW(MEMORY, "mseal"),
        ALLOW(MEMORY, "msync"),
        ALLOW(MEMORY, "munlock"),
        ALLOW(MEMORY, "munlockall"),
        ALLOW(MEMORY, "pkey_alloc"),
        ALLOW(MEMORY, "pkey_free"),
        ALLOW(MEMORY, "pkey_mprotect"),
        ALLOW(MEMORY, "process_madvise"),

        ALLOW(SIGNAL, "pause"),
        ALLOW(SIGNAL, "rt_sigpending"),
        ALLOW(SIGNAL, "rt_sigqueueinfo"),
        ALLOW(SIGNAL, "rt_sigsuspend"),
        ALLOW(SIGNAL, "rt_sigtimedwait"),
        ALLOW(SIGNAL, "rt_tgsigqueueinfo"),
        ALLOW(SIGNAL, "sigaltstack"),
        ALLOW(SIGNAL, "tgkill"),
        ALLOW(SIGNAL, "tkill"),

        ALLOW(TIME, "alarm"),
        ALLOW(TIME, "clock_getres"),
        ALLOW(TIME, "clock_gettime"),
        ALLOW(TIME, "clock_nanosleep"),
        ALLOW(TIME, "getitimer"),
        ALLOW(TIME, "gettimeofday"),
        ALLOW(TIME, "nanosleep"),
        ALLOW(TIME, "setitimer"),
        ALLOW(TIME, "time"),
        ALLOW(TIME, "timer_create"),
        ALLOW(TIME, "timer_delete"),
        ALLOW(TIME, "timer_getoverrun"),
        ALLOW(TIME, "timer_gettime"),
        ALLOW(TIME, "timer_settime"),
        ALLOW(TIME, "timerfd_create"),
        ALLOW(TIME, "timerfd_gettime"),
        ALLOW(TIME, "timerfd_settime"),

        ALLOW(SCHED, "futex_requeue"),
        ALLOW(SCHED, "futex_wait"),
        ALLOW(SCHED, "futex_waitv"),
        ALLOW(SCHED, "futex_wake"),
        ALLOW(SCHED, "get_robust_list"),
        ALLOW(SCHED, "ioprio_get"),
        ALLOW(SCHED, "ioprio_set"),
        ALLOW(SCHED, "sched_get_priority_max"),
        ALLOW(SCHED, "sched_get_priority_min"),
        ALLOW(SCHED, "sched_getaffinity"),
        ALLOW(SCHED, "sched_getattr"),
        ALLOW(SCHED, "sched_getparam"),
        ALLOW(SCHED, "sched_getscheduler"),
        ALLOW(SCHED, "sched_rr_get_interval"),
        ALLOW(SCHED, "sched_setaffinity"),
        ALLOW(SCHED, "sched_setattr"),
        ALLOW(SCHED, "sched_setparam"),
        ALLOW(SCHED, "sched_setscheduler"),
        ALLOW(SCHED, "sched_yield"),

        ALLOW(NETWORK, "accept"),
        ALLOW(NETWORK, "accept4"),
        ALLOW(NETWORK, "bind"),
        ALLOW(NETWORK, "connect"),
        ALLOW(NETWORK, "getpeername"),
        ALLOW(NETWORK, "getsockname"),
        ALLOW(NETWORK, "getsockopt"),
        ALLOW(NETWORK, "listen"),
        ALLOW(NETWORK, "recvmmsg"),
        ALLOW(NETWORK, "recvmsg"),
        ALLOW(NETWORK, "sendmmsg"),
        ALLOW(NETWORK, "setsockopt"),
        ALLOW(NETWORK, "shutdown"),
        CHECK_STRICTER(NETWORK, "socket", SOCKET),
        CHECK_STRICTER(NETWORK, "socketpair", SOCKET),

        ALLOW(SECURITY, "landlock_add_rule"),
        ALLOW(SECURITY, "landlock_create_ruleset"),
        ALLOW(SECURITY, "landlock_restrict_self"),
        ALLOW(SECURITY, "lsm_get_self_attr"),
        ALLOW(SECURITY, "lsm_list_modules"),
        CHECK(SECURITY, "seccomp", SECCOMP),

        NOT_STRICT(MQUEUE, "mq_getsetattr"),
        NOT_STRICT(MQUEUE, "mq_notify"),
        NOT_STRICT(MQUEUE, "mq_open"),
        NOT_STRICT(MQUEUE, "mq_timedreceive"),
        NOT_STRICT(MQUEUE, "mq_timedsend"),
        NOT_STRICT(MQUEUE, "mq_unlink"),

        NOT_STRICT(NUMA, "get_mempolicy"),
        NOT_STRICT(NUMA, "mbind"),
        NOT_STRICT(NUMA, "migrate_pages"),
        NOT_STRICT(NUMA, "move_pages"),
        NOT_STRICT(NUMA, "set_mempolicy"),
        NOT_STRICT(NUMA, "set_mempolicy_home_node"),

        NOT_STRICT(SYSV_IPC, "msgctl"),
        NOT_STRICT(SYSV_IPC, "msgget"),
        NOT_STRICT(SYSV_IPC, "msgrcv"),
        NOT_STRICT(SYSV_IPC, "msgsnd"),
        NOT_STRICT(SYSV_IPC, "semctl"),
        NOT_STRICT(SYSV_IPC, "semget"),
        NOT_STRICT(SYSV_IPC, "semop"),
        NOT_STRICT(SYSV_IPC, "semtimedop"),
        NOT_STRICT(SYSV_IPC, "shmat"),
        NOT_STRICT(SYSV_IPC, "shmctl"),
        NOT_STRICT(SYSV_IPC, "shmdt"),
        NOT_STRICT(SYSV_IPC, "shmget"),

        /* fs.aio-max-nr is one count for the whole host: a sandbox that uses it up would stop
         * databases outside. ENOSYS is the answer of a kernel without CONFIG_AIO. */
        REPORT_ENOSYS(AIO, "io_cancel"),
        REPORT_ENOSYS(AIO, "io_destroy"),
        REPORT_ENOSYS(AIO, "io_getevents"),
        REPORT_ENOSYS(AIO, "io_pgetevents"),
        REPORT_ENOSYS(AIO, "io_setup"),
        REPORT_ENOSYS(AIO, "io_submit"),

        REPORT_EPERM(BPF, "bpf"),

        /* The adjtimex pair can also read, so programs call it without setting a clock. The C
         * libraries need neither. */
        REPORT_HOST(CLOCK, "clock_settime"),
        REPORT_HOST(CLOCK, "settimeofday"),
        EPERM_(CLOCK, "adjtimex"),
        EPERM_(CLOCK, "clock_adjtime"),

        REPORT_EPERM(FANOTIFY, "fanotify_init"),
        REPORT_EPERM(FANOTIFY, "fanotify_mark"),

        /* systemd and glib ask for a file handle to detect mount points, and work without it. */
        REPORT_HOST(HANDLE, "open_by_handle_at"),
        EPERM_(HANDLE, "name_to_handle_at"),

        /* libuv, and therefore node, probes io_uring_setup. */
        REPORT_ENOSYS(IO_URING, "io_uring_enter"),
        REPORT_ENOSYS(IO_URING, "io_uring_register"),
        REPORT_ENOSYS(IO_URING, "io_uring_setup"),

        REPORT_HOST(KEXEC, "kexec_file_load"),
        REPORT_HOST(KEXEC, "kexec_load"),

        /* ENOSYS is the answer of a kernel without CONFIG_KEYS; Kerberos and PAM then fall back. */
        REPORT_ENOSYS(KEYRING, "add_key"),
        REPORT_ENOSYS(KEYRING, "keyctl"),
        REPORT_ENOSYS(KEYRING, "request_key"),

        REPORT_HOST(MODULE, "delete_module"),
        REPORT_HOST(MODULE, "finit_module"),
        REPORT_HOST(MODULE, "init_module"),

        /* libmount tries the last two before /proc/self/mountinfo, which has the same contents. */
        REPORT_OWN(MOUNT, "chroot"),
        REPORT_OWN(MOUNT, "fsconfig"),
        REPORT_OWN(MOUNT, "fsmount"),
        REPORT_OWN(MOUNT, "fsopen"),
        REPORT_OWN(MOUNT, "fspick"),
        REPORT_OWN(MOUNT, "mount"),
        REPORT_OWN(MOUNT, "mount_setattr"),
        REPORT_OWN(MOUNT, "move_mount"),
        REPORT_EPERM(MOUNT, "open_tree"),
        REPORT_EPERM(MOUNT, "open_tree_attr"),
        REPORT_OWN(MOUNT, "pivot_root"),
        REPORT_OWN(MOUNT, "umount2"),
        ENOSYS_(MOUNT, "listmount"),
        ENOSYS_(MOUNT, "statmount"),

        /* clone3 has its flags in memory, which a filter cannot read. Every C library falls back on
         * clone. */
        REPORT_OWN(NAMESPACE, "setns"),
        REPORT_EPERM(NAMESPACE, "unshare"),
        ENOSYS_(NAMESPACE, "clone3"),

        REPORT_EPERM(PERF, "perf_event_open"),

        /* Scripts set the host names, and processes label themselves. Neither minds a refusal. */
        REPORT_HOST(PRIVILEGED, "acct"),
        REPORT_HOST(PRIVILEGED, "ioperm"),
        REPORT_HOST(PRIVILEGED, "iopl"),
        REPORT_EPERM(PRIVILEGED, "quotactl"),
        REPORT_EPERM(PRIVILEGED, "quotactl_fd"),
        REPORT_HOST(PRIVILEGED, "syslog"),
        REPORT_HOST(PRIVILEGED, "vhangup"),
        EPERM_(PRIVILEGED, "lsm_set_self_attr"),
        EPERM_(PRIVILEGED, "setdomainname"),
        EPERM_(PRIVILEGED, "sethostname"),

        /* pidfd_getfd stays refused. A pidfd can name a process of the host (SO_PEERPIDFD). While a
         * process ends, its memory is gone before its descriptors: the kernel then forgets that it
         * was not dumpable. Somebody could take a monitor's control socket in that moment. Graphics
         * drivers ask kcmp whether two descriptors are the same file, and work without it. */
        REPORT_EPERM(PTRACE, "pidfd_getfd"),
        ROW(PTRACE, "process_vm_readv", ACTION_ALLOW, ACTION_NOTIFY_EPERM),
        ROW(PTRACE, "process_vm_writev", ACTION_ALLOW, ACTION_NOTIFY_EPERM),
        ROW(PTRACE, "ptrace", ACTION_CHECK_PTRACE, ACTION_NOTIFY_EPERM),
        EPERM_(PTRACE, "kcmp"),

        /* memfd_secret removes pages from the kernel's direct map, which slows the whole host.
         * openat2 has a new file's mode in memory, which a filter cannot check for set-id bits;
         * callers fall back on openat. The next three create 16-bit and 32-bit segments. */
        ENOSYS_(RARE, "memfd_secret"),
        ENOSYS_(RARE, "openat2"),
        ENOSYS_(RARE, "get_thread_area"),
        ENOSYS_(RARE, "modify_ldt"),
        ENOSYS_(RARE, "set_thread_area"),
        ENOSYS_(RARE, "process_mrelease"),

        REPORT_HOST(REBOOT, "reboot"),

        REPORT_HOST(SWAP, "swapoff"),
        REPORT_HOST(SWAP, "swapon"),

        REPORT_EPERM(USERFAULT, "userfaultfd"),

        /* Setting system.posix_acl_access is a chmod with its mode in memory, and
         * system.posix_acl_default replaces the umask of later creators. The attribute's name is in
         * memory too, and another thread could change it after any check. So all names are refused,
         * even the harmless user.*. cp, install and mv call these for each file and take EOPNOTSUPP
         * for a file system without ACLs. One report for each file would cost more than the
         * copy. */
        EOPNOTSUPP_(XATTR, "fsetxattr"),
        EOPNOTSUPP_(XATTR, "lsetxattr"),
        EOPNOTSUPP_(XATTR, "setxattr"),
        EOPNOTSUPP_(XATTR, "setxattrat"),

        /* remap_file_pages is only an emulation by mmap since Linux 4.0. */
        ENOSYS_(OBSOLETE, "_sysctl"),
        ENOSYS_(OBSOLETE, "afs_syscall"),
        ENOSYS_(OBSOLETE, "create_module"),
        ENOSYS_(OBSOLETE, "epoll_ctl_old"),
        ENOSYS_(OBSOLETE, "epoll_wait_old"),
        ENOSYS_(OBSOLETE, "get_kernel_syms"),
        ENOSYS_(OBSOLETE, "getpmsg"),
        ENOSYS_(OBSOLETE, "lookup_dcookie"),
        ENOSYS_(OBSOLETE, "nfsservctl"),
        ENOSYS_(OBSOLETE, "putpmsg"),
        ENOSYS_(OBSOLETE, "query_module"),
        ENOSYS_(OBSOLETE, "remap_file_pages"),
        ENOSYS_(OBSOLETE, "security"),
        ENOSYS_(OBSOLETE, "sysfs"),
        ENOSYS_(OBSOLETE, "tuxcall"),
        ENOSYS_(OBSOLETE, "uselib"),
        ENOSYS_(OBSOLETE, "ustat"),
        ENOSYS_(OBSOLETE, "vserver"),

};
const size_t syscall_rows_count = ELEMENTSOF(syscall_rows);
