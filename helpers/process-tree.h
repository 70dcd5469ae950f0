/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the descendants of processes in /proc, and kills all of them. For session-init.c, which has
 * no libc and includes the necessary headers. */
#pragma once

static int is_monitor(int pid);
static void *map_memory(unsigned long size, int fd);

enum {
        PROCESSES_MAX = 65536, /* maximum number of processes that a search visits */
        ROUNDS_MAX = 1000,     /* rounds of searching for more processes */
        ROUNDS_PLAIN = 20,     /* rounds before the whole sandbox is stopped during a round */
        ROUNDS_QUIET = 60,     /* rounds in which nothing runs before the monitors are killed */
        ROUND_PAUSE = 1000000, /* nsec, in which a monitor can notice that no process is left */
        KILLED = 0x400,        /* PF_SIGNALED: a signal has killed the process with its threads */
};

typedef struct Process {
        int pid, parent;
        int root;   /* its descendants are searched for */
        int marked; /* is such a descendant */
        int held;   /* it is dead, but its tracer holds it before its end (PTRACE_O_TRACEEXIT) */
} Process;

/* The processes whose descendants are searched for. A count of 0 means the orphans that came to
 * init, and their descendants. */
typedef struct Roots {
        const int *pids;
        int count;
} Roots;

static Process *processes;
static int processes_count;

static long tree_read_number(const char **at, const char *end) {
        long number = 0;

        for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
                number = number * 10 + (**at - '0');
        return number;
}

static void tree_skip_fields(const char **at, const char *end, int count) {
        for (; *at < end && count > 0; (*at)++)
                count -= **at == ' ';
}

/* Reads "PID (NAME) STATE PPID ..." (proc_pid_stat(5)); NAME may contain any byte. The parent is 0
 * for a zombie whose parent has not reaped it yet. State Z alone is not enough, because the first
 * thread may end before the others: field 20, the thread count, must be checked too. Field 9 has
 * the flags. */
static void read_stat(Process *process, const char *stat, long length) {
        const char *end = stat + length, *at = end;
        long threads, flags;
        char state;

        while (at > stat && at[-1] != ')')
                at--;
        if (at + 3 >= end)
                return;
        state = at[1];
        at += 3;
        process->parent = (int)tree_read_number(&at, end);
        tree_skip_fields(&at, end, 9 - 4);
        flags = tree_read_number(&at, end);
        tree_skip_fields(&at, end, 20 - 9);
        threads = tree_read_number(&at, end);
        if ((state == 'Z' || state == 'X') && threads <= 1)
                process->parent = 0;
        process->held = state == 't' && flags & KILLED;
}

/* Returns 0 if the process exists but cannot be read. */
static int look_at_process(int proc_fd, const char *name) {
        char path[32], stat[512];
        int pid = 0, n = 0;
        long fd, length;

        for (; name[n] >= '0' && name[n] <= '9' && n < 9; n++) {
                pid = pid * 10 + (name[n] - '0');
                path[n] = name[n];
        }
        if (n == 0 || pid == 1 || processes_count == PROCESSES_MAX)
                return 1;
        for (int i = 0; i < 6; i++)
                path[n + i] = "/stat"[i];
        fd = sys4(__NR_openat, proc_fd, (long)path, O_CLOEXEC, 0);
        if (fd < 0)
                return fd == -ENOENT;
        length = sys3(__NR_read, fd, (long)stat, sizeof(stat));
        (void)sys1(__NR_close, fd);
        if (length > 0) {
                Process *process = &processes[processes_count++];

                *process = (Process){ .pid = pid };
                read_stat(process, stat, length);
        }
        return length > 0 || length == -ESRCH;
}

/* Returns 0 if a part of /proc cannot be read, for example because memory is out: processes may
 * then be missed. */
static int look_at_all(void) {
        /* struct linux_dirent64: u64 inode, s64 offset, u16 length, u8 type, name */
        static char entries[8192] __attribute__((aligned(8)));
        long fd, n;
        int all = 1;

        processes_count = 0;
        if (!processes)
                processes = map_memory(PROCESSES_MAX * sizeof(*processes), -1);
        if (!processes)
                return 0;
        fd = sys4(__NR_openat, AT_FDCWD_VALUE, (long)"/proc", O_DIRECTORY | O_CLOEXEC, 0);
        if (fd < 0)
                return 0;
        while ((n = sys3(__NR_getdents64, fd, (long)entries, sizeof(entries))) > 0)
                for (long i = 0; i < n; i += *(uint16_t *)(void *)(entries + i + 16))
                        all &= look_at_process((int)fd, entries + i + 19);
        (void)sys1(__NR_close, fd);
        return all && n == 0;
}

