/* SPDX-License-Identifier: Apache-2.0 */
/* The data behind syscalls.h, only for syscalls.c, the generators and the unit test. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/syscalls/syscalls.h"

/* The action for a call, or for a call with a checked argument. Refusals called NOTIFY are
 * reported. The filter answers the others itself, because programs probe them constantly or nobody
 * would act on a report. */
typedef enum SyscallAction {
        ACTION_ALLOW,
        ACTION_EPERM,
        ACTION_ENOSYS,
        ACTION_EINVAL,
        ACTION_EBUSY,
        ACTION_ENOTTY,
        ACTION_EAFNOSUPPORT,
        ACTION_EOPNOTSUPP,
        ACTION_EPROTONOSUPPORT,
        ACTION_NOTIFY_EPERM,
        ACTION_NOTIFY_ENOSYS,
        ACTION_PRETEND, /* answers 0 and does nothing */
        ACTION_KILL,
        ACTION_CHECK_FIRST, /* from here on, syscall_checks[action - ACTION_CHECK_FIRST] decides */
        ACTION_CHECK_CLONE = ACTION_CHECK_FIRST,
        ACTION_CHECK_ID_ARG0, /* the last argument that is a uid or a gid */
        ACTION_CHECK_ID_ARG1,
        ACTION_CHECK_ID_ARG2,
        ACTION_CHECK_ID_ARG3,
        ACTION_CHECK_IDS_ARG0_1, /* both arguments are ids */
        ACTION_CHECK_IDS_ARG0_2, /* all three arguments are ids */
        ACTION_CHECK_IDS_ARG1_2,
        ACTION_CHECK_IDS_ARG2_3,
        ACTION_CHECK_INET,
        ACTION_CHECK_INET_PROTOCOL,
        ACTION_CHECK_IOCTL,
        ACTION_CHECK_IOCTL_STRICT,
        ACTION_CHECK_MKNOD,
        ACTION_CHECK_MKNODAT,
        ACTION_CHECK_MODE_ARG1,
        ACTION_CHECK_MODE_ARG2,
        ACTION_CHECK_MODE_ARG3,
        ACTION_CHECK_NETLINK,
        ACTION_CHECK_OPEN,
        ACTION_CHECK_OPENAT,
        ACTION_CHECK_PERSONALITY,
        ACTION_CHECK_PERSONALITY_STRICT,
        ACTION_CHECK_PRCTL,
        ACTION_CHECK_PRLIMIT,
        ACTION_CHECK_PRLIMIT_HIGH,
        ACTION_CHECK_PRLIMIT_LOW,
        ACTION_CHECK_PTRACE,
        ACTION_CHECK_PTRACE_OPTIONS,
        ACTION_CHECK_SECCOMP,
        ACTION_CHECK_SETRLIMIT,
        ACTION_CHECK_SOCKET,
        ACTION_CHECK_SOCKET_STRICT,
        ACTION_MAX,
} SyscallAction;

