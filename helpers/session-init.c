/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 of a session's sandbox, which lasts and runs many commands.
 *
 * Theory of operation. For each exec that the keeper requests, init starts a monitor, which starts
 * the command. The monitor is a subreaper: every process that the command starts stays below it in
 * the process tree. That holds even for daemons, new sessions and double forks. So all processes of
 * that exec can be found in /proc and killed. When a command ends normally, its remaining processes
 * keep running; the monitor ends with the last of them.
 *
 * Monitors share init's memory and nothing else, and each has its own stacks: copying by fork would
 * be most of the cost of an exec. Monitors report to the keeper themselves. init itself only starts
 * monitors, passes signals on and kills. No process inside can kill init. A command can kill its
 * monitor, which has the same identity. The command's processes then come to init as orphans that
 * belong to no exec, and init kills them.
 *
 * A command on a terminal is a job, like in a shell. The terminal's session is its monitor's, and
 * the command has its own process group. So Ctrl-Z stops it (in an orphaned group the kernel
 * discards SIGTSTP), and the monitor can give it the foreground again.
 *
 * Like in init.c, every signal is blocked and memory is allocated only by mmap. init and monitors
 * are not dumpable, and they have no authority beyond that of the commands. */
#include <asm/unistd.h>
#include <errno.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/stat.h>
#include <linux/wait.h>
#include <stddef.h>
#include <stdint.h>

#include "init-sys.h"
#include "session-protocol.h"

#include "execute.h"
#include "process-tree.h"
#include "session-messages.h"

enum {
        SIGNALFD_SIZE = 128, /* sizeof(struct signalfd_siginfo), signalfd(2) */
        TCSETS_REQUEST = 0x5402,
        TIOCSCTTY_REQUEST = 0x540e,
        TIOCSPGRP_REQUEST = 0x5410,
        TIOCSWINSZ_REQUEST = 0x5414,
        TIOCSPTLCK_REQUEST = 0x40045431,
        TIOCGPTPEER_REQUEST = 0x5441,
        PROT_READ_WRITE = 3,
        MAP_PRIVATE_FLAG = 2,
        MAP_ANONYMOUS_FLAG = 0x20,
        SMALL_SLOTS = 256,
        WAKE_SIGNAL = SIGUSR1, /* tells a monitor on a terminal to look at resume */
        RESUME_ROUNDS = 100,   /* how often init waits for it, ROUND_PAUSE each time */
        /* Twice as many, so that monitors that are ending take no slot of new commands. */
        MONITORS_MAX = 2 * SESSION_EXECS_MAX,
};

typedef struct Monitor {
        uint32_t exec; /* 0: the slot is free */
        int pid;
        struct Exec *memory; /* the monitor's own memory */
} Monitor;

static Monitor monitors[MONITORS_MAX];

/* The monitors whose processes are to be killed. One search kills them all. */
static int doomed[MONITORS_MAX];
static int doomed_count;

/* --- the monitor of one exec --- */

/* One exec's memory: the stacks of the monitor and of the child that becomes the command, and room
 * for a small block with its pointers. */
typedef struct Exec {
        Command command;
        uint32_t id;
        int given[FDS_MAX];
        unsigned long block_size;
        void *slots;
        unsigned long slots_size;
        const ExecBlock *block;
        const char *cwd;
        int fds[3];          /* become fds 0 to 2 */
        int master;          /* the terminal's master, or -1 */
        int pid;             /* the command's process and process group; 0 after its end */
        volatile int resume; /* init asks for the foreground; the monitor answers with 0 */
        char room[EXECUTE_PATH_MAX];
        char small_block[SESSION_INLINE_MAX] __attribute__((aligned(8)));
        char *small_slots[SMALL_SLOTS];
        char child_stack[16 * 1024] __attribute__((aligned(16)));
        char stack[16 * 1024] __attribute__((aligned(16)));
} Exec;

static void *map_memory(unsigned long size, int fd) {
        long address = sys6(__NR_mmap, 0, (long)size, PROT_READ_WRITE,
                            MAP_PRIVATE_FLAG | (fd < 0 ? MAP_ANONYMOUS_FLAG : 0), fd, 0);

        return address < 0 && address > -4096 ? (void *)0 : (void *)address;
}

