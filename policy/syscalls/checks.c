/* SPDX-License-Identifier: Apache-2.0 */
/* The argument checks of system calls that are only partly safe.
 *
 * The kernel reads at most 32 bits of each of these arguments, or of its flags (clone:
 * lower_32_bits() in kernel/fork.c). seccomp hands the filter 64 bits. Only the low half may be
 * compared; otherwise any value with a higher bit set would pass (CVE-2019-10063). */
#include "policy/syscalls/table.h"

#define RANGES(list) .ranges = (list), .count = ELEMENTSOF(list)
/* Versions of clang-format disagree about a body in braces. */
/* clang-format off */
#define VALUE(value, action) { (value), (value), ACTION_##action }
#define SPAN(first, last, action) { (first), (last), ACTION_##action }
/* clang-format on */

#define WHOLE 0xffffffffU /* the low 32 bits */

/* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. CLONE_NEWTIME (0x80) is
 * missing: clone(2) has the exit signal in its low eight bits and cannot create a time namespace.
 */
#define CLONE_NAMESPACES 0x7e020000U

static const CheckRange only_zero[] = { VALUE(0, ALLOW) };

/* Type and number of an ioctl. The upper half has its direction and its size, and newer kernels may
 * raise the size. */
#define REQUEST 0xffffU

/* Allowed requests, by type and number. An allowlist is necessary, because each file system brings
 * its own requests. A snapshot of btrfs or bcachefs would show hidden files, since it contains no
 * mount of the sandbox. With the flag by which ext4 ignores case, ".GIT" would be the host's
 * ".git". Most files answer an unknown request with ENOTTY, so programs expect it.
 *
 * Some omissions are not obvious. FS_IOC_SETVERSION (0x7602) forges a file handle. FS_IOC_SETFLAGS
 * (0x6602) and FS_IOC_FSSETXATTR (0x5820) set the case flag. fscrypt, fs-verity and ext4's exchange
 * of extents are omitted, and so are SIOCGIFBR and others that load modules.
 *
 * Refused requests of terminals: TIOCSTI and TIOCLINUX type into a terminal, where the caller's
 * shell reads it. TIOCCONS takes the console's output. TIOCSETD makes the kernel load any line
 * discipline, for anybody with a pty (CVE-2017-2636, CVE-2020-14416).
 *
 * Refused requests of pidfds: SO_PEERPIDFD can return the pidfd of a host process that serves a
 * socket inside. The user namespace of that process proves an identity to a keeper (rpc/peer.h). */
static const CheckRange ioctl_requests[] = {
        VALUE(0x0002, ALLOW),        /* FIGETBSZ */
        VALUE(0x1500, ALLOW),        /* FS_IOC_GETFSUUID */
        SPAN(0x2100, 0x2104, ALLOW), /* SECCOMP_IOCTL_NOTIF_*: the keeper runs under this filter too
                                      */
        SPAN(0x2400, 0x24ff, ALLOW), /* PERF_EVENT_IOC_*: if perf_event_open is granted */
        VALUE(0x5200, ALLOW),        /* RNDGETENTCNT */
        SPAN(0x5400, 0x5411, ALLOW), /* terminals, FIONREAD, FIOCLEX, FIONBIO */
        VALUE(0x5412, EPERM),        /* TIOCSTI */
        SPAN(0x5413, 0x541b, ALLOW), VALUE(0x541c, EPERM), /* TIOCLINUX */
        VALUE(0x541d, EPERM),                              /* TIOCCONS */
        SPAN(0x541e, 0x5422, ALLOW), VALUE(0x5423, EPERM), /* TIOCSETD */
        SPAN(0x5424, 0x54ff, ALLOW), VALUE(0x581e, ALLOW), /* XFS_IOC_DIOINFO */
        VALUE(0x581f, ALLOW),                              /* FS_IOC_FSGETXATTR */
        VALUE(0x587e, ALLOW),                              /* XFS_IOC_FSGEOMETRY */
        VALUE(0x6601, ALLOW),                              /* FS_IOC_GETFLAGS */
        VALUE(0x660b, ALLOW),                              /* FS_IOC_FIEMAP */
        VALUE(0x7601, ALLOW),                              /* FS_IOC_GETVERSION */
        SPAN(0x8900, 0x893f, ALLOW),                       /* sockets and interfaces */
        VALUE(0x8942, ALLOW),                              /* SIOCGIFTXQLEN */
        VALUE(0x8946, ALLOW),                              /* SIOCETHTOOL */
        SPAN(0x8953, 0x8955, ALLOW),                       /* ARP */
        VALUE(0x8970, ALLOW),                              /* SIOCGIFMAP */
        SPAN(0x8a01, 0x8a02, ALLOW),                       /* EPIOC[SG]PARAMS */
        VALUE(0x9409, ALLOW),                              /* FICLONE */
        VALUE(0x940d, ALLOW),                              /* FICLONERANGE */
        VALUE(0x9436, ALLOW),                              /* FIDEDUPERANGE */
        SPAN(0xaa00, 0xaaff, ALLOW),                       /* UFFDIO_*: if userfaultfd is granted */
        SPAN(0xb701, 0xb704, ALLOW),                       /* NS_GET_USERNS to NS_GET_OWNER_UID */
        SPAN(0xff01, 0xff0a, EPERM), /* PIDFD_GET_CGROUP_NAMESPACE to PIDFD_GET_UTS_NAMESPACE */
        VALUE(0xff0b, ALLOW),        /* PIDFD_GET_INFO */
};

