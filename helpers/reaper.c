/* SPDX-License-Identifier: Apache-2.0 */
/* The process of "holt bwrap" that starts the command and reaps orphans: PID 1, if the sandbox has
 * PIDs of its own.
 *
 * Theory of operation. Like bubblewrap's, it reports the end of the command at once, and lives as
 * long as any process that the command has left behind. It holds the caller's locks and the
 * descriptor of --sync-fd until then. It closes everything else, so that readers of the command's
 * pipes see their end.
 *
 * It links nothing (see init.c), and everything that confines the command also confines it. The
 * caller's seccomp programs are loaded here, because they may forbid what has to happen before. */
#include <asm/unistd.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <stddef.h>
#include <stdint.h>

#include "init-sys.h"
#include "reaper-protocol.h"

#include "execute.h"

#define F_SETFD_VALUE 2
#define FD_CLOEXEC_VALUE 1

typedef struct Reaper {
        long event_fd, filters_fd, dies;
        long keeps[REAPER_KEEPS_MAX];
        unsigned keeps_count;
        long pid; /* of the command; 0 after its end */
        int status;
        long refused; /* by the kernel: a seccomp program; written by the child */
        Command command;
} Reaper;

/* Reads a number and the comma behind it. Returns -1 at the end. */
static long take_number(const char **text) {
        long value = 0, sign = 1;

        if (**text == '-') {
                sign = -1;
                (*text)++;
        }
        for (; **text >= '0' && **text <= '9'; (*text)++)
                value = value * 10 + (**text - '0');
        if (**text == ',')
                (*text)++;
        return sign * value;
}

static void reaper_read_numbers(Reaper *reaper, const char *text) {
        reaper->event_fd = take_number(&text);
        reaper->filters_fd = take_number(&text);
        reaper->dies = take_number(&text);
        while (*text && reaper->keeps_count < REAPER_KEEPS_MAX)
                reaper->keeps[reaper->keeps_count++] = take_number(&text);
}

/* None of these descriptors is for the command. */
static void reaper_shield(const Reaper *reaper) {
        (void)sys3(__NR_fcntl, reaper->event_fd, F_SETFD_VALUE, FD_CLOEXEC_VALUE);
        if (reaper->filters_fd >= 0)
                (void)sys3(__NR_fcntl, reaper->filters_fd, F_SETFD_VALUE, FD_CLOEXEC_VALUE);
        for (unsigned i = 0; i < reaper->keeps_count; i++)
                (void)sys3(__NR_fcntl, reaper->keeps[i], F_SETFD_VALUE, FD_CLOEXEC_VALUE);
}

static void reaper_tell(const Reaper *reaper, uint32_t type, int32_t value) {
        const ReaperMessage message = { .type = type, .value = value };

        (void)sys3(__NR_write, reaper->event_fd, (long)&message, sizeof(message));
}

/* --- the caller's seccomp programs --- */

/* Loads all programs, in their order. Returns 0 or a negative errno. */
static long load_filters(const Reaper *reaper) {
        static struct sock_filter program[BPF_MAXINSNS];
        long at = 0;

        while (reaper->filters_fd >= 0) {
                uint32_t count;
                struct sock_fprog filter = { .filter = program };
                long r = sys4(__NR_pread64, reaper->filters_fd, (long)&count, sizeof(count), at);

                if (r != (long)sizeof(count) || count == 0 || count > BPF_MAXINSNS)
                        return r == 0 ? 0 : -EINVAL;
                at += r;
                r = sys4(__NR_pread64, reaper->filters_fd, (long)program,
                         (long)(count * sizeof(program[0])), at);
                if (r != (long)(count * sizeof(program[0])))
                        return -EINVAL;
                at += r;
                filter.len = (unsigned short)count;
                r = sys3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&filter);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* --- the command --- */

/* Runs in the child, which shares the reaper's memory. Does not return. */
static void reaper_run_command(Reaper *reaper) {
        if (reaper->dies)
                (void)sys2(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
        reaper->refused = load_filters(reaper);
        if (reaper->refused == 0)
                command_execute(&reaper->command);
        (void)sys1(__NR_exit, 1);
}

static int reaper_start(Reaper *reaper) {
        static char room[EXECUTE_PATH_MAX];
        static char stack[32 * 1024] __attribute__((aligned(16)));

        reaper->command.room = room;
        reaper->pid = sys_vfork(stack + sizeof(stack), (void (*)(void *))reaper_run_command,
                                reaper);
        if (reaper->pid < 0)
                reaper_tell(reaper, REAPER_FAILED, (int32_t)-reaper->pid);
        else if (reaper->refused)
                reaper_tell(reaper, REAPER_REFUSED, (int32_t)-reaper->refused);
        else if (reaper->command.exec_errno)
                reaper_tell(reaper, REAPER_FAILED, reaper->command.exec_errno);
        else
                return 1;
        return 0;
}

/* --- the rest --- */

static int reaper_keeps(const Reaper *reaper, long fd) {
        int kept = fd == reaper->event_fd || fd == reaper->filters_fd;

        for (unsigned i = 0; i < reaper->keeps_count; i++)
                kept |= fd == reaper->keeps[i];
        return kept;
}

/* Closes everything except for what it keeps. */
static void reaper_close(const Reaper *reaper) {
        long from = 0, highest = reaper->event_fd > reaper->filters_fd ? reaper->event_fd
                                                                       : reaper->filters_fd;

        for (unsigned i = 0; i < reaper->keeps_count; i++)
                highest = reaper->keeps[i] > highest ? reaper->keeps[i] : highest;
        for (; from <= highest; from++)
                if (!reaper_keeps(reaper, from))
                        (void)sys1(__NR_close, from);
        (void)sys3(__NR_close_range, from, ~0U, 0);
}

static int exit_code(int status) {
        return (status & 0x7f) ? 128 + (status & 0x7f) : (status >> 8) & 0xff;
}

static int reaper_wait(Reaper *reaper) {
        for (;;) {
                int status = 0;
                long pid = sys4(__NR_wait4, -1, (long)&status, 0, 0);

                if (pid == -EINTR)
                        continue;
                if (pid < 0)
                        return exit_code(reaper->status);
                if (pid != reaper->pid)
                        continue;
                reaper->status = status;
                reaper_tell(reaper, REAPER_ENDED, status);
                (void)sys1(__NR_close, reaper->event_fd);
                reaper->pid = 0; /* an orphan may get the same number */
        }
}

/* The kernel's initial stack: argc, argv, NULL, environment, NULL. Called by _start (init-sys.h).
 */
_Noreturn void init_main(long *stack);
_Noreturn void init_main(long *stack) {
        long argc = stack[0];
        char **argv = (char **)(stack + 1);
        static Reaper reaper;
        int code = 1;

        (void)sys2(__NR_prctl, PR_SET_NAME, (long)"bwrap");
        /* No process inside can open the pipe, unless it has a capability. */
        (void)sys2(__NR_prctl, PR_SET_DUMPABLE, 0);

        if (argc >= 4) {
                reaper.command = (Command){ .program = argv[2],
                                            .argv = argv + 3,
                                            .env = argv + argc + 1 };
                reaper_read_numbers(&reaper, argv[1]);
                reaper_shield(&reaper);
                if (reaper_start(&reaper)) {
                        reaper_close(&reaper);
                        if (load_filters(&reaper) == 0)
                                code = reaper_wait(&reaper);
                }
        }
        for (;;)
                (void)sys1(__NR_exit_group, code);
}