/* /proc lists processes in the order of their PIDs. */
static Process *find_process(int pid) {
        int low = 0, high = processes_count;

        while (low < high) {
                const int middle = (low + high) / 2;

                if (processes[middle].pid < pid)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < processes_count && processes[low].pid == pid ? &processes[low] : (Process *)0;
}

static int is_root(int pid, const Roots *roots) {
        for (int i = 0; i < roots->count; i++)
                if (roots->pids[i] == pid)
                        return 1;
        return 0;
}

/* A root itself may be missing in the list, because it could not be read. */
static int process_is_below(const Process *process, const Roots *roots) {
        const Process *parent = find_process(process->parent);

        if (roots->count == 0 && process->parent == 1)
                return !is_monitor(process->pid);
        return parent ? parent->root || parent->marked : is_root(process->parent, roots);
}

/* Marks the descendants of the roots, but not the roots themselves. */
static void mark_below(const Roots *roots) {
        int more = 1;

        for (int i = 0; i < roots->count; i++) {
                Process *root = find_process(roots->pids[i]);

                if (root)
                        root->root = 1;
        }
        while (more) {
                more = 0;
                for (int i = 0; i < processes_count; i++) {
                        Process *p = &processes[i];

                        if (p->marked || p->parent == 0 || !process_is_below(p, roots))
                                continue;
                        p->marked = more = 1;
                }
        }
}

/* Sends the signal to the current descendants of the roots. Returns the number of those that still
 * run, or -1 if some may have been missed. */
static int signal_below(const Roots *roots, int signal) {
        int count = 0, all = look_at_all();

        mark_below(roots);
        for (int i = 0; i < processes_count; i++)
                if (processes[i].marked) {
                        (void)sys2(__NR_kill, processes[i].pid, signal);
                        count += !processes[i].held;
                }
        return all ? count : -1;
}

/* Whether the last look_at_all() saw a root that has not ended. */
static int is_alive(const Roots *roots) {
        for (int i = 0; i < roots->count; i++) {
                const Process *root = find_process(roots->pids[i]);

                if (root && root->parent != 0)
                        return 1;
        }
        return 0;
}

static void signal_roots(const Roots *roots, int signal) {
        for (int i = 0; i < roots->count; i++)
                (void)sys2(__NR_kill, roots->pids[i], signal);
}

static void pause_rounds(int count) {
        const long time[2] = { 0, (long)count * ROUND_PAUSE };

        (void)sys5(__NR_ppoll, 0, 0, (long)time, 0, 0);
}

/* Kills the descendants once. Returns like signal_below(). A process that forks and exits again
 * and again may escape one look at /proc. It has exited when the search comes to it, and its child
 * did not exist when the search began. If all processes are stopped first, none escapes: the kernel
 * does that atomically with respect to fork(2) (kill(2), -1). A monitor ends when none is left;
 * without a monitor, all must be stopped to be sure. */
static int kill_round(const Roots *roots, int stop_all) {
        int count;

        if (stop_all)
                (void)sys2(__NR_kill, -1, SIGSTOP);
        count = signal_below(roots, SIGKILL);
        if (stop_all)
                (void)sys2(__NR_kill, -1, SIGCONT);
        signal_roots(roots, SIGCONT);
        return count;
}

/* First stops all descendants, because a running process could fork faster than the search finds
 * its children. Stopped processes still count against the limit of processes, so forking ends
 * there. Then kills all of them, including a child that has not executed its command yet. A monitor
 * may go on although nothing runs below it: others stop it again and again, or a tracer holds its
 * child. It is killed in the end; its descendants then come to init as orphans. The roots must be
 * children of init that it has not reaped. */
static void kill_below(const Roots *roots) {
        int before = -1, now = 0, quiet = 0;

        for (int i = 0; i < ROUNDS_MAX && now != before; i++) {
                before = now;
                now = signal_below(roots, SIGSTOP);
        }
        for (int i = 0; i < ROUNDS_MAX && quiet < ROUNDS_QUIET; i++) {
                now = kill_round(roots, roots->count == 0 || i >= ROUNDS_PLAIN);
                if (roots->count == 0 ? now == 0 : now >= 0 && !is_alive(roots))
                        return;
                quiet = now == 0 ? quiet + 1 : 0;
                if (roots->count)
                        pause_rounds(quiet > ROUNDS_PLAIN ? 10 : 1);
        }
        signal_roots(roots, SIGKILL);
}