/* Interfaces of the network. A socket that was passed in as stdin belongs to the host's network and
 * can list its interfaces, whatever its family. Under strict, there is no netlink socket either. */
static const CheckRange interface_requests[] = { SPAN(0x8910, 0x89ff, ENOTTY) };

/* The ids that a sandbox has: SYSCALLS_ID, and -1 for "unchanged". For every other id, which the
 * user namespace does not have, the kernel returns EINVAL. But programs such as fakeroot and libuv
 * expect EPERM, which an ordinary user gets for another id. */
#define IDS(action)                                                                                \
        { VALUE(SYSCALLS_ID, action), VALUE(WHOLE, action), }
static const CheckRange id_last[] = IDS(ALLOW);
static const CheckRange ids_then_arg1[] = IDS(CHECK_ID_ARG1);
static const CheckRange ids_then_arg2[] = IDS(CHECK_ID_ARG2);
static const CheckRange ids_then_arg3[] = IDS(CHECK_ID_ARG3);
static const CheckRange ids_then_arg1_2[] = IDS(CHECK_IDS_ARG1_2);

/* S_IFMT: none (a regular file), S_IFIFO, S_IFREG, S_IFSOCK. Devices are refused, even one that the
 * kernel would create: 0:0 is overlayfs's whiteout, which needs no privilege since Linux 5.8. */
static const CheckRange file_types[] = {
        VALUE(0, CHECK_MODE_ARG1),
        VALUE(0x1000, CHECK_MODE_ARG1),
        VALUE(0x8000, CHECK_MODE_ARG1),
        VALUE(0xc000, CHECK_MODE_ARG1),
};
static const CheckRange file_types_at[] = {
        VALUE(0, CHECK_MODE_ARG2),
        VALUE(0x1000, CHECK_MODE_ARG2),
        VALUE(0x8000, CHECK_MODE_ARG2),
        VALUE(0xc000, CHECK_MODE_ARG2),
};

/* O_CREAT and __O_TMPFILE, on both architectures. Without them the kernel ignores the mode, and
 * programs leave garbage in its register (WILL_CREATE() in fs/open.c). */
#define CREATES 0x400040U
/* S_ISUID and S_ISGID. On the host, such a file would run as the workspace's owner or group, for
 * anybody who starts it; nosuid holds only inside. A file that is created with S_ISGID and without
 * S_IXGRP keeps the bit when it is written. mkdir(2) ignores these bits, and passes on a
 * directory's S_ISGID by itself. */
#define SET_ID 0xc00U

/* PER_LINUX (also with UNAME26 and ADDR_NO_RANDOMIZE), and the query of the present one. A program
 * without address randomisation harms only itself, and thread sanitizers and debuggers need that.
 * READ_IMPLIES_EXEC makes data executable, and MMAP_PAGE_ZERO has been used against the kernel.
 * Personalities of other systems change the meaning of system calls. PER_LINUX32 is useless because
 * 32-bit programs do not run. */
