/* SPDX-License-Identifier: Apache-2.0 */
/* Times commands against each other: pace RUNS COMMAND... [++ COMMAND...]...
 *
 * Each command runs RUNS times, in turn with the others (A B A B). So a drift in the machine's
 * speed affects all of them. Prints one line per command: the wall time of each run in ns. Three
 * runs before them do not count. A command that does not exit with 0 ends the program. */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { COMMANDS_MAX = 8, RUNS_MAX = 10000, WARM_UP = 3 };

extern char **environ;

static char **commands[COMMANDS_MAX];
static uint64_t times[COMMANDS_MAX][RUNS_MAX];

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t run(char **command) {
        uint64_t start = now();
        int status;
        pid_t pid;

        if (posix_spawn(&pid, command[0], NULL, NULL, command, environ) != 0 ||
            waitpid(pid, &status, 0) < 0 || status != 0) {
                fprintf(stderr, "pace: %s failed\n", command[0]);
                exit(1);
        }
        return now() - start;
}

int main(int argc, char **argv) {
        int runs = argc > 2 ? atoi(argv[1]) : 0, count = 1;

        if (runs < 1 || runs > RUNS_MAX) {
                fprintf(stderr, "usage: pace RUNS COMMAND... [++ COMMAND...]...\n");
                return 2;
        }
        commands[0] = argv + 2;
        for (int i = 2; i < argc && count < COMMANDS_MAX; i++)
                if (strcmp(argv[i], "++") == 0) {
                        argv[i] = NULL;
                        commands[count++] = argv + i + 1;
                }
        for (int i = -WARM_UP; i < runs; i++)
                for (int c = 0; c < count; c++) {
                        uint64_t time = run(commands[c]);

                        if (i >= 0)
                                times[c][i] = time;
                }
        for (int c = 0; c < count; c++, putchar('\n'))
                for (int i = 0; i < runs; i++)
                        printf("%lu ", (unsigned long)times[c][i]);
        return 0;
}
