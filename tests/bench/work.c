/* SPDX-License-Identifier: Apache-2.0 */
/* Does work of one kind and times itself, so that the start of a sandbox does not count: work
 * cpu|files|programs|opens|calls RUNS. Prints one line: the ns of each run. "files", "programs" and
 * "opens" use the working directory. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Sums and hashes without system calls. */
static void cpu(void) {
        volatile uint64_t hash = 14695981039346656037U;

        for (int i = 0; i < 4000000; i++)
                hash = (hash ^ (uint64_t)i) * 1099511628211U;
}

/* Makes, writes, stats, reads and removes files, like a build or a package manager. */
static void files(void) {
        static char data[16384];
        char name[32];
        struct stat st;

        for (int i = 0; i < 200; i++) {
                int fd;

                snprintf(name, sizeof(name), "work-%d", i);
                fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
                if (fd < 0 || write(fd, data, sizeof(data)) < 0 || close(fd) < 0 ||
                    stat(name, &st) < 0) {
                        perror(name);
                        exit(1);
                }
                fd = open(name, O_RDONLY);
                while (read(fd, data, sizeof(data)) > 0)
                        ;
                close(fd);
        }
        for (int i = 0; i < 200; i++) {
                snprintf(name, sizeof(name), "work-%d", i);
                unlink(name);
        }
}

enum { OPENED = 5000, IN_DIRECTORY = 100 };

static void opens_make(void) {
        char name[64] = "";

        mkdir("tree", 0755);
        for (int i = 0; i < OPENED; i++) {
                int fd;

                snprintf(name, sizeof(name), "tree/part-%d", i / IN_DIRECTORY);
                mkdir(name, 0755);
                snprintf(name, sizeof(name), "tree/part-%d/source", i / IN_DIRECTORY);
                mkdir(name, 0755);
                snprintf(name, sizeof(name), "tree/part-%d/source/file-%d", i / IN_DIRECTORY, i);
                fd = open(name, O_WRONLY | O_CREAT, 0644);
                if (fd < 0 || write(fd, name, sizeof(name)) < 0) {
                        perror(name);
                        exit(1);
                }
                close(fd);
        }
}

static void opens_make_once(void) {
        static int made;

        if (!made++)
                opens_make();
}

/* Opens and reads files three directories deep, like a search. The first run makes them. */
static void opens(void) {
        static char data[4096];
        char name[64];

        opens_make_once();
        for (int i = 0; i < OPENED; i++) {
                int fd;

                snprintf(name, sizeof(name), "tree/part-%d/source/file-%d", i / IN_DIRECTORY, i);
                fd = open(name, O_RDONLY);

                while (read(fd, data, sizeof(data)) > 0)
                        ;
                close(fd);
        }
}

/* Copies, packs, searches and removes 500 files of opens() with the programs that people use. */
static void programs(void) {
        opens_make_once();
        if (system("mkdir copy && cp -r tree/part-[0-4] copy && tar -cf copy.tar copy && "
                   "! grep -rq nothing copy && rm -r copy copy.tar") != 0) {
                fprintf(stderr, "cp, tar, grep or rm failed\n");
                exit(1);
        }
}

/* Makes the cheapest system call, uncached by libc: shows what the filter costs each call. */
static void calls(void) {
        for (int i = 0; i < 50000; i++)
                syscall(SYS_getppid);
}

int main(int argc, char **argv) {
        static const struct {
                const char *name;
                void (*run)(void);
        } kinds[] = { { "cpu", cpu },
                      { "files", files },
                      { "programs", programs },
                      { "opens", opens },
                      { "calls", calls } };
        int runs = argc == 3 ? atoi(argv[2]) : 0;

        for (size_t k = 0; argc == 3 && k < sizeof(kinds) / sizeof(kinds[0]); k++)
                for (int i = -2; strcmp(kinds[k].name, argv[1]) == 0 && i < runs; i++) {
                        uint64_t start = now();

                        kinds[k].run();
                        if (i >= 0)
                                printf("%lu ", (unsigned long)(now() - start));
                }
        putchar('\n');
        return 0;
}
