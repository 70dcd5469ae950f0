/* SPDX-License-Identifier: Apache-2.0 */
/* A server and clients of TCP, for the bench of the network:
 *
 *     net serve ADDRESS PORT               answers each connection
 *     net connects ADDRESS PORT COUNT      connects COUNT times in turn, with a byte each way
 *     net many ADDRESS PORT COUNT          the same with COUNT connections open at once
 *     net streams ADDRESS PORT COUNT MIB   receives MIB over COUNT connections at once
 *
 * A client prints one line: the ns of each connection, or of everything. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 1 << 18 };

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fail(const char *what) {
        perror(what);
        exit(1);
}

static struct sockaddr_in address_of(char **argv) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_port = htons((uint16_t)atoi(argv[3])) };

        if (inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
                fail(argv[2]);
        return address;
}

static void answer_http(int fd) {
        static const char page[] = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";
        char head[4096];

        if (read(fd, head, sizeof(head)) > 0)
                (void)!write(fd, page, sizeof(page) - 1);
}

/* A client begins with "p" for one byte, "s" and a MIB count of four bytes, or a GET in one
 * piece. */
static void *answer(void *arg) {
        static char data[CHUNK];
        int fd = (int)(intptr_t)arg;
        char command = 0;
        uint32_t mib = 0;

        if (read(fd, &command, 1) == 1 && command == 'p')
                (void)!write(fd, "p", 1);
        if (command == 's' && read(fd, &mib, sizeof(mib)) == sizeof(mib))
                for (uint64_t left = (uint64_t)mib << 20; left > 0;) {
                        ssize_t n = write(fd, data, left < CHUNK ? left : CHUNK);

                        if (n <= 0)
                                break;
                        left -= (uint64_t)n;
                }
        if (command == 'G')
                answer_http(fd);
        (void)!read(fd, &command, 1);
        close(fd);
        return NULL;
}

static void serve(char **argv) {
        struct sockaddr_in address = address_of(argv);
        int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
        pthread_attr_t attributes;

        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 4096) < 0)
                fail("listen");
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, 64 * 1024);
        puts("ready");
        fflush(stdout);
        for (;;) {
                pthread_t thread;
                int peer = accept(fd, NULL, NULL);

                if (peer < 0)
                        continue;
                setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                if (pthread_create(&thread, &attributes, answer, (void *)(intptr_t)peer) != 0)
                        close(peer);
        }
}

static int client(const struct sockaddr_in *address) {
        int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

        if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
                fail("connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        return fd;
}

static void ping(int fd) {
        char byte;

        if (write(fd, "p", 1) != 1 || read(fd, &byte, 1) != 1)
                fail("first byte");
}

static void connects(const struct sockaddr_in *address, int count) {
        for (int i = 0; i < count; i++) {
                uint64_t start = now();
                int fd = client(address);

                ping(fd);
                printf("%lu ", (unsigned long)(now() - start));
                close(fd);
        }
}

static void many(const struct sockaddr_in *address, int count) {
        int *fds = calloc((size_t)count, sizeof(*fds));
        uint64_t start = now();

        for (int i = 0; i < count; i++)
                fds[i] = client(address);
        for (int i = 0; i < count; i++)
                ping(fds[i]);
        printf("%lu", (unsigned long)(now() - start));
}

static uint32_t each; /* The MIB that each stream receives. */

/* Counts bytes and does not wait for the end of the stream, which an old pasta loses. */
static void *receive(void *arg) {
        char *data = malloc(CHUNK);
        int fd = (int)(intptr_t)arg;
        uint64_t left = (uint64_t)each << 20;
        ssize_t n;

        while (left > 0 && (n = read(fd, data, CHUNK)) > 0)
                left -= (uint64_t)n;
        if (left > 0)
                fail("stream");
        free(data);
        return NULL;
}

static void streams(const struct sockaddr_in *address, int count, uint32_t mib) {
        pthread_t *threads = calloc((size_t)count, sizeof(*threads));
        uint64_t start = now();

        each = mib / (uint32_t)count;

        for (int i = 0; i < count; i++) {
                int fd = client(address);

                if (write(fd, "s", 1) != 1 || write(fd, &each, sizeof(each)) != sizeof(each))
                        fail("write");
                pthread_create(&threads[i], NULL, receive, (void *)(intptr_t)fd);
        }
        for (int i = 0; i < count; i++)
                pthread_join(threads[i], NULL);
        printf("%lu", (unsigned long)(now() - start));
}

int main(int argc, char **argv) {
        struct rlimit files = { 8192, 8192 };
        struct sockaddr_in address;

        signal(SIGPIPE, SIG_IGN);
        (void)setrlimit(RLIMIT_NOFILE, &files);
        if (argc < 4)
                return 1;
        address = address_of(argv);
        if (strcmp(argv[1], "serve") == 0)
                serve(argv);
        else if (strcmp(argv[1], "connects") == 0 && argc == 5)
                connects(&address, atoi(argv[4]));
        else if (strcmp(argv[1], "many") == 0 && argc == 5)
                many(&address, atoi(argv[4]));
        else if (strcmp(argv[1], "streams") == 0 && argc == 6)
                streams(&address, atoi(argv[4]), (uint32_t)atoi(argv[5]));
        else
                return 1;
        putchar('\n');
        return 0;
}
