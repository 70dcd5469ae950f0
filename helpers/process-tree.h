/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the descendants of a process in /proc, and kills all of them. For session-init.c, which has
 * no libc and includes the necessary headers. */
#pragma once

static int is_monitor(int pid);
static void *map_memory(unsigned long size, int fd);

enum {
        PROCESSES_MAX = 65536, /* maximum number of processes that a search visits */
        ROUNDS_MAX = 1000,     /* rounds of searching for more processes */
        ROUNDS_PLAIN = 20,     /* rounds before the whole sandbox is stopped during a round */
        ROUND_PAUSE = 1000000, /* nsec, in which a monitor can notice that no process is left */
};

typedef struct Process {
        int pid, parent;
        int marked; /* belongs to the tree that is searched for */
} Process;

static Process *processes;
static int processes_count;

static long tree_read_number(const char **at, const char *end) {
        long number = 0;

        for (; *at < end && **at >= '0' && **at <= '9'; (*at)++)
                number = number * 10 + (**at - '0');
        return number;
}

/* Returns the parent, from "PID (NAME) STATE PPID ..." (proc_pid_stat(5)); NAME may contain any
 * byte. Returns 0 for a zombie whose parent has not reaped it yet. State Z alone is not enough,
 * because the first thread may end before the others: field 20, the thread count, must be checked
 * too. */
static int read_parent(const char *stat, long length) {
        const char *end = stat + length, *at = end;
        long parent, threads;
        char state;

        while (at > stat && at[-1] != ')')
                at--;
        if (at + 3 >= end)
                return 0;
        state = at[1];
        at += 3;
        parent = tree_read_number(&at, end);
        for (int field = 4; at < end && field < 20; at++)
                field += *at == ' ';
        threads = tree_read_number(&at, end);
        return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : (int)parent;
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
        if (length > 0)
                processes[processes_count++] = (Process){ .pid = pid,
                                                          .parent = read_parent(stat, length) };
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

static int is_marked(int pid) {
        for (int i = 0; i < processes_count; i++)
                if (processes[i].pid == pid)
                        return processes[i].marked;
        return 0;
}

/* Marks the descendants of pid, but not pid itself. For pid 0, marks the orphans that came to init,
 * and their descendants. */
static void mark_below(int pid) {
        int more = 1;

        while (more) {
                more = 0;
                for (int i = 0; i < processes_count; i++) {
                        Process *p = &processes[i];

                        if (p->marked || p->parent == 0)
                                continue;
                        if (pid ? p->parent == pid : p->parent == 1 && !is_monitor(p->pid))
                                p->marked = 1;
                        else if (is_marked(p->parent))
                                p->marked = 1;
                        more |= p->marked;
                }
        }
}

/* Sends the signal to the current descendants of pid. Returns their number, or -1 if some may have
 * been missed. */
static int signal_below(int pid, int signal) {
        int count = 0, all = look_at_all();

        mark_below(pid);
        for (int i = 0; i < processes_count; i++)
                if (processes[i].marked) {
                        (void)sys2(__NR_kill, processes[i].pid, signal);
                        count++;
                }
        return all ? count : -1;
}

/* The result of the last look_at_all(). */
static int is_alive(int pid) {
        for (int i = 0; i < processes_count; i++)
                if (processes[i].pid == pid)
                        return processes[i].parent != 0;
        return 0;
}

static void pause_round(void) {
        const long time[2] = { 0, ROUND_PAUSE };

        (void)sys5(__NR_ppoll, 0, 0, (long)time, 0, 0);
}

/* Kills the descendants once. Returns whether none is left. A process that forks and exits again
 * and again may escape one look at /proc. It has exited when the search comes to it, and its child
 * did not exist when the search began. If all processes are stopped first, none escapes: the kernel
 * does that atomically with respect to fork(2) (kill(2), -1). A monitor ends when none is left;
 * without a monitor, all must be stopped to be sure. */
static int kill_round(int pid, int stop_all) {
        int count;

        if (stop_all)
                (void)sys2(__NR_kill, -1, SIGSTOP);
        count = signal_below(pid, SIGKILL);
        if (stop_all)
                (void)sys2(__NR_kill, -1, SIGCONT);
        if (pid == 0)
                return count == 0;
        (void)sys2(__NR_kill, pid, SIGCONT);
        return count >= 0 && !is_alive(pid);
}

/* First stops all descendants, because a running process could fork faster than the search finds
 * its children. Stopped processes still count against the limit of processes, so forking ends
 * there. Then kills all of them, including a child that has not executed its command yet. If others
 * stop a monitor again and again, it is killed in the end; its descendants then come to init as
 * orphans. */
static void kill_below(int pid) {
        int before = -1, now = 0;

        for (int i = 0; i < ROUNDS_MAX && now != before; i++) {
                before = now;
                now = signal_below(pid, SIGSTOP);
        }
        for (int i = 0; i < ROUNDS_MAX; i++) {
                if (kill_round(pid, pid == 0 || i >= ROUNDS_PLAIN))
                        return;
                if (pid)
                        pause_round();
        }
        if (pid)
                (void)sys2(__NR_kill, pid, SIGKILL);
}
