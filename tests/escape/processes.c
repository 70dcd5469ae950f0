/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes: their memory, their signals, and too many processes of one's own. */
#include "hostile.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/uio.h>

static char *proc_path(const char *pid, const char *file) {
        static char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
        return path;
}

static void attach(char **args) {
        got(ptrace(PTRACE_SEIZE, atoi(args[0]), NULL, NULL));
}

static void open_memory(char **args) {
        got(open(proc_path(args[0], "mem"), O_RDWR | O_CLOEXEC));
}

/* Returns a mapped address of the process, or a guess if its maps are unreadable. */
static uintptr_t mapped_address(const char *pid) {
        unsigned long address = 0x400000;
        FILE *f = fopen(proc_path(pid, "maps"), "re");

        if (f && fscanf(f, "%lx-", &address) != 1)
                address = 0x400000;
        return address;
}

static void copy_memory(char **args) {
        char byte;
        struct iovec to = { &byte, 1 }, from = { (void *)mapped_address(args[0]), 1 };

        got(process_vm_readv(atoi(args[0]), &to, 1, &from, 1, 0));
}

static void signal_process(char **args) {
        got(kill(atoi(args[0]), 0));
}

/* args[0]: the number that is too high. */
static void too_many_processes(char **args) {
        int max = atoi(args[0]), n = 0, errnum;
        pid_t *children = calloc((size_t)max, sizeof(*children));

        for (; children && n < max; n++) {
                children[n] = fork();
                if (children[n] == 0)
                        for (;;)
                                pause();
                if (children[n] < 0)
                        break;
        }
        errnum = errno;
        for (int i = 0; i < n; i++)
                (void)kill(children[i], SIGKILL);
        for (int i = 0; i < n; i++)
                (void)waitpid(children[i], NULL, 0);
        if (n == max)
                broken("%d processes", n);
        held("%s after %d", errno_name(errnum), n);
}

static void *wait_for_ever(void *arg) {
        for (;;)
                pause();
        return arg;
}

static void too_many_threads(char **args) {
        int max = atoi(args[0]), r = 0, n = 0;
        pthread_attr_t attr;
        pthread_t thread;

        (void)pthread_attr_init(&attr);
        (void)pthread_attr_setstacksize(&attr, 65536);
        while (n < max && (r = pthread_create(&thread, &attr, wait_for_ever, NULL)) == 0)
                n++;
        if (n == max)
                broken("%d threads", n);
        held("%s after %d", errno_name(r), n);
}

static void shared_memory(char **args) {
        got(shmget(atoi(args[0]), 0, 0));
}

static const Attack attacks[] = {
        { "attach", attach, 1 },
        { "open-memory", open_memory, 1 },
        { "copy-memory", copy_memory, 1 },
        { "signal", signal_process, 1 },
        { "too-many", too_many_processes, 1 },
        { "too-many-threads", too_many_threads, 1 },
        { "shared-memory", shared_memory, 1 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
