/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/socket-address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

socklen_t socket_address_set(const NetAddress *address, uint16_t port,
                             struct sockaddr_storage *ret) {
        struct sockaddr_in *in = (struct sockaddr_in *)ret;
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

        *ret = (struct sockaddr_storage){ .ss_family = address->family };
        if (address->family == AF_INET) {
                in->sin_port = htons(port);
                memcpy(&in->sin_addr, address->bytes, 4);
                return sizeof(*in);
        }
        in6->sin6_port = htons(port);
        memcpy(&in6->sin6_addr, address->bytes, 16);
        return sizeof(*in6);
}

void socket_address_get(const struct sockaddr_storage *storage, NetAddress *ret,
                        uint16_t *ret_port) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)storage;
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)storage;

        *ret = (NetAddress){ .family = (uint8_t)storage->ss_family };
        if (storage->ss_family == AF_INET) {
                memcpy(ret->bytes, &in->sin_addr, 4);
                *ret_port = ntohs(in->sin_port);
        } else {
                memcpy(ret->bytes, &in6->sin6_addr, 16);
                *ret_port = ntohs(in6->sin6_port);
        }
}

int socket_address_own(int fd, NetAddress *ret, uint16_t *ret_port) {
        struct sockaddr_storage storage;
        socklen_t length = sizeof(storage);

        if (getsockname(fd, (struct sockaddr *)&storage, &length) < 0)
                return -errno;
        socket_address_get(&storage, ret, ret_port);
        return 0;
}

void socket_set_stream(int fd) {
        const int on = 1;

        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
}

void socket_set_local(int fd) {
        static const char simple[] = "reno"; /* every kernel has it, for everybody */

        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, simple, sizeof(simple) - 1);
}