static const CheckRange personalities[] = {
        VALUE(0x0000000, ALLOW), VALUE(0x0020000, ALLOW),  VALUE(0x0040000, ALLOW),
        VALUE(0x0060000, ALLOW), VALUE(0xffffffff, ALLOW),
};

static const CheckRange personality_query[] = { VALUE(0xffffffff, ALLOW) };

/* Allowed options. An allowlist is necessary, since each kernel brings options that nobody has
 * judged; EINVAL is the answer of an older kernel.
 *
 * Omitted, apart from those of other architectures: PR_SET_MM forges the command line and the
 * program's path in /proc. PR_SCHED_CORE idles the sibling threads of the host's cores.
 * PR_SET_MEMORY_MERGE reveals the contents of other processes' memory. PR_TASK_PERF_EVENTS_*,
 * PR_MCE_KILL and PR_SET_IO_FLUSHER are omitted too. No program needs PR_TIMER_CREATE_RESTORE_IDS
 * or PR_FUTEX_HASH.
 *
 * PR_SET_SECCOMP is allowed: it has no flags, so it cannot create a listener. */
static const CheckRange prctl_options[] = {
        SPAN(1, 8, ALLOW),   /* PR_SET_PDEATHSIG to PR_SET_KEEPCAPS */
        SPAN(13, 16, ALLOW), /* PR_GET_TIMING to PR_GET_NAME */
        SPAN(21, 30, ALLOW), /* PR_GET_SECCOMP to PR_GET_TIMERSLACK: CAPBSET, TSC, SECUREBITS */
        VALUE(35, EPERM),    /* PR_SET_MM */
        SPAN(36, 42, ALLOW), /* PR_SET_CHILD_SUBREAPER to PR_GET_THP_DISABLE: NO_NEW_PRIVS */
        VALUE(47, ALLOW),    /* PR_CAP_AMBIENT */
        SPAN(50, 56, ALLOW), /* PR_SVE_SET_VL to PR_GET_TAGGED_ADDR_CTRL: SPECULATION_CTRL */
        SPAN(59, 61, ALLOW), /* PR_SET_SYSCALL_USER_DISPATCH, PR_PAC_*_ENABLED_KEYS */
        SPAN(63, 66, ALLOW), /* PR_SME_*_VL, PR_*_MDWE */
        SPAN(74, 76, ALLOW), /* PR_*_SHADOW_STACK_STATUS */
        VALUE(0x41555856, ALLOW), /* PR_GET_AUXV */
        VALUE(0x53564d41, ALLOW), /* PR_SET_VMA: the C libraries name their memory */
        VALUE(0x59616d61, ALLOW), /* PR_SET_PTRACER: only names the processes that may inspect the
                                     caller itself */
};

/* Allowed families. Any other one has its own kernel code, loaded on demand, and some ignore the
 * network namespace: AF_VSOCK reaches the hypervisor, AF_ALG the crypto engines. */
static const CheckRange families[] = {
        VALUE(1, ALLOW),          /* AF_UNIX */
        VALUE(2, CHECK_INET),     /* AF_INET */
        VALUE(10, CHECK_INET),    /* AF_INET6 */
        VALUE(16, CHECK_NETLINK), /* AF_NETLINK */
};

static const CheckRange families_strict[] = {
        VALUE(1, ALLOW),
        VALUE(2, CHECK_INET),
        VALUE(10, CHECK_INET),
};

/* SOCK_STREAM and SOCK_DGRAM. Raw sockets need a capability, and so does SOCK_PACKET, which AF_INET
 * treats as AF_PACKET. The mask removes SOCK_CLOEXEC and SOCK_NONBLOCK, like the kernel does. */
static const CheckRange inet_types[] = { SPAN(1, 2, CHECK_INET_PROTOCOL) };

/* The default of the type, ICMP, TCP, UDP and ICMPv6. The others (SCTP, DCCP, L2TP, SMC, MPTCP) are
 * much code with a long list of CVEs, and a socket loads most of it as modules. A program that
 * tries MPTCP first, such as one in Go, falls back on TCP. */
