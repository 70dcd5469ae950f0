/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks by ptrace(2): to do what the filter refuses, to outlive a kill, to reach others. The
 * traced process is a child of our own, unless args[0] names another. */
#include "hostile.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/user.h>

enum {
        SET_THREAD_AREA = 26, /* PTRACE_SET_THREAD_AREA */
        TRACE_EXIT = 0x40,    /* PTRACE_O_TRACEEXIT */
        SUSPEND = 1 << 21,    /* PTRACE_O_SUSPEND_SECCOMP */
        NT_PRSTATUS_NOTE = 1,
        NT_SYSTEM_CALL = 0x404, /* NT_ARM_SYSTEM_CALL */
};

/* A call that no preset allows, and that does nothing. */
#define REFUSED_CALL SYS_keyctl

/* Makes a child that waits for its tracer. If filter is set, the child has a filter by which the
 * tracer answers getppid(2). Then the child calls getppid, and exits with 0 if the kernel obeyed
 * keyctl(GET_KEYRING_ID, session) instead. */
static pid_t make_child(int filter) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { ELEMENTSOF(code), code };
        pid_t pid = fork();

        if (pid < 0)
                untried("fork: %s", errno_name(errno));
        if (pid > 0) {
                if (waitpid(pid, NULL, WUNTRACED) != pid)
                        untried("waitpid: %s", errno_name(errno));
                return pid;
        }
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (filter && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0))
                _exit(100);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
                _exit(101);
        (void)raise(SIGSTOP);
        errno = 0;
        if (syscall(SYS_getppid, -3 /* session */, 0) != -1)
                _exit(0);
        _exit(errno == EPERM || errno == EACCES || errno == ENOSYS ? 1 : 0);
}

__attribute__((noreturn)) static void finish(pid_t pid, long result) {
        int errnum = errno;

        (void)ptrace(PTRACE_CONT, pid, NULL, NULL);
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, __WALL) == pid)
                (void)ptrace(PTRACE_CONT, pid, NULL, NULL); /* it may stop at its exit */
        errno = errnum;
        got(result);
}

static void set_options(int request, unsigned long options) {
        pid_t pid = make_child(0);

        finish(pid, ptrace(request, pid, NULL, options));
}

static void suspend_filter(char **args) {
        (void)args;
        set_options(PTRACE_SETOPTIONS, SUSPEND);
}

static int wait_forever(void *arg) {
        (void)arg;
        while (pause() < 0)
                ;
        return 0;
}

/* Traces the exit of a process with the same memory, and dumps core. Up to Linux 5.15, the dumping
 * process waits for the other one to end, which waits for its tracer. */
__attribute__((noreturn)) static void dump_core(pid_t *ret_traced) {
        static char stack[16 * 1024] __attribute__((aligned(16)));

        *ret_traced = clone(wait_forever, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
        if (*ret_traced < 0 || ptrace(PTRACE_SEIZE, *ret_traced, NULL, TRACE_EXIT) < 0)
                _exit(100);
        (void)signal(SIGABRT, SIG_DFL);
        abort();
}

static int is_gone(pid_t pid) {
        return kill(pid, 0) < 0 && errno == ESRCH;
}

static void dump_core_as_tracer(char **args) {
        pid_t *traced = mmap(NULL, sizeof(*traced), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t pid = fork();
        int status;

        (void)args;
        if (pid == 0)
                dump_core(traced);
        for (int i = 0; i < 1000; i++) {
                (void)usleep(10000);
                if (!is_gone(pid) && waitpid(pid, &status, WNOHANG) != pid)
                        continue;
                (void)kill(*traced, SIGKILL);
                if (is_gone(*traced))
                        held("%s", WIFSIGNALED(status) ? "both have ended" : "EPERM");
        }
        broken("a process and its tracer cannot be killed");
}

/* Creates a segment, as set_thread_area(2) does. */
static void make_segment(char **args) {
        unsigned int segment[4] = { 0xffffffff, 0x1000, 0xfffff, 0x51 };
        pid_t pid = make_child(0);

        (void)args;
        finish(pid, ptrace((int)SET_THREAD_AREA, pid, 12, segment));
}

/* Reads the filter of a process; the caller needs no privilege over itself. */
static void read_filter(char **args) {
        pid_t pid = make_child(1);

        (void)args;
        finish(pid, ptrace(0x420c /* PTRACE_SECCOMP_GET_FILTER */, pid, NULL, NULL));
}

/* Makes the stopped child call REFUSED_CALL instead. */
static void exchange_call(pid_t pid) {
#ifdef __x86_64__
        struct user_regs_struct registers;
        struct iovec all = { &registers, sizeof(registers) };

        if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS_NOTE, &all) < 0)
                untried("GETREGSET: %s", errno_name(errno));
        registers.orig_rax = REFUSED_CALL;
        registers.rsi = registers.rdi;
        registers.rdi = 0;
        if (ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS_NOTE, &all) < 0)
                untried("SETREGSET: %s", errno_name(errno));
#else
        int nr = REFUSED_CALL;
        struct iovec one = { &nr, sizeof(nr) };

        if (ptrace(PTRACE_SETREGSET, pid, NT_SYSTEM_CALL, &one) < 0)
                untried("SETREGSET: %s", errno_name(errno));
#endif
}

/* Continues the child by `request` up to the stop with `status`, and exchanges its next call. */
static void exchange_at(int filter, int request, unsigned long options, int stop) {
        pid_t pid = make_child(filter);
        int status = 0;

        if (ptrace(PTRACE_SETOPTIONS, pid, NULL, options) < 0)
                untried("SETOPTIONS: %s", errno_name(errno));
        do
                if (ptrace(request, pid, NULL, NULL) < 0 || waitpid(pid, &status, 0) != pid)
                        untried("the child ended: %s", errno_name(errno));
        while (!WIFEXITED(status) && status >> 8 != stop);
        if (WIFEXITED(status))
                untried("the child exited with %d", WEXITSTATUS(status));
        exchange_call(pid);
        if (ptrace(PTRACE_CONT, pid, NULL, NULL) < 0 || waitpid(pid, &status, 0) != pid)
                untried("the child ended: %s", errno_name(errno));
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                broken("the kernel obeyed another call");
        held("%s", WIFEXITED(status) ? "EPERM" : "SIGSYS");
}

/* Exchanges the call after the child has entered it. Up to Linux 4.7, that was after the filter. */
static void exchange_at_entry(char **args) {
        (void)args;
        exchange_at(0, PTRACE_SYSCALL, PTRACE_O_TRACESYSGOOD, SIGTRAP | 0x80);
}

/* Exchanges the call after a filter of our own has passed it to the tracer. */
static void exchange_in_filter(char **args) {
        (void)args;
        exchange_at(1, PTRACE_CONT, PTRACE_O_TRACESECCOMP, SIGTRAP | PTRACE_EVENT_SECCOMP << 8);
}

static const Attack attacks[] = {
        { "dump-core", dump_core_as_tracer, 0 },
        { "suspend-filter", suspend_filter, 0 },
        { "make-segment", make_segment, 0 },
        { "read-filter", read_filter, 0 },
        { "exchange-at-entry", exchange_at_entry, 0 },
        { "exchange-in-filter", exchange_in_filter, 0 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