/* Returns the string at *at and moves *at behind it, or 0 if the block ends first. */
static char *next_string(char **at, const char *end) {
        char *string = *at;

        while (*at < end && **at)
                (*at)++;
        if (*at == end)
                return (char *)0;
        (*at)++;
        return string;
}

/* Finds the block, in the monitor's own memory or mapped. Returns 0 if there is none. */
static ExecBlock *find_block(Exec *exec) {
        if (exec->block_size < sizeof(ExecBlock) || exec->block_size > SESSION_BLOCK_MAX)
                return (ExecBlock *)0;
        return exec->block_size <= SESSION_INLINE_MAX
                       ? (ExecBlock *)(void *)exec->small_block
                       : map_memory(exec->block_size, exec->given[0]);
}

/* One slot before argv stays free (execute.h). */
static int read_block(Exec *exec) {
        const unsigned long size = exec->block_size;
        ExecBlock *block = find_block(exec);
        char **slots = exec->small_slots, *at, *end;

        if (!block)
                return -EINVAL;
        exec->block = block;
        at = (char *)(block + 1);
        end = (char *)block + size;
        if (block->argc == 0 || block->argc > size || block->envc > size)
                return -EINVAL;
        if (block->argc + block->envc + 4UL > SMALL_SLOTS) {
                exec->slots_size = (block->argc + block->envc + 4UL) * sizeof(char *);
                exec->slots = slots = map_memory(exec->slots_size, -1);
        }
        exec->cwd = next_string(&at, end);
        if (!slots || !exec->cwd)
                return -ENOMEM;
        exec->command.argv = slots + 1;
        exec->command.env = slots + block->argc + 2;
        for (uint32_t i = 0; i < block->argc; i++)
                if (!(exec->command.argv[i] = next_string(&at, end)))
                        return -EINVAL;
        for (uint32_t i = 0; i < block->envc; i++)
                if (!(exec->command.env[i] = next_string(&at, end)))
                        return -EINVAL;
        exec->command.program = exec->command.argv[0];
        return 0;
}

