/* SPDX-License-Identifier: Apache-2.0 */
/* exec SESSION_DIRECTORY RUNS COMMAND [ARG...]: compares posix_spawn(3) on the host with the method
 * "exec" of a live session. It runs COMMAND by turns and prints wall times in ns: one line for the
 * host, one for the session. A third line has those of the method "kv.set". */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* A keeper first needs a proof that its client is in its own user namespace. */
static void prove(int fd) {
        int proof = open("/proc/self/ns/user", O_RDONLY);
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
                                  .cmsg_level = SOL_SOCKET,
                                  .cmsg_type = SCM_RIGHTS } };
        struct iovec line = { (char[]){ '\n' }, 1 };
        struct msghdr message = { .msg_iov = &line,
                                  .msg_iovlen = 1,
                                  .msg_control = &control,
                                  .msg_controllen = sizeof(control) };

        memcpy(CMSG_DATA(&control.header), &proof, sizeof(proof));
        if (proof < 0 || sendmsg(fd, &message, 0) != 1)
                exit(1);
        close(proof);
}

static int connect_to(const char *directory) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int dir = open(directory, O_PATH | O_DIRECTORY);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/keeper.sock", dir);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
                perror("connect");
                exit(1);
        }
        close(dir);
        prove(fd);
        return fd;
}

/* Sends one request and reads its reply, which is one line. */
static long ask(int fd, const char *request, size_t length, const char *expected) {
        static char answer[1 << 16];
        size_t have = 0;
        long start = now(), end;

        if (write(fd, request, length) != (ssize_t)length)
                exit(1);
        do {
                ssize_t n = read(fd, answer + have, sizeof(answer) - 1 - have);

                if (n <= 0)
                        exit(1);
                have += (size_t)n;
        } while (answer[have - 1] != '\n');
        end = now();
        answer[have] = '\0';
        if (!strstr(answer, expected)) {
                fprintf(stderr, "%s", answer);
                exit(1);
        }
        return end - start;
}

static long spawn(char **argv) {
        long start = now();
        int status;
        pid_t pid;

        if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0)
                exit(1);
        return now() - start;
}

static size_t make_exec(char *request, size_t size, char **argv) {
        size_t n = (size_t)snprintf(
                request, size,
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{\"argv\":[");

        for (char **word = argv; *word; word++)
                n += (size_t)snprintf(request + n, size - n, "%s\"%s\"", word == argv ? "" : ",",
                                      *word);
        return n + (size_t)snprintf(request + n, size - n, "]}}\n");
}

static void print(const long *times, int runs) {
        for (int i = 0; i < runs; i++)
                printf("%ld ", times[i]);
        printf("\n");
}

int main(int argc, char **argv) {
        int runs = argc > 3 ? atoi(argv[2]) : 0;
        long *host = calloc((size_t)runs + 1, sizeof(long)),
             *inside = calloc((size_t)runs + 1, sizeof(long));
        long *kv = calloc((size_t)runs + 1, sizeof(long));
        char request[4096], set[256];
        size_t length;
        int fd;

        if (runs <= 0) {
                fprintf(stderr, "usage: exec SESSION_DIRECTORY RUNS COMMAND [ARG...]\n");
                return 2;
        }
        fd = connect_to(argv[1]);
        length = make_exec(request, sizeof(request), argv + 3);
        for (int i = -5; i < runs; i++) {
                long a = spawn(argv + 3), b = ask(fd, request, length, "\"exit_code\":0");
                int n = snprintf(set, sizeof(set),
                                 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"kv.set\",\"params\":{"
                                 "\"key\":\"k%d\",\"value\":\"v\"}}\n",
                                 i);
                long c = ask(fd, set, (size_t)n, "\"result\"");

                if (i < 0)
                        continue;
                host[i] = a;
                inside[i] = b;
                kv[i] = c;
        }
        print(host, runs);
        print(inside, runs);
        print(kv, runs);
        return 0;
}
