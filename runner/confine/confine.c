/* SPDX-License-Identifier: Apache-2.0 */
#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define NO_FOREIGN_NUMBERS 0x40000000U /* x32 */
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#define NO_FOREIGN_NUMBERS 0x80000000U
#endif

/* Rights of Landlock's first ABI, which make, open and execute files. */
#define LANDLOCK_FILES ((1ULL << 13) - 1)

/* System calls of both processes: for memory and messages, and to exit. */
#define CALLS_COMMON                                                                               \
        SYS_read, SYS_write, SYS_close, SYS_recvmsg, SYS_sendmsg, SYS_sendto, SYS_recvfrom,        \
                SYS_setsockopt, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_futex, \
                SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_getpid,        \
                SYS_gettid, SYS_restart_syscall

static const int egress_calls[] = {
        CALLS_COMMON,    SYS_accept4,     SYS_bind,         SYS_clock_gettime, SYS_connect,
        SYS_epoll_ctl,   SYS_epoll_pwait, SYS_fcntl,        SYS_getpeername,   SYS_getrandom,
        SYS_getsockname, SYS_getsockopt,  SYS_gettimeofday, SYS_listen,        SYS_pipe2,
        SYS_shutdown,    SYS_splice,      SYS_wait4,        SYS_writev,        SYS_readv,
#ifdef SYS_epoll_wait
        SYS_epoll_wait,
#endif
};

/* libcurl, OpenSSL and libmicrohttpd need some more. */
static const int gateway_calls[] = {
        CALLS_COMMON,    SYS_accept4,     SYS_bind,         SYS_clock_gettime, SYS_connect,
        SYS_epoll_ctl,   SYS_epoll_pwait, SYS_fcntl,        SYS_getpeername,   SYS_getrandom,
        SYS_getsockname, SYS_getsockopt,  SYS_gettimeofday, SYS_ppoll,         SYS_shutdown,
        SYS_writev,      SYS_readv,       SYS_mprotect,
#ifdef SYS_epoll_wait
        SYS_epoll_wait,
#endif
#ifdef SYS_poll
        SYS_poll,
#endif
};

/* holt-links gets its listening socket and all files from the keeper. */
static const int links_calls[] = {
        CALLS_COMMON,   SYS_accept4,   SYS_clock_gettime,   SYS_epoll_ctl, SYS_epoll_pwait,
        SYS_sendfile,   SYS_fdatasync, SYS_sync_file_range, SYS_shutdown,
#ifdef SYS_epoll_wait
        SYS_epoll_wait,
#endif
};

static const int maker_calls[] = { CALLS_COMMON, SYS_bind, SYS_listen };

enum { FILTER_MAX = 96 };

static size_t filter_add(struct sock_filter *filter, size_t n, struct sock_filter item) {
        filter[n] = item;
        return n + 1;
}

/* Allows socket(2) only for AF_INET and AF_INET6. */
static size_t filter_sockets(struct sock_filter *filter, size_t n) {
        const struct sock_filter rule[] = {
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        };

        for (size_t i = 0; i < ELEMENTSOF(rule); i++)
                n = filter_add(filter, n, rule[i]);
        return n;
}

/* Forbids setting the owner of a socket. When bytes come, the kernel would send the owner any
 * signal that F_SETSIG names. */
static size_t filter_owners(struct sock_filter *filter, size_t n) {
        const struct sock_filter rule[] = {
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETOWN, 1, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETOWN_EX, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        };

        for (size_t i = 0; i < ELEMENTSOF(rule); i++)
                n = filter_add(filter, n, rule[i]);
        return n;
}

/* sockets: the process may make sockets of the internet. */
static int egress_confine_calls(const int *calls, size_t count, bool sockets) {
        struct sock_filter filter[FILTER_MAX];
        const struct sock_filter begin[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, NO_FOREIGN_NUMBERS, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        };
        struct sock_fprog program = { .filter = filter };
        size_t n = 0;

        static_assert(ELEMENTSOF(egress_calls) * 2 + 24 < FILTER_MAX + ELEMENTSOF(egress_calls),
                      "the filter has room");
        for (size_t i = 0; i < ELEMENTSOF(begin); i++)
                n = filter_add(filter, n, begin[i]);
        if (sockets)
                n = filter_sockets(filter, n);
        n = filter_owners(filter, n);
        for (size_t i = 0; i < count; i++)
                n = filter_add(filter, n,
                               (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                            (unsigned)calls[i],
                                                            (uint8_t)(count - i), 0));
        n = filter_add(filter, n,
                       (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
        n = filter_add(filter, n, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        program.len = (unsigned short)n;
        return sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

/* Landlock is optional here, because the system call filter refuses every call that opens a
 * file. */
static int egress_confine_files(void) {
        const uint64_t handled = LANDLOCK_FILES;
        int fd = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0), r = 0;

        if (fd < 0)
                return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
        if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
                r = -errno;
        (void)close(fd);
        return r;
}

static int egress_confine_rights(uint32_t kept) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        const struct __user_cap_data_struct rights[2] = { { .effective = kept,
                                                            .permitted = kept } };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            syscall(SYS_capset, &header, rights) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
                return -errno;
        return egress_confine_files();
}

int confine_egress(Error *reterr) {
        int r = egress_confine_rights(0);

        if (r == 0)
                r = egress_confine_calls(egress_calls, ELEMENTSOF(egress_calls), true);
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot confine holt-egress") : 0;
}

int confine_gateway(Error *reterr) {
        int r = egress_confine_rights(0);

        if (r == 0)
                r = egress_confine_calls(gateway_calls, ELEMENTSOF(gateway_calls), true);
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot confine holt-gateway") : 0;
}

int confine_links(Error *reterr) {
        int r = egress_confine_rights(0);

        if (r == 0)
                r = egress_confine_calls(links_calls, ELEMENTSOF(links_calls), false);
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot confine holt-links") : 0;
}

int confine_maker(void) {
        int r = egress_confine_rights(1U << CAP_NET_ADMIN | 1U << CAP_NET_BIND_SERVICE);

        return r < 0 ? r : egress_confine_calls(maker_calls, ELEMENTSOF(maker_calls), true);
}
