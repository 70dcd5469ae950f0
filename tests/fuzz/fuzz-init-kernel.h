/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the fake kernel of fuzz-init.c: the input that decides its answers, processes, fds
 * and memory. Include it after helpers/session-init.c, whose types it uses. */
#pragma once

#include "tests/fuzz/harness.h"

enum {
        OPEN_FDS = 64,
        PEOPLE = 64, /* processes in the fake /proc */
        MAPS = 4096,
        NESTED = 3,      /* init, a monitor, a command */
        FORKS_MAX = 200, /* made by one input's processes while they are searched */
};

/* --- the input --- */

static Input input;

static unsigned take(void) {
        return take_byte(&input);
}

static int is_over(void) {
        return input.at == input.end;
}

/* Returns an errno one time out of sixteen. */
static long may_fail(void) {
        const unsigned byte = is_over() ? 1 : take();

        return byte % 16 ? 0 : -(long)(1 + byte / 16 + (take() & 63));
}

/* --- the kernel's state --- */

typedef enum Kind { FD_CLOSED, FD_PLAIN, FD_PROC, FD_STAT, FD_SOCKET, FD_SIGNAL } Kind;

typedef struct Open {
        Kind kind;
        int pid;  /* for FD_STAT */
        int read; /* for FD_PROC: the end was reached */
} Open;

typedef struct Person {
        int pid, parent; /* 0: the slot is free */
        int is_monitor, zombie, answers;
        Exec *exec; /* for a monitor, until it has ended */
} Person;

typedef struct Map {
        void *memory;
        unsigned long size;
} Map;

static struct {
        Open fds[NESTED][OPEN_FDS]; /* for each level that runs now */
        int level;
        jmp_buf ends[NESTED];
        int self[NESTED]; /* pids */
        Person people[PEOPLE];
        Map maps[MAPS];
        int last_pid, forks, gone_due;
        int closed; /* the keeper has closed its end */
        uint32_t gone_exec;
} kernel;

static Person *find_person(int pid) {
        for (int i = 0; i < PEOPLE; i++)
                if (kernel.people[i].pid == pid && pid)
                        return &kernel.people[i];
        return (Person *)0;
}

static Person *add_person(int parent) {
        for (int i = 0; i < PEOPLE; i++)
                if (!kernel.people[i].pid) {
                        kernel.people[i] = (Person){ .pid = ++kernel.last_pid, .parent = parent };
                        return &kernel.people[i];
                }
        return (Person *)0;
}

/* Returns the process that inherits orphans: the nearest monitor, otherwise init. */
static int subreaper(int pid) {
        const Person *p = find_person(pid);

        while (p && !p->is_monitor)
                p = find_person(p->parent);
        return p && !p->zombie ? p->pid : 1;
}

static void remove_person(Person *person) {
        const int to = person->is_monitor ? 1 : subreaper(person->parent);

        for (int i = 0; i < PEOPLE; i++)
                if (kernel.people[i].parent == person->pid)
                        kernel.people[i].parent = to;
        if (person->is_monitor)
                person->zombie = 1;
        else
                *person = (Person){ 0 };
}

static int has_children(int pid) {
        for (int i = 0; i < PEOPLE; i++)
                if (kernel.people[i].pid && kernel.people[i].parent == pid)
                        return 1;
        return 0;
}

/* --- fds --- */

static Open *fd_at(long fd) {
        return fd >= 0 && fd < OPEN_FDS && kernel.fds[kernel.level][fd].kind
                       ? &kernel.fds[kernel.level][fd]
                       : (Open *)0;
}

static long open_fd(Kind kind, int pid) {
        for (long fd = 0; fd < OPEN_FDS; fd++)
                if (!kernel.fds[kernel.level][fd].kind) {
                        kernel.fds[kernel.level][fd] = (Open){ .kind = kind, .pid = pid };
                        return fd;
                }
        return -EMFILE;
}

static long close_fd(long fd) {
        Open *open = fd_at(fd);

        /* init also closes fds that could not be opened. Closing any other fd that is not open is a
         * bug. */
        REQUIRE(fd < 0 || open);
        if (open)
                *open = (Open){ 0 };
        return 0;
}

static int count_fds(void) {
        int count = 0;

        for (long fd = 0; fd < OPEN_FDS; fd++)
                count += fd_at(fd) != (Open *)0;
        return count;
}

/* Whether only the socket, the fds of the monitor's start and its signalfd are open. A reader of
 * the terminal must see its end. */
static int only_signals_open(void) {
        for (long fd = SESSION_CONTROL_FD + 1; fd < OPEN_FDS; fd++)
                if (fd_at(fd) && fd_at(fd)->kind != FD_SIGNAL)
                        return 0;
        return 1;
}

/* --- memory --- */

static void fill(char *at, unsigned long size) {
        const unsigned period = 1 + take() % 32;

        for (unsigned long i = 0; i < size; i++)
                at[i] = i < 128 ? (char)take() : i % period ? 'x' : '\0';
}

/* Maps exactly the requested size, so that ASan finds accesses beside it. */
static long map(unsigned long size, long fd, int of_file) {
        for (int i = 0; i < MAPS; i++) {
                Map *map = &kernel.maps[i];
                long r = map->memory ? 0 : may_fail();

                if (map->memory)
                        continue;
                if (r < 0 || size == 0)
                        return r < 0 ? r : -EINVAL;
                if (of_file && !fd_at(fd))
                        return -EBADF;
                REQUIRE(size <= 20UL * SESSION_BLOCK_MAX);
                *map = (Map){ __builtin_calloc(1, size), size };
                REQUIRE(map->memory);
                if (of_file)
                        fill(map->memory, size);
                return (long)map->memory;
        }
        return -ENOMEM;
}

static long unmap_at(void *memory, unsigned long size) {
        for (int i = 0; i < MAPS; i++)
                if (kernel.maps[i].memory == memory) {
                        REQUIRE(kernel.maps[i].size == size);
                        __builtin_free(memory);
                        kernel.maps[i] = (Map){ 0 };
                        return 0;
                }
        FAIL("memory that is not there is given back");
        return -EINVAL;
}

static int count_maps(void) {
        int count = 0;

        for (int i = 0; i < MAPS; i++)
                count += kernel.maps[i].memory != (void *)0;
        return count;
}