static int make_terminal(Exec *exec) {
        const ExecBlock *block = exec->block;
        const uint16_t size[4] = { block->rows, block->columns, 0, 0 };
        int unlock = 0;
        long master = sys4(__NR_openat, AT_FDCWD_VALUE, (long)"/dev/ptmx",
                           O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
        long slave;

        if (master < 0)
                return (int)master;
        (void)sys3(__NR_ioctl, master, TIOCSPTLCK_REQUEST, (long)&unlock);
        slave = sys3(__NR_ioctl, master, TIOCGPTPEER_REQUEST, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (slave < 0)
                return (int)slave;
        if (block->has_mode)
                (void)sys3(__NR_ioctl, slave, TCSETS_REQUEST, (long)block->mode);
        if (block->rows || block->columns)
                (void)sys3(__NR_ioctl, slave, TIOCSWINSZ_REQUEST, (long)size);
        (void)sys0(__NR_setsid);
        (void)sys3(__NR_ioctl, slave, TIOCSCTTY_REQUEST, 0);
        for (int fd = 0; fd <= 2; fd++)
                if (block->terminal & (1U << fd))
                        exec->fds[fd] = (int)slave;
        exec->master = (int)master;
        return 0;
}

/* This may cause SIGTTOU, which is blocked here. */
static long exec_take_foreground(long fd, int group) {
        return sys3(__NR_ioctl, fd, TIOCSPGRP_REQUEST, (long)&group);
}

static void become_job(const Exec *exec) {
        (void)sys2(__NR_setpgid, 0, 0);
        for (int fd = 0; !exec->block->background && fd <= 2; fd++)
                if (exec->block->terminal & (1U << fd) &&
                    exec_take_foreground(fd, (int)sys0(__NR_getpid)) == 0)
                        break;
}

/* Runs in the command's child, which shares the monitor's memory until it executes. Does not
 * return. */
static void exec_run_command(Exec *exec) {
        const uint64_t none = 0;
        long r;

        for (int fd = 0; fd <= 2; fd++)
                (void)sys3(__NR_dup3, exec->fds[fd], fd, 0);
        if (exec->master >= 0)
                become_job(exec);
        else
                (void)sys0(__NR_setsid);
        (void)sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, 8);
        r = sys1(__NR_chdir, (long)exec->cwd);
        if (r < 0) {
                exec->command.exec_step = INIT_STEP_CWD;
                exec->command.exec_errno = (int)-r;
        } else {
                command_execute(&exec->command);
        }
        (void)sys1(__NR_exit, 1);
}

static void report_end(const Exec *exec, int status, const long usage[16], int alone) {
        SessionMessage message = {
                .type = SESSION_ENDED,
                .exec = exec->id,
                .value = status,
                .detail = (uint32_t)alone,
                .user_us = (uint64_t)usage[0] * 1000000 + (uint64_t)usage[1],
                .system_us = (uint64_t)usage[2] * 1000000 + (uint64_t)usage[3],
                .max_rss = (uint64_t)usage[4] * 1024,
        };

        packet_send(&message, -1);
}

/* Whether no orphan is left. */
static int reap_orphans(void) {
        long pid;

        do
                pid = sys4(__NR_wait4, -1, 0, WNOHANG, 0);
        while (pid > 0);
        return pid == -ECHILD;
}

/* Reaps the command or an orphan. Returns the result of wait4(2). Without a terminal, a stopped
 * command is left to the process that stopped it. */
static long reap_one(Exec *exec, int options) {
        long usage[16] = { 0 };
        int status = 0;
        long pid = sys4(__NR_wait4, -1, (long)&status, options, (long)usage);

        if (pid <= 0 || pid != exec->pid)
                return pid;
        if ((status & 0xff) == 0x7f) {
                packet_report(SESSION_STOPPED, exec->id, (status >> 8) & 0xff, 0);
        } else {
                int alone = reap_orphans();

                exec->pid = 0;
                report_end(exec, status, usage, alone);
                if (alone)
                        return -ECHILD;
        }
        return pid;
}

static void give_foreground(Exec *exec) {
        long fd = sys4(__NR_openat, AT_FDCWD_VALUE, (long)"/dev/tty", O_RDWR | O_CLOEXEC, 0);

        if (fd >= 0 && exec->pid)
                (void)exec_take_foreground(fd, exec->pid);
        (void)sys1(__NR_close, fd);
        exec->resume = 0;
}

/* Waits until no process is left, and listens to init meanwhile. */
static void attend_job(Exec *exec) {
        const uint64_t wake = 1ULL << (SIGCHLD - 1) | 1ULL << (WAKE_SIGNAL - 1);
        struct pollfd fds[] = { { .events = POLLIN } };
        char discarded[SIGNALFD_SIZE];

        fds[0].fd = (int)sys4(__NR_signalfd4, -1, (long)&wake, 8, SFD_CLOEXEC_VALUE);
        while (fds[0].fd >= 0) {
                long pid = reap_one(exec, WUNTRACED | WNOHANG);

                if (pid > 0 || pid == -EINTR)
                        continue;
                if (pid < 0)
                        return;
                if (exec->resume)
                        give_foreground(exec);
                if (sys5(__NR_ppoll, (long)fds, 1, 0, 0, 0) > 0)
                        (void)sys3(__NR_read, fds[0].fd, (long)discarded, SIGNALFD_SIZE);
        }
}

/* Waits until no process is left. */
static void reap_all(Exec *exec) {
        long pid;

        if (exec->master >= 0)
                attend_job(exec);
        do
                pid = reap_one(exec, 0);
        while (pid > 0 || pid == -EINTR);
}

static int prepare_exec(Exec *exec) {
        int r = read_block(exec), next = exec->block_size > SESSION_INLINE_MAX;

        if (r < 0)
                return r;
        for (int fd = 0; fd <= 2; fd++)
                exec->fds[fd] = exec->block->terminal & (1U << fd) ? -1 : exec->given[next++];
        return exec->block->terminal ? make_terminal(exec) : 0;
}

static void start_exec(Exec *exec) {
        long pid = sys_vfork(exec->child_stack + sizeof(exec->child_stack),
                             (void (*)(void *))exec_run_command, exec);
        SessionMessage message = { .type = SESSION_STARTED,
                                   .exec = exec->id,
                                   .value = (int32_t)pid };

        if (pid < 0)
                return packet_report(SESSION_FAILED, exec->id, (int32_t)-pid, INIT_STEP_FORK);
        if (exec->command.exec_errno)
                return packet_report(SESSION_FAILED, exec->id, exec->command.exec_errno,
                                     exec->command.exec_step);
        exec->pid = (int)pid;
        packet_send(&message, exec->master);
}

/* Runs in a process of its own. Does not return. */
static void run_monitor(Exec *exec) {
        int r;

        (void)sys2(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1);
        r = prepare_exec(exec);
        if (r < 0)
                packet_report(SESSION_FAILED, exec->id, -r, INIT_STEP_FORK);
        else
                start_exec(exec);
        /* Closes the terminal's slave too, so that a reader of the master sees its end. */
        (void)sys3(__NR_close_range, SESSION_CONTROL_FD + 1, ~0U, 0);
        reap_all(exec);
        (void)sys1(__NR_exit_group, 0);
}

/* --- init --- */

static Monitor *find_monitor(uint32_t exec, int pid) {
        for (int i = 0; i < MONITORS_MAX; i++)
                if (monitors[i].exec && (monitors[i].exec == exec || monitors[i].pid == pid))
                        return &monitors[i];
        return (Monitor *)0;
}

static int is_monitor(int pid) {
        return find_monitor(0, pid) != (Monitor *)0;
}

static Monitor *free_slot(void) {
        for (int i = 0; i < MONITORS_MAX; i++)
                if (!monitors[i].exec)
                        return &monitors[i];
        return (Monitor *)0;
}

static void memory_unmap(void *memory, unsigned long size) {
        if (memory)
                (void)sys2(__NR_munmap, (long)memory, (long)size);
}

static void free_exec(Exec *exec) {
        if (!exec)
                return;
        if ((const char *)exec->block != exec->small_block)
                memory_unmap((void *)exec->block, exec->block_size);
        memory_unmap(exec->slots, exec->slots_size);
        memory_unmap(exec, sizeof(*exec));
}

static void exec_begin(const Packet *packet, const int fds[FDS_MAX]) {
        const SessionMessage *message = &packet->message;
        Monitor *slot = free_slot();
        Exec *exec = slot ? map_memory(sizeof(*exec), -1) : (Exec *)0;
        long pid = -EAGAIN;

        if (exec) {
                exec->id = message->exec;
                exec->master = -1;
                exec->block_size = (unsigned long)message->value;
                exec->command.room = exec->room;
                for (unsigned i = 0; i < SESSION_INLINE_MAX && i < exec->block_size; i++)
                        exec->small_block[i] = packet->block[i];
                for (int i = 0; i < FDS_MAX; i++)
                        exec->given[i] = fds[i];
                pid = sys_spawn(exec->stack + sizeof(exec->stack), (void (*)(void *))run_monitor,
                                exec);
        }
        if (pid < 0) {
                free_exec(exec);
                packet_report(SESSION_FAILED, message->exec, (int32_t)-pid, INIT_STEP_FORK);
                packet_report(SESSION_GONE, message->exec, 0, 0);
                return;
        }
        *slot = (Monitor){ .exec = message->exec, .pid = (int)pid, .memory = exec };
}

/* --- all processes of an exec --- */

static void kill_doomed(void) {
        const Roots roots = { doomed, doomed_count };

        if (doomed_count > 0)
                kill_below(&roots);
        doomed_count = 0;
}

static void doom_exec(const Monitor *monitor) {
        if (doomed_count == MONITORS_MAX)
                kill_doomed();
        doomed[doomed_count++] = monitor->pid;
}

static void signal_all(const Monitor *monitor, int signal) {
        const Roots roots = { &monitor->pid, 1 };

        (void)signal_below(&roots, signal);
        if (signal != SIGSTOP && signal != SIGCONT)
                (void)signal_below(&roots, SIGCONT);
}

/* Continues an exec. Only the monitor can give it the foreground, because the terminal belongs to
 * the monitor's session. The foreground comes first, because the command would stop again without
 * it. The command is continued only once, because the next key may already have stopped it
 * again. */
static void resume_exec(const Monitor *monitor) {
        Exec *exec = monitor->memory;

        if (exec->master >= 0) {
                exec->resume = 1;
                (void)sys2(__NR_kill, monitor->pid, WAKE_SIGNAL);
                for (int i = 0; i < RESUME_ROUNDS && exec->resume; i++)
                        pause_rounds(1);
        }
        signal_all(monitor, SIGCONT);
}

/* The pid that SESSION_STARTED reported may belong to another process by now. So the signal goes
 * only to a child of the monitor. */
static void signal_exec(const Monitor *monitor, int pid, int signal) {
        (void)look_at_all();
        for (int i = 0; i < processes_count; i++)
                if (processes[i].pid == pid && processes[i].parent == monitor->pid)
                        (void)sys2(__NR_kill, -pid, signal);
}

static void session_obey(const Packet *packet, const int fds[FDS_MAX]) {
        const SessionMessage *message = &packet->message;
        const Monitor *monitor = find_monitor(message->exec, -1);

        if (message->exec == 0)
                return;
        if (message->type == SESSION_KILL && message->value == SIGKILL) {
                if (monitor)
                        doom_exec(monitor);
                return;
        }
        kill_doomed();
        if (message->type == SESSION_EXEC)
                exec_begin(packet, fds);
        else if (message->type == SESSION_KILL && monitor)
                signal_all(monitor, message->value);
        else if (message->type == SESSION_SIGNAL && monitor)
                signal_exec(monitor, (int)message->detail, message->value);
        else if (message->type == SESSION_RESUME && monitor)
                resume_exec(monitor);
}

/* Reaps monitors. A monitor ends by itself when no process is left below it. Continues a monitor
 * that its command has stopped. If a command has killed its monitor, also kills the orphans. */
static void monitors_reap(void) {
        const Roots orphans = { 0 };

        for (;;) {
                int status = 0;
                long pid = sys4(__NR_wait4, -1, (long)&status, WNOHANG | WUNTRACED, 0);
                Monitor *monitor;

                if (pid <= 0)
                        return;
                monitor = find_monitor(0, (int)pid);
                if ((status & 0xff) == 0x7f) {
                        if (monitor)
                                (void)sys2(__NR_kill, pid, SIGCONT);
                        continue;
                }
                if (!monitor)
                        continue;
                if (status)
                        kill_below(&orphans);
                packet_report(SESSION_GONE, monitor->exec, status, 0);
                free_exec(monitor->memory);
                *monitor = (Monitor){ 0 };
        }
}

/* Reads a message, or all messages that follow each other and kill. Returns 0 if the keeper is
 * gone. */
static int control_listen(void) {
        static Packet packet;
        int fds[FDS_MAX];
        long n;

        do {
                n = packet_receive(&packet, fds);
                if (n >= (long)sizeof(packet.message))
                        session_obey(&packet, fds);
                packet_close_fds(fds);
        } while (n > 0 && doomed_count > 0);
        kill_doomed();
        return n > 0 || n == -EAGAIN || n == -EINTR;
}

/* Called by _start (init-sys.h). */
_Noreturn void init_main(long *stack);
_Noreturn void init_main(long *stack) {
        const uint64_t all = ~0ULL, child = 1ULL << (SIGCHLD - 1);
        struct pollfd fds[] = { { .events = POLLIN },
                                { .fd = SESSION_CONTROL_FD, .events = POLLIN } };

        (void)stack;
        (void)sys2(__NR_prctl, PR_SET_DUMPABLE, 0);
        (void)sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8);
        (void)sys3(__NR_fcntl, SESSION_CONTROL_FD, F_SETFD, FD_CLOEXEC);
        fds[0].fd = (int)sys4(__NR_signalfd4, -1, (long)&child, 8, SFD_CLOEXEC_VALUE);
        for (;;) {
                char discarded[SIGNALFD_SIZE];

                if (sys5(__NR_ppoll, (long)fds, 2, 0, 0, 0) < 0)
                        continue;
                if (fds[0].revents) {
                        (void)sys3(__NR_read, fds[0].fd, (long)discarded, SIGNALFD_SIZE);
                        monitors_reap();
                }
                if (fds[1].revents && !control_listen())
                        for (;;)
                                (void)sys1(__NR_exit_group, 0);
        }
}