/* X(identifier, name, purpose) */
#define SYSCALL_GROUPS(X)                                                                          \
        X(BASIC, "@basic", "calls that holt's init and every program need to start and end")       \
        X(FILE, "@file", "files by name, and their metadata")                                      \
        X(IO, "@io", "reading, writing and waiting by descriptor")                                 \
        X(PROCESS, "@process", "processes, their limits and priorities")                           \
        X(IDENTITY, "@identity", "user, group and capabilities of the caller itself")              \
        X(MEMORY, "@memory", "the caller's own memory")                                            \
        X(SIGNAL, "@signal", "signals")                                                            \
        X(TIME, "@time", "reading clocks; timers")                                                 \
        X(SCHED, "@sched", "scheduling and waiting of threads")                                    \
        X(NETWORK, "@network", "sockets: local, IPv4 and IPv6, and the routing netlink")           \
        X(SECURITY, "@security", "giving up rights: Landlock, seccomp")                            \
        X(MQUEUE, "@mqueue", "POSIX message queues; not in strict")                                \
        X(NUMA, "@numa", "placing memory on nodes; not in strict")                                 \
        X(SYSV_IPC, "@sysv_ipc", "System V shared memory, semaphores, messages; not in strict")    \
        X(AIO, "@aio", "old asynchronous I/O; the whole host shares its contexts")                 \
        X(BPF, "@bpf", "loading BPF")                                                              \
        X(CLOCK, "@clock", "setting the host's clock")                                             \
        X(FANOTIFY, "@fanotify", "watching whole file systems")                                    \
        X(HANDLE, "@handle", "opening files by handle, which bypasses directories")                \
        X(IO_URING, "@io_uring", "I/O by rings, which filters cannot see")                         \
        X(KEXEC, "@kexec", "loading another kernel")                                               \
        X(KEYRING, "@keyring", "kernel keyrings, which ignore namespaces")                         \
        X(MODULE, "@module", "kernel modules")                                                     \
        X(MOUNT, "@mount", "changing the tree of mounts or its root")                              \
        X(NAMESPACE, "@namespace", "making and entering namespaces")                               \
        X(PERF, "@perf", "performance counters")                                                   \
        X(PRIVILEGED, "@privileged", "managing the host: accounts, quotas, log, ports, names")     \
        X(PTRACE, "@ptrace", "tracing other processes of the sandbox")                             \
        X(RARE, "@rare", "calls that few programs use, and that no program needs")                 \
        X(REBOOT, "@reboot", "restarting the host")                                                \
        X(SWAP, "@swap", "swap space")                                                             \
        X(USERFAULT, "@userfault", "page faults handled by programs")                              \
        X(XATTR, "@xattr", "setting extended attributes, ACLs among them")                         \
        X(OBSOLETE, "@obsolete", "calls that Linux has dropped, or should")

typedef enum SyscallGroupId {
#define GROUP_ENUM(id, name, help) GROUP_##id,
        SYSCALL_GROUPS(GROUP_ENUM)
#undef GROUP_ENUM
                GROUP_MAX,
} SyscallGroupId;

typedef struct SyscallGroup {
        const char *name;
        const char *help;
} SyscallGroup;

extern const SyscallGroup syscall_groups[GROUP_MAX];

/* The capability that the kernel requires for a call, even if the filter allows it. No command in a
 * sandbox has it, unless it may create a user namespace, where it has every capability. */
typedef enum SyscallGate {
        GATE_NONE, /* none; or it depends on the arguments, or on a setting of the host */
        GATE_OWN,  /* a capability over the caller's user namespace */
        GATE_HOST, /* a capability over the host's user namespace */
} SyscallGate;

/* The row contains the name itself, not a pointer, so that the table needs no relocation at start.
 */
typedef struct SyscallRow {
        char name[24];
        uint8_t group;                        /* SyscallGroupId */
        uint8_t actions[SYSCALLS_PRESET_MAX]; /* SyscallAction in each preset */
        uint8_t gate;                         /* SyscallGate; only for reported calls */
} SyscallRow;

/* Every call that x86_64 or aarch64 has up to Linux 6.18. */
extern const SyscallRow syscall_rows[];
extern const size_t syscall_rows_count;

/* Values of one argument. Like in the kernel, only its low 32 bits under mask count. Ranges are
 * sorted and do not overlap; values outside all of them get the action `otherwise`. */
typedef struct CheckRange {
        uint32_t first, last;
        SyscallAction action; /* may be a check of the next argument */
} CheckRange;

typedef struct SyscallCheck {
        unsigned arg;
        uint32_t mask;
        SyscallAction otherwise;
        const CheckRange *ranges;
        size_t count;
        bool high;       /* check the high 32 bits of a pointer */
        const char *why; /* for a reported argument: its name for people, and never a grant */
} SyscallCheck;

extern const SyscallCheck syscall_checks[ACTION_MAX - ACTION_CHECK_FIRST];

/* --- generated by gen-syscalls.c for the target architecture: syscalls-numbers.c --- */

enum {
        SYSCALL_NUMBERS_END = 512
}; /* native numbers are lower; on x86_64, numbers of x32 start at 512 */

extern const uint32_t syscalls_audit_arch; /* AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64 */
extern const int16_t syscall_numbers[]; /* for each row; -1 if the architecture has no such call */
extern const size_t syscall_numbers_count;

/* --- for the generators and the test --- */

/* The row of the call with that name, or -ENOENT. */
int syscall_row_find(const char *name);

/* The seccomp(2) return value of an action that is no check. */
uint32_t syscall_action_value(SyscallAction action, bool notify);