static const CheckRange inet_protocols[] = {
        VALUE(0, ALLOW),  VALUE(1, ALLOW),          VALUE(6, ALLOW), VALUE(17, ALLOW),
        VALUE(58, ALLOW), VALUE(136, NOTIFY_EPERM), /* UDP-Lite, reported because no program falls
                                                       back on UDP */
};

/* RLIMIT_CORE. If core_pattern is a pipe, the kernel starts its program as root in the host's own
 * namespaces, with memory that the sandbox has made. Only a limit of 1 stops that (core(5); 0 does
 * not), so the limit cannot be changed. Many scripts contain "ulimit -c 0", which asks for no more
 * than is in force, so it succeeds. */
static const CheckRange core_limit[] = { VALUE(4, PRETEND) };
static const CheckRange core_prlimit[] = { VALUE(4, CHECK_PRLIMIT_LOW) };
static const CheckRange no_new_limit_low[] = { VALUE(0, CHECK_PRLIMIT_HIGH) };

/* Allowed requests of ptrace(2), on both architectures. PTRACE_SET_THREAD_AREA (26) is missing,
 * because it creates 16-bit and 32-bit segments, as set_thread_area(2) does, which is refused. The
 * requests that read filters (0x420c, 0x420d) need a capability. */
static const CheckRange ptrace_requests[] = {
        SPAN(0, 9, ALLOW),                   /* PTRACE_TRACEME to PTRACE_SINGLESTEP */
        SPAN(12, 17, ALLOW),                 /* registers, PTRACE_ATTACH, PTRACE_DETACH */
        VALUE(21, CHECK_PTRACE_OPTIONS),     /* PTRACE_OLDSETOPTIONS */
        SPAN(24, 25, ALLOW),                 /* PTRACE_SYSCALL, PTRACE_GET_THREAD_AREA */
        SPAN(30, 34, ALLOW),                 /* requests of one architecture */
        VALUE(0x4200, CHECK_PTRACE_OPTIONS), /* PTRACE_SETOPTIONS */
        SPAN(0x4201, 0x4205, ALLOW),         /* PTRACE_GETEVENTMSG to PTRACE_SETREGSET */
        VALUE(0x4206, CHECK_PTRACE_OPTIONS), /* PTRACE_SEIZE */
        SPAN(0x4207, 0x420b, ALLOW),         /* PTRACE_INTERRUPT to PTRACE_SETSIGMASK */
        SPAN(0x420e, 0x4212, ALLOW),         /* PTRACE_GET_SYSCALL_INFO and later ones */
};

/* PTRACE_O_TRACEEXIT. A killed process stops before its end until its tracer continues it, and
 * nothing else wakes it. If two processes trace each other in this way, neither can be killed. Then
 * neither the sandbox's init nor holt would ever end. So the call is reported, and holt lets one
 * process at a time make it (runner/outcome/exit-tracer.h). A filter without reports refuses it. */
#define TRACE_EXIT 0x40U

static const char set_id[] = "a mode with the set-user-ID or set-group-ID bit, which would make "
                             "the host run the file as "
                             "its owner";

static const char udp_lite[] =
        "a socket of UDP-Lite, which makes the host load a rarely used kernel "
        "module; use UDP";

#define CHECK_OF(name) [ACTION_CHECK_##name - ACTION_CHECK_FIRST]

