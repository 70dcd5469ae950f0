/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to reach a peer. A datagram socket is only connected, which asks for a route and sends
 * nothing. Data is sent only to the loopback. */
#include "hostile.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

static int connected(int type, const char *address, const char *port) {
        struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
        struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = in4.sin_port };
        int is4 = inet_pton(AF_INET, address, &in4.sin_addr) == 1, fd;

        if (!is4 && inet_pton(AF_INET6, address, &in6.sin6_addr) != 1)
                untried("%s is no address", address);
        fd = socket(is4 ? AF_INET : AF_INET6, type | SOCK_CLOEXEC, 0);
        if (fd < 0)
                held("socket: %s", errno_name(errno));
        if (connect(fd, is4 ? (struct sockaddr *)&in4 : (struct sockaddr *)&in6,
                    is4 ? sizeof(in4) : sizeof(in6)) < 0)
                held("%s", errno_name(errno));
        return fd;
}

static void route(char **args) {
        got(connected(SOCK_DGRAM, args[0], args[1]));
}

static void tcp(char **args) {
        if (strncmp(args[0], "127.", 4) != 0 && strcmp(args[0], "::1") != 0)
                untried("a connection is only made to the loopback");
        got(connected(SOCK_STREAM, args[0], args[1]));
}

/* Sends a question and waits for an answer, as from a resolver on the host's loopback. */
static void ask(char **args) {
        struct timeval second = { .tv_sec = 1 };
        char answer[16];
        int fd;

        if (strncmp(args[0], "127.", 4) != 0)
                untried("a datagram is only sent to the loopback");
        fd = connected(SOCK_DGRAM, args[0], args[1]);
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
        if (send(fd, "?", 1, 0) < 0)
                held("%s", errno_name(errno));
        got(recv(fd, answer, sizeof(answer), 0));
}

static void unix_connect(const char *name, int abstract) {
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        size_t len = strlen(name);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                held("socket: %s", errno_name(errno));
        if (len + 2 > sizeof(un.sun_path))
                untried("%s is too long", name);
        memcpy(un.sun_path + abstract, name, len);
        got(connect(fd, (struct sockaddr *)&un,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1)));
}

static void unix_path(char **args) {
        unix_connect(args[0], 0);
}

static void unix_abstract(char **args) {
        unix_connect(args[0], 1);
}

/* args: family, type, protocol as numbers. "+" before the family sets bit 32 too, which the kernel
 * ignores. */
static void family(char **args) {
        unsigned long high = args[0][0] == '+' ? 1UL << 32 : 0;

        got(syscall(SYS_socket, high | strtoul(args[0], NULL, 10), strtoul(args[1], NULL, 10),
                    strtoul(args[2], NULL, 10)));
}

static void family_pair(char **args) {
        int fds[2];

        got(syscall(SYS_socketpair, strtoul(args[0], NULL, 10), strtoul(args[1], NULL, 10), 0,
                    fds));
}

/* Finds an entry of another device than the loopback in a table of /proc/net, below its heading. */
static void other_than_loopback(const char *path, int heading) {
        FILE *f = fopen(path, "re");
        char line[256], name[64];

        if (!f)
                held("%s: %s", path, errno_name(errno));
        for (int i = 0; fgets(line, sizeof(line), f); i++)
                if (i >= heading && sscanf(line, " %63[^: \t]", name) == 1 &&
                    strcmp(name, "lo") != 0)
                        broken("%s", name);
        held("the loopback only");
}

static void interfaces(char **args) {
        (void)args;
        other_than_loopback("/proc/net/dev", 2);
}

static void routes(char **args) {
        (void)args;
        other_than_loopback("/proc/net/route", 1);
}

static const Attack attacks[] = {
        { "route", route, 2 },
        { "tcp", tcp, 2 },
        { "ask", ask, 2 },
        { "unix-path", unix_path, 1 },
        { "unix-abstract", unix_abstract, 1 },
        { "family", family, 3 },
        { "family-pair", family_pair, 2 },
        { "interfaces", interfaces, 0 },
        { "routes", routes, 0 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
