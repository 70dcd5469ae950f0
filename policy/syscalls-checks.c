/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are only partly safe: which arguments pass.
 *
 * Each of these arguments is an int, an unsigned int or narrower to the kernel, or has its flags in
 * the low 32 bits (clone: lower_32_bits() in kernel/fork.c), while seccomp hands the filter 64.
 * Only the low half may be compared, or a bit above it would get any value past the check
 * (CVE-2019-10063). */
#include "syscalls-table.h"

#define RANGES(list) .ranges = (list), .count = ELEMENTSOF(list)
/* Its versions do not agree on a body in braces. */
/* clang-format off */
#define VALUE(value, action) { (value), (value), ACTION_##action }
#define SPAN(first, last, action) { (first), (last), ACTION_##action }
/* clang-format on */

#define WHOLE 0xffffffffU /* the low 32 bits */

/* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. Not CLONE_NEWTIME (0x80):
 * clone(2) has the exit signal in the low eight bits, and so can't be asked for a time namespace.
 */
#define CLONE_NAMESPACES 0x7e020000U

static const CheckRange only_zero[] = { VALUE(0, ALLOW) };

/* Type and number of an ioctl. The upper half has its direction and size, which newer kernels let
 * grow. */
#define REQUEST 0xffffU

/* A list of what is allowed, by type and number, because each file system brings requests of its
 * own. A snapshot of btrfs or bcachefs shows what is hidden, as no mount of ours is in it, and the
 * flag by which ext4 ignores case makes ".GIT" the host's ".git". ENOTTY is what most files answer,
 * so programs are ready for it.
 *
 * Left out, and not obvious: FS_IOC_SETVERSION (0x7602), which forges a file handle;
 * FS_IOC_SETFLAGS (0x6602) and FS_IOC_FSSETXATTR (0x5820), for the said flag; fscrypt, fs-verity,
 * and ext4's exchange of extents; SIOCGIFBR and the like, which load modules.
 *
 * Among those of terminals, the first two type into a terminal, where the caller's shell reads it;
 * TIOCCONS takes the console's output; TIOCSETD has the kernel load any line discipline, for
 * anybody who has a pty (CVE-2017-2636, CVE-2020-14416).
 *
 * Those of a pidfd: SO_PEERPIDFD makes one of a process of the host that serves a socket inside,
 * and its user namespace is what a keeper takes for a proof (rpc/peer.h). */
static const CheckRange ioctl_requests[] = {
        VALUE(0x0002, ALLOW),        /* FIGETBSZ */
        VALUE(0x1500, ALLOW),        /* FS_IOC_GETFSUUID */
        SPAN(0x2100, 0x2104, ALLOW), /* SECCOMP_IOCTL_NOTIF_*: the keeper has this filter, too */
        SPAN(0x2400, 0x24ff, ALLOW), /* PERF_EVENT_IOC_*: once perf_event_open is granted */
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
        SPAN(0xaa00, 0xaaff, ALLOW), /* UFFDIO_*: once userfaultfd is granted */
        SPAN(0xb701, 0xb704, ALLOW), /* NS_GET_USERNS to NS_GET_OWNER_UID */
        SPAN(0xff01, 0xff0a, EPERM), /* PIDFD_GET_CGROUP_NAMESPACE to PIDFD_GET_UTS_NAMESPACE */
        VALUE(0xff0b, ALLOW),        /* PIDFD_GET_INFO */
};

/* Interfaces of the network. A socket that was handed in as stdin belongs to the host's network,
 * and tells of its interfaces, whatever its family. In strict there is no netlink to ask about
 * them, either. */
static const CheckRange interface_requests[] = { SPAN(0x8910, 0x89ff, ENOTTY) };

/* S_IFMT: none (a regular file), S_IFIFO, S_IFREG, S_IFSOCK. A device is refused even where the
 * kernel would make it: 0:0 is overlayfs's whiteout, free for all since Linux 5.8. */
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