const SyscallCheck syscall_checks[ACTION_MAX - ACTION_CHECK_FIRST] = {
        CHECK_OF(CLONE) = { 0, CLONE_NAMESPACES, ACTION_NOTIFY_EPERM, RANGES(only_zero) },
        CHECK_OF(ID_ARG0) = { 0, WHOLE, ACTION_EPERM, RANGES(id_last) },
        CHECK_OF(ID_ARG1) = { 1, WHOLE, ACTION_EPERM, RANGES(id_last) },
        CHECK_OF(ID_ARG2) = { 2, WHOLE, ACTION_EPERM, RANGES(id_last) },
        CHECK_OF(ID_ARG3) = { 3, WHOLE, ACTION_EPERM, RANGES(id_last) },
        CHECK_OF(IDS_ARG0_1) = { 0, WHOLE, ACTION_EPERM, RANGES(ids_then_arg1) },
        CHECK_OF(IDS_ARG0_2) = { 0, WHOLE, ACTION_EPERM, RANGES(ids_then_arg1_2) },
        CHECK_OF(IDS_ARG1_2) = { 1, WHOLE, ACTION_EPERM, RANGES(ids_then_arg2) },
        CHECK_OF(IDS_ARG2_3) = { 2, WHOLE, ACTION_EPERM, RANGES(ids_then_arg3) },
        CHECK_OF(INET) = { 1, 0xf, ACTION_EPERM, RANGES(inet_types) },
        CHECK_OF(INET_PROTOCOL) = { 2, WHOLE, ACTION_EPROTONOSUPPORT, RANGES(inet_protocols) },
        CHECK_OF(IOCTL) = { 1, REQUEST, ACTION_ENOTTY, RANGES(ioctl_requests) },
        CHECK_OF(IOCTL_STRICT) = { 1, REQUEST, ACTION_CHECK_IOCTL, RANGES(interface_requests) },
        CHECK_OF(MKNOD) = { 1, 0xf000, ACTION_EPERM, RANGES(file_types), .why = set_id },
        CHECK_OF(MKNODAT) = { 2, 0xf000, ACTION_EPERM, RANGES(file_types_at), .why = set_id },
        CHECK_OF(MODE_ARG1) = { 1, SET_ID, ACTION_NOTIFY_EPERM, RANGES(only_zero), .why = set_id },
        CHECK_OF(MODE_ARG2) = { 2, SET_ID, ACTION_NOTIFY_EPERM, RANGES(only_zero), .why = set_id },
        CHECK_OF(MODE_ARG3) = { 3, SET_ID, ACTION_NOTIFY_EPERM, RANGES(only_zero), .why = set_id },
        /* Only 0, NETLINK_ROUTE: the C libraries read addresses from it. */
        CHECK_OF(NETLINK) = { 2, WHOLE, ACTION_EPROTONOSUPPORT, RANGES(only_zero) },
        CHECK_OF(OPEN) = { 1, CREATES, ACTION_CHECK_MODE_ARG2, RANGES(only_zero), .why = set_id },
        CHECK_OF(OPENAT) = { 2, CREATES, ACTION_CHECK_MODE_ARG3, RANGES(only_zero), .why = set_id },
        CHECK_OF(PERSONALITY) = { 0, WHOLE, ACTION_EPERM, RANGES(personalities) },
        CHECK_OF(PERSONALITY_STRICT) = { 0, WHOLE, ACTION_EPERM, RANGES(personality_query) },
        CHECK_OF(PRCTL) = { 0, WHOLE, ACTION_EINVAL, RANGES(prctl_options) },
        CHECK_OF(PRLIMIT) = { 1, WHOLE, ACTION_ALLOW, RANGES(core_prlimit) },
        CHECK_OF(PRLIMIT_LOW) = { 2, WHOLE, ACTION_PRETEND, RANGES(no_new_limit_low) },
        CHECK_OF(PRLIMIT_HIGH) = { 2, WHOLE, ACTION_PRETEND, RANGES(only_zero), .high = true },
        CHECK_OF(PTRACE) = { 0, WHOLE, ACTION_NOTIFY_EPERM, RANGES(ptrace_requests) },
        CHECK_OF(PTRACE_OPTIONS) = { 3, TRACE_EXIT, ACTION_NOTIFY_EPERM, RANGES(only_zero) },
        CHECK_OF(SETRLIMIT) = { 0, WHOLE, ACTION_ALLOW, RANGES(core_limit) },
        /* SECCOMP_FILTER_FLAG_NEW_LISTENER. Among equal actions the newest filter's wins, and its
         * listener may answer "continue" (SECCOMP_USER_NOTIF_FLAG_CONTINUE). So a listener inside
         * could allow calls that holt only reports. The kernel allows one listener, but it forgets
         * holt's once the launcher is dead. While one exists, the kernel's answer is EBUSY. */
        CHECK_OF(SECCOMP) = { 1, 0x8, ACTION_EBUSY, RANGES(only_zero) },
        CHECK_OF(SOCKET) = { 0, WHOLE, ACTION_EAFNOSUPPORT, RANGES(families), .why = udp_lite },
        CHECK_OF(SOCKET_STRICT) = { 0, WHOLE, ACTION_EAFNOSUPPORT, RANGES(families_strict) },
};
