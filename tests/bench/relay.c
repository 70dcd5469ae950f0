/* SPDX-License-Identifier: Apache-2.0 */
/* relay PORT: copies bytes between clients and 127.0.0.1:PORT, one connection at a time. Prints its
 * own port. It shows how fast a proxy can be that copies. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BLOCK = 128 << 10 };

static char block[BLOCK];

static struct sockaddr_in loopback(int port) {
        return (struct sockaddr_in){ .sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)port),
                                     .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

/* Copies what there is. Returns 0 at the end of the connection. */
static int copy(int from, int to) {
        const ssize_t n = recv(from, block, sizeof(block), 0);

        for (ssize_t done = 0, sent; done < n; done += sent) {
                sent = send(to, block + done, (size_t)(n - done), MSG_NOSIGNAL);
                if (sent < 0)
                        return 0;
        }
        return n > 0;
}

static void relay(int client, int server) {
        struct pollfd fds[] = { { client, POLLIN, 0 }, { server, POLLIN, 0 } };
        int more = 1;

        while (more && poll(fds, 2, -1) > 0) {
                if (fds[0].revents)
                        more = copy(client, server);
                if (more && fds[1].revents)
                        more = copy(server, client);
        }
}

int main(int argc, char **argv) {
        struct sockaddr_in own = loopback(0), other = loopback(argc > 1 ? atoi(argv[1]) : 0);
        socklen_t size = sizeof(own);
        const int listener = socket(AF_INET, SOCK_STREAM, 0);

        if (bind(listener, (struct sockaddr *)&own, size) < 0 || listen(listener, 8) < 0 ||
            getsockname(listener, (struct sockaddr *)&own, &size) < 0)
                return 1;
        printf("%d\n", ntohs(own.sin_port));
        (void)fflush(stdout);
        for (;;) {
                const int client = accept(listener, NULL, NULL);
                const int server = socket(AF_INET, SOCK_STREAM, 0);

                if (connect(server, (struct sockaddr *)&other, sizeof(other)) == 0)
                        relay(client, server);
                (void)close(client);
                (void)close(server);
        }
}