/* O_CREAT and __O_TMPFILE, on both architectures. Without them the kernel takes no notice of the
 * mode, and programs leave in its register what was there (WILL_CREATE() in fs/open.c). */
#define CREATES 0x400040U
/* S_ISUID and S_ISGID: on the host such a file would run as the workspace's owner or group, for
 * whoever starts it; nosuid holds inside alone. A file born with S_ISGID and without S_IXGRP keeps
 * the bit when it is written. mkdir(2) takes no notice of these bits and passes a directory's
 * S_ISGID on by itself. */
#define SET_ID 0xc00U

/* PER_LINUX (and UNAME26 and ADDR_NO_RANDOMIZE with it), and the question for the present one.
 * Without address randomisation a program harms itself alone, and thread sanitizers and debuggers
 * ask for it. READ_IMPLIES_EXEC and the like undo what keeps data from being run, MMAP_PAGE_ZERO
 * has been used against the kernel, and other systems' personalities change what system calls do.
 * PER_LINUX32 is of no use where 32-bit programs don't run. */
static const CheckRange personalities[] = {
        VALUE(0x0000000, ALLOW), VALUE(0x0020000, ALLOW),  VALUE(0x0040000, ALLOW),
        VALUE(0x0060000, ALLOW), VALUE(0xffffffff, ALLOW),
};

static const CheckRange personality_query[] = { VALUE(0xffffffff, ALLOW) };

/* A list of what is allowed, since each kernel brings options that nobody has judged; EINVAL is
 * what an older kernel says. Left out, besides those of other architectures: PR_SET_MM, which
 * forges the command line and the program's path in /proc; PR_TASK_PERF_EVENTS_* and PR_MCE_KILL;
 * PR_SET_IO_FLUSHER; PR_SCHED_CORE, which idles the sibling threads of the host's cores;
 * PR_SET_MEMORY_MERGE, whose merging tells what others have in memory; PR_TIMER_CREATE_RESTORE_IDS
 * and PR_FUTEX_HASH, which nothing needs. PR_SET_SECCOMP stays: it has no flags, so it can't make a
 * listener. */
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
        VALUE(0x59616d61, ALLOW), /* PR_SET_PTRACER: only says who may look at the caller itself */
};

/* Any other family has its own code in the kernel, loaded on demand, and some are not kept apart by
 * the network namespace: AF_VSOCK reaches the hypervisor, AF_ALG the crypto engines. */
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
 * takes for AF_PACKET. The mask takes SOCK_CLOEXEC and SOCK_NONBLOCK off, as the kernel does. */
static const CheckRange inet_types[] = { SPAN(1, 2, CHECK_INET_PROTOCOL) };

/* The type's own, ICMP, TCP, UDP, ICMPv6. Others (SCTP, DCCP, L2TP, SMC, MPTCP) are much code, most
 * of it in modules that a socket would load, and a long list of CVEs; whoever tries MPTCP first, as
 * Go does, goes on with TCP. */
static const CheckRange inet_protocols[] = {
        VALUE(0, ALLOW), VALUE(1, ALLOW), VALUE(6, ALLOW), VALUE(17, ALLOW), VALUE(58, ALLOW),
};

/* RLIMIT_CORE: a core_pattern that is a pipe starts its program as root, in the host's own
 * namespaces, and hands it memory that the sandbox has made. Only the limit 1 stops that (core(5);
 * 0 does not), so it can't be changed. "ulimit -c 0" is in many scripts, and asks for no more than
 * it has: it is told yes. */
static const CheckRange core_limit[] = { VALUE(4, PRETEND) };
static const CheckRange core_prlimit[] = { VALUE(4, CHECK_PRLIMIT_LOW) };
static const CheckRange no_new_limit_low[] = { VALUE(0, CHECK_PRLIMIT_HIGH) };

static const char set_id[] =
        "a mode with the set-user-ID or set-group-ID bit, by which the host would run the file as "
        "its owner";

