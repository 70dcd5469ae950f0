/* SPDX-License-Identifier: Apache-2.0 */
/* The data behind syscalls.h: for syscalls.c, the generators and the unit test only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"
#include "policy/syscalls.h"

/* What is done with a call, or with a call whose argument has been looked at. Of the refusals,
 * those called NOTIFY are reported; the others are answered in the filter, because programs probe
 * them all the time, or because nobody would act on the report. */
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
        ACTION_PRETEND, /* 0 is answered and nothing done */
        ACTION_KILL,
        ACTION_CHECK_FIRST, /* from here on, syscall_checks[action - ACTION_CHECK_FIRST] decides */
        ACTION_CHECK_CLONE = ACTION_CHECK_FIRST,
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
        ACTION_CHECK_SECCOMP,
        ACTION_CHECK_SETRLIMIT,
        ACTION_CHECK_SOCKET,
        ACTION_CHECK_SOCKET_STRICT,
        ACTION_MAX,
} SyscallAction;

/* X(identifier, name, what it is for) */
#define SYSCALL_GROUPS(X)                                                                          \
        X(BASIC, "@basic", "what holt's init, and any program, can't start or end without")        \
        X(FILE, "@file", "files by name, and what is known of them")                               \
        X(IO, "@io", "reading, writing, waiting, by descriptor")                                   \
        X(PROCESS, "@process", "processes, their limits and priorities")                           \
        X(IDENTITY, "@identity", "user, group and capabilities of the caller itself")              \
        X(MEMORY, "@memory", "the caller's own memory")                                            \
        X(SIGNAL, "@signal", "signals")                                                            \
        X(TIME, "@time", "reading clocks, timers")                                                 \
        X(SCHED, "@sched", "scheduling, waiting of threads")                                       \
        X(NETWORK, "@network", "sockets: local, IPv4 and IPv6, and the routing netlink")           \
        X(SECURITY, "@security", "giving up more: Landlock, seccomp")                              \
        X(MQUEUE, "@mqueue", "POSIX message queues; not in strict")                                \
        X(NUMA, "@numa", "placing memory on nodes; not in strict")                                 \
        X(SYSV_IPC, "@sysv_ipc", "System V shared memory, semaphores, messages; not in strict")    \
        X(AIO, "@aio", "the old asynchronous I/O, whose contexts the whole host shares")           \
        X(BPF, "@bpf", "loading BPF")                                                              \
        X(CLOCK, "@clock", "setting the host's clock")                                             \
        X(FANOTIFY, "@fanotify", "watching whole file systems")                                    \
        X(HANDLE, "@handle", "opening files by handle, past every directory")                      \
        X(IO_URING, "@io_uring", "I/O by rings, which no filter sees")                             \
        X(KEXEC, "@kexec", "loading another kernel")                                               \
        X(KEYRING, "@keyring", "kernel keyrings, which know no namespace")                         \
        X(MODULE, "@module", "kernel modules")                                                     \
        X(MOUNT, "@mount", "changing the tree of mounts or its root")                              \
        X(NAMESPACE, "@namespace", "making and entering namespaces")                               \
        X(PERF, "@perf", "performance counters")                                                   \
        X(PRIVILEGED, "@privileged", "managing the host: accounts, quotas, log, ports, names")     \
        X(PTRACE, "@ptrace", "memory and descriptors of other processes")                          \
        X(RARE, "@rare", "what few programs use, and none needs")                                  \
        X(REBOOT, "@reboot", "restarting the host")                                                \
        X(SWAP, "@swap", "swap space")                                                             \
        X(USERFAULT, "@userfault", "page faults handled by programs")                              \
        X(XATTR, "@xattr", "setting extended attributes, ACLs among them")                         \
        X(OBSOLETE, "@obsolete", "what Linux has dropped, or should")

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

/* What the kernel asks for where the filter lets a call through. It never is there for a command in
 * a sandbox, unless that may make a user namespace of its own, where it has every capability. */
typedef enum SyscallGate {
        GATE_NONE, /* nothing, or it depends on the arguments or on a setting of the host */
        GATE_OWN,  /* a capability over the user namespace of the caller */
        GATE_HOST, /* a capability over that of the host */
} SyscallGate;

/* The name is in the row, not behind a pointer, so that the table needs no relocation at start. */
typedef struct SyscallRow {
        char name[24];
        uint8_t group;                        /* SyscallGroupId */
        uint8_t actions[SYSCALLS_PRESET_MAX]; /* SyscallAction in each preset */
        uint8_t gate;                         /* SyscallGate; only of calls that are reported */
} SyscallRow;

/* Every call that x86_64 or aarch64 has had up to Linux 6.18. */
extern const SyscallRow syscall_rows[];
extern const size_t syscall_rows_count;

/* Values of one argument. An argument is looked at as the kernel does: its low 32 bits, under mask.
 * Ranges are sorted and apart from each other; what is in none is answered with otherwise. */
typedef struct CheckRange {
        uint32_t first, last;
        SyscallAction action; /* may be another check, of the next argument */
} CheckRange;

typedef struct SyscallCheck {
        unsigned arg;
        uint32_t mask;
        SyscallAction otherwise;
        const CheckRange *ranges;
        size_t count;
        bool high;       /* of a pointer: its other 32 bits */
        const char *why; /* of one that is reported: what is refused, and never granted */
} SyscallCheck;

extern const SyscallCheck syscall_checks[ACTION_MAX - ACTION_CHECK_FIRST];

/* --- generated for the target architecture by gen-syscalls.c: syscalls-numbers.c --- */

enum {
        SYSCALL_NUMBERS_END = 512
}; /* native numbers are below; from 512 on x86_64 has those of x32 */

extern const uint32_t syscalls_audit_arch; /* AUDIT_ARCH_X86_64 or AUDIT_ARCH_AARCH64 */
extern const int16_t
        syscall_numbers[]; /* of each row; -1 where the architecture has no such call */
extern const size_t syscall_numbers_count;

/* --- for the generators and the test --- */

/* The row of a call's name, or -ENOENT. */
int syscall_row_find(const char *name);

/* The number of seccomp(2) that the action gives; not for a check. */
uint32_t syscall_action_value(SyscallAction action, bool notify);
