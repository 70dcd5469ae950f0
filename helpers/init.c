/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 of a sandbox.
 *
 * Theory of operation. The launcher builds and confines the sandbox, then executes this program
 * from a sealed memory file. It starts the one command, reaps orphans, passes signals on, and
 * reports how the command ended. When it exits, the kernel kills all processes left in the pid
 * namespace. It links nothing, not even libc, because its own start delays every command. It
 * allocates nothing and holds no authority: seccomp, Landlock and the empty capability sets are in
 * force before its first instruction.
 *
 * The system call filter is in force here, so every call of this file and of session-init.c must be
 * in the group @basic (policy/syscalls/groups.c). No policy can deny that group. A new call needs a
 * row there.
 *
 * It blocks every signal and reads SIGCHLD from a signalfd, so no process inside can make it run a
 * handler. It is not dumpable, so no process inside can open its memory or its control socket. */
#include <asm/unistd.h>
#include <errno.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <stddef.h>
#include <stdint.h>

#include "init-protocol.h"
#include "init-sys.h"

#include "execute.h"

enum {
        SIGNALFD_SIZE = 128, /* sizeof(struct signalfd_siginfo), signalfd(2) */
        TIOCSPGRP_REQUEST = 0x5410,
        MSG_NOSIGNAL_FLAG = 0x4000,
        MSG_DONTWAIT_FLAG = 0x40,
};

typedef struct Init {
        int pid; /* the command's process and process group; 0 after its end */
        int signal_fd;
        const char *flags;
        uint64_t signals; /* the command's initial signal mask: empty */
        Command command;  /* written by the child, which shares this memory until it executes */
} Init;

static void init_report(uint32_t type, int32_t value, uint32_t detail) {
        const InitMessage message = { .type = type, .value = value, .detail = detail };

        /* The socket's queue has room for all messages that init ever sends at once. If the
         * launcher is dead, init dies with it (PR_SET_PDEATHSIG). */
        (void)sys6(__NR_sendto, INIT_CONTROL_FD, (long)&message, sizeof(message), MSG_NOSIGNAL_FLAG,
                   0, 0);
}

static int has_flag(const Init *init, char flag) {
        for (const char *c = init->flags; *c; c++)
                if (*c == flag)
                        return 1;
        return 0;
}

/* Sets the foreground process group of the terminal. At least one of fds 0 to 2 is the terminal. */
static void init_take_foreground(int group) {
        for (int fd = 0; fd <= 2; fd++)
                if (sys3(__NR_ioctl, fd, TIOCSPGRP_REQUEST, (long)&group) == 0)
                        return;
}

/* --- the command --- */

/* Runs in the child, which shares init's memory but has its own stack, like after vfork(2). Does
 * not return. */
static void init_run_command(Init *init) {
        (void)sys2(__NR_setpgid, 0, 0);
        if (has_flag(init, INIT_FLAG_TERMINAL) && !has_flag(init, INIT_FLAG_BACKGROUND))
                init_take_foreground((int)sys0(__NR_getpid));
        (void)sys1(__NR_close, INIT_CONTROL_FD);
        (void)sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&init->signals, 0, 8);

        command_execute(&init->command);
        (void)sys1(__NR_exit, 1);
}

static long start_command(Init *init) {
        static char room[EXECUTE_PATH_MAX];
        static char stack[32 * 1024] __attribute__((aligned(16)));
        long pid;

        init->command.room = room;
        pid = sys_vfork(stack + sizeof(stack), (void (*)(void *))init_run_command, init);
        if (pid < 0) {
                init_report(INIT_FAILED, (int32_t)-pid, INIT_STEP_FORK);
                return -1;
        }
        if (init->command.exec_errno) {
                init_report(INIT_FAILED, init->command.exec_errno, init->command.exec_step);
                return -1;
        }
        init->pid = (int)pid;
        return 0;
}

/* --- the loop --- */

/* Reaps processes that have ended. The command may also stop; other stopped children concern only
 * their parents. */
static void init_reap(Init *init) {
        for (;;) {
                int status = 0;
                long pid = sys4(__NR_wait4, -1, (long)&status, WNOHANG | WUNTRACED, 0);

                if (pid <= 0)
                        return;
                if (pid != init->pid)
                        continue;
                if ((status & 0xff) == 0x7f) {
                        if (!has_flag(init, INIT_FLAG_TERMINAL))
                                continue; /* the process that stopped it may also wake it */
                        init_report(INIT_STOPPED, (status >> 8) & 0xff, 0);
                        continue;
                }
                init_report(INIT_ENDED, status, 0);
                init->pid = 0;
        }
}

static void init_obey(Init *init, const InitMessage *message) {
        switch (message->type) {
        case INIT_SIGNAL:
                (void)sys2(__NR_kill, -init->pid, message->value);
                break;
        case INIT_SIGNAL_ALL:
                (void)sys2(__NR_kill, -1, message->value);
                if (message->value != SIGSTOP)
                        (void)sys2(__NR_kill, -1, SIGCONT);
                break;
        case INIT_CONTINUE:
                if (has_flag(init, INIT_FLAG_TERMINAL))
                        init_take_foreground(init->pid);
                (void)sys2(__NR_kill, -1, SIGCONT);
                break;
        default:
                break;
        }
}

/* Returns 0 if the launcher is gone. */
static int init_listen(Init *init) {
        InitMessage message;
        long n = sys6(__NR_recvfrom, INIT_CONTROL_FD, (long)&message, sizeof(message),
                      MSG_DONTWAIT_FLAG, 0, 0);

        if (n == sizeof(message) && init->pid)
                init_obey(init, &message);
        return n > 0 || n == -EAGAIN || n == -EINTR;
}

static void init_run_loop(Init *init) {
        struct pollfd fds[] = {
                { .fd = init->signal_fd, .events = POLLIN },
                { .fd = INIT_CONTROL_FD, .events = POLLIN },
        };

        while (init->pid) {
                char discarded[SIGNALFD_SIZE];

                if (sys5(__NR_ppoll, (long)fds, 2, 0, 0, 0) < 0)
                        continue;
                if (fds[0].revents) {
                        (void)sys3(__NR_read, init->signal_fd, (long)discarded, SIGNALFD_SIZE);
                        init_reap(init);
                }
                if (fds[1].revents && !init_listen(init))
                        return;
        }
}

/* The kernel's initial stack: argc, argv, NULL, environment, NULL. Called by _start (init-sys.h).
 */
_Noreturn void init_main(long *stack);
_Noreturn void init_main(long *stack) {
        long argc = stack[0];
        char **argv = (char **)(stack + 1);
        Init init = { .flags = argv[1],
                      .command = { .program = argv[2], .argv = argv + 2, .env = argv + argc + 1 } };
        const uint64_t all = ~0ULL, child = 1ULL << (SIGCHLD - 1);

        (void)sys2(__NR_prctl, PR_SET_DUMPABLE, 0);
        (void)sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8);
        init.signal_fd = (int)sys4(__NR_signalfd4, -1, (long)&child, 8, SFD_CLOEXEC_VALUE);
        if (argc >= 3 && init.signal_fd >= 0 && start_command(&init) == 0)
                init_run_loop(&init);
        for (;;)
                (void)sys1(__NR_exit_group, 0);
}