#define CHECK_OF(name) [ACTION_CHECK_##name - ACTION_CHECK_FIRST]

const SyscallCheck syscall_checks[ACTION_MAX - ACTION_CHECK_FIRST] = {
        CHECK_OF(CLONE) = { 0, CLONE_NAMESPACES, ACTION_NOTIFY_EPERM, RANGES(only_zero) },
        CHECK_OF(INET) = { 1, 0xf, ACTION_EPERM, RANGES(inet_types) },
        CHECK_OF(INET_PROTOCOL) = { 2, WHOLE, ACTION_EPROTONOSUPPORT, RANGES(inet_protocols) },
        CHECK_OF(IOCTL) = { 1, REQUEST, ACTION_ENOTTY, RANGES(ioctl_requests) },
        CHECK_OF(IOCTL_STRICT) = { 1, REQUEST, ACTION_CHECK_IOCTL, RANGES(interface_requests) },
        CHECK_OF(MKNOD) = { 1, 0xf000, ACTION_EPERM, RANGES(file_types), .why = set_id },
        CHECK_OF(MKNODAT) = { 2, 0xf000, ACTION_EPERM, RANGES(file_types_at), .why = set_id },
        CHECK_OF(MODE_ARG1) = { 1, SET_ID, ACTION_NOTIFY_EPERM, RANGES(only_zero), .why = set_id },
        CHECK_OF(MODE_ARG2) = { 2, SET_ID, ACTION_NOTIFY_EPERM, RANGES(only_zero), .why = set_id },
        CHECK_OF(MODE_ARG3) = { 3, SET_ID, ACTION_NOTIFY_EPERM, RANGES(only_zero), .why = set_id },
        /* NETLINK_ROUTE is 0: the C libraries ask it for addresses. */
        CHECK_OF(NETLINK) = { 2, WHOLE, ACTION_EPROTONOSUPPORT, RANGES(only_zero) },
        CHECK_OF(OPEN) = { 1, CREATES, ACTION_CHECK_MODE_ARG2, RANGES(only_zero), .why = set_id },
        CHECK_OF(OPENAT) = { 2, CREATES, ACTION_CHECK_MODE_ARG3, RANGES(only_zero), .why = set_id },
        CHECK_OF(PERSONALITY) = { 0, WHOLE, ACTION_EPERM, RANGES(personalities) },
        CHECK_OF(PERSONALITY_STRICT) = { 0, WHOLE, ACTION_EPERM, RANGES(personality_query) },
        CHECK_OF(PRCTL) = { 0, WHOLE, ACTION_EINVAL, RANGES(prctl_options) },
        CHECK_OF(PRLIMIT) = { 1, WHOLE, ACTION_ALLOW, RANGES(core_prlimit) },
        CHECK_OF(PRLIMIT_LOW) = { 2, WHOLE, ACTION_PRETEND, RANGES(no_new_limit_low) },
        CHECK_OF(PRLIMIT_HIGH) = { 2, WHOLE, ACTION_PRETEND, RANGES(only_zero), .high = true },
        CHECK_OF(SETRLIMIT) = { 0, WHOLE, ACTION_ALLOW, RANGES(core_limit) },
        /* SECCOMP_FILTER_FLAG_NEW_LISTENER. Among equal actions the newest filter's wins, and its
         * listener may answer "continue" (SECCOMP_USER_NOTIF_FLAG_CONTINUE): one inside would let
         * through what we only report. The kernel allows one listener, but forgets ours once the
         * launcher is dead. EBUSY is what it says while there is one. */
        CHECK_OF(SECCOMP) = { 1, 0x8, ACTION_EBUSY, RANGES(only_zero) },
        CHECK_OF(SOCKET) = { 0, WHOLE, ACTION_EAFNOSUPPORT, RANGES(families) },
        CHECK_OF(SOCKET_STRICT) = { 0, WHOLE, ACTION_EAFNOSUPPORT, RANGES(families_strict) },
};
