/* SPDX-License-Identifier: Apache-2.0 */
/* "daemon KIND FILE": leaves a process behind that tries to outlive the sandbox, prints "ready"
 * once that process runs, and then waits forever. The survivor appends a byte to FILE again and
 * again. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static void live(int fd) {
        struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };

        for (;;) {
                if (write(fd, ".", 1) != 1)
                        _exit(1);
                (void)nanosleep(&pause, NULL);
        }
}

static void deaf(void) {
        for (int sig = 1; sig < NSIG; sig++)
                (void)signal(sig, SIG_IGN);
}

static void plain(int fd) {
        if (fork() == 0)
                live(fd);
}

static void own_session(int fd) {
        if (fork() == 0) {
                (void)setsid();
                deaf();
                live(fd);
        }
}

/* Double fork, see daemon(7): no parent is left that a supervisor could follow. */
static void double_fork(int fd) {
        if (fork() != 0)
                return;
        (void)setsid();
        deaf();
        if (fork() != 0)
                _exit(0);
        for (int i = 0; i < 3; i++)
                (void)close(i);
        live(fd);
}

/* Adopts the orphans, so that a supervisor that expects to adopt them gets none. */
static void adopted(int fd) {
        if (fork() != 0)
                return;
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        (void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
        double_fork(fd);
        live(fd);
}

/* A stopped process acts on no signal except KILL and CONT. */
static void stopped(int fd) {
        pid_t pid = fork();

        if (pid == 0)
                live(fd);
        (void)kill(pid, SIGSTOP);
}

/* Ignores TERM in the foreground too. */
static void stubborn(int fd) {
        deaf();
        plain(fd);
}

static void *live_in_thread(void *arg) {
        live(*(const int *)arg);
        return arg;
}

/* Shows as a zombie in /proc, but lives on in another thread. */
static void headless(int fd) {
        static int kept;
        pthread_t thread;

        kept = fd;
        if (fork() != 0)
                return;
        (void)setsid();
        deaf();
        if (pthread_create(&thread, NULL, live_in_thread, &kept) == 0)
                (void)syscall(SYS_exit, 0);
        _exit(1);
}

/* Is not a child of the command, but of the process that started the command. */
static void sibling(int fd) {
        if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) {
                deaf();
                live(fd);
        }
}

static const struct {
        const char *name;
        void (*start)(int fd);
} kinds[] = {
        { "plain", plain },       { "setsid", own_session }, { "double-fork", double_fork },
        { "adopted", adopted },   { "stopped", stopped },    { "stubborn", stubborn },
        { "headless", headless }, { "sibling", sibling },
};

int main(int argc, char **argv) {
        struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
        struct stat st = { 0 };
        int fd;

        if (argc != 3)
                return 2;
        fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (fd < 0)
                return 2;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (strcmp(kinds[i].name, argv[1]) == 0)
                        kinds[i].start(fd);
        while (fstat(fd, &st) == 0 && st.st_size == 0 && strcmp(argv[1], "stopped") != 0)
                (void)nanosleep(&pause, NULL);
        if (write(STDOUT_FILENO, "ready\n", 6) != 6)
                return 2;
        for (;;)
                (void)nanosleep(&(struct timespec){ .tv_sec = 60 }, NULL);
}
