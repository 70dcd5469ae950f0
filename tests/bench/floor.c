/* SPDX-License-Identifier: Apache-2.0 */
/* floor RUNS COMMAND: prints a table of the parts of a bare sandbox: fork, exec, each namespace.
 * The parts run in turn, so that a change in the machine's speed affects all of them. */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUNS_MAX = 5000 };

#define ALL_BUT_NET                                                                                \
        (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static const struct {
        const char *what;
        uint64_t flags;
        int exec;
} parts[] = {
        { "clone3 and exit", 0, 0 },
        { "  with exec", 0, 1 },
        { "  with a user namespace", CLONE_NEWUSER, 0 },
        { "  with user and mount", CLONE_NEWUSER | CLONE_NEWNS, 0 },
        { "  with user and pid", CLONE_NEWUSER | CLONE_NEWPID, 0 },
        { "  with user and ipc", CLONE_NEWUSER | CLONE_NEWIPC, 0 },
        { "  with user and uts", CLONE_NEWUSER | CLONE_NEWUTS, 0 },
        { "  with user and cgroup", CLONE_NEWUSER | CLONE_NEWCGROUP, 0 },
        { "  with user and net", CLONE_NEWUSER | CLONE_NEWNET, 0 },
        { "  with all but net", ALL_BUT_NET, 0 },
        { "  with all", ALL_BUT_NET | CLONE_NEWNET, 0 },
        { "  with all, and exec: bare clone3", ALL_BUT_NET | CLONE_NEWNET, 1 },
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static long times[PARTS][RUNS_MAX];

static long now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long run(int part, char **command) {
        struct clone_args args = { .flags = parts[part].flags, .exit_signal = SIGCHLD };
        long start = now(), pid = syscall(SYS_clone3, &args, sizeof(args));
        int status;

        if (pid == 0) {
                if (parts[part].exec)
                        execv(command[0], command);
                _exit(parts[part].exec);
        }
        if (pid < 0 || waitpid((pid_t)pid, &status, 0) < 0 || status != 0) {
                fprintf(stderr, "floor: failed:%s\n", parts[part].what);
                exit(1);
        }
        return now() - start;
}

static int compare(const void *a, const void *b) {
        long x = *(const long *)a, y = *(const long *)b;

        return (x > y) - (x < y);
}

int main(int argc, char **argv) {
        int runs = argc == 3 ? atoi(argv[1]) : 0;

        if (runs < 1 || runs > RUNS_MAX) {
                fprintf(stderr, "usage: floor RUNS COMMAND\n");
                return 2;
        }
        for (int i = 0; i < runs; i++)
                for (int part = 0; part < PARTS; part++)
                        times[part][i] = run(part, argv + 2);
        printf("%-36s %10s %10s\n", "microseconds", "fastest 10%", "median");
        for (int part = 0; part < PARTS; part++) {
                qsort(times[part], (size_t)runs, sizeof(long), compare);
                printf("%-36s %10ld %10ld\n", parts[part].what, times[part][runs / 10] / 1000,
                       times[part][runs / 2] / 1000);
        }
        return 0;
}
