/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a NetAddress with a port to the kernel's form and back, and sets options of sockets. */
#pragma once

#include <sys/socket.h>

#include "policy/net/address.h"

/* Returns the length of *ret. */
socklen_t socket_address_set(const NetAddress *address, uint16_t port,
                             struct sockaddr_storage *ret);
/* Reads the address and the port of the socket. Returns 0 or a negative errno. */
int socket_address_own(int fd, NetAddress *ret, uint16_t *ret_port);
/* Sets options of a TCP socket whose bytes are passed on: send bytes at once, and receive an urgent
 * byte like others. A listener passes these options to its connections. */
void socket_set_stream(int fd);
/* Sets options of a TCP socket whose bytes stay within the machine. Many hosts use BBR, which paces
 * what it sends: that would cost a fifth of a stream. Listeners pass this on, too. */
void socket_set_local(int fd);
/* The address is one of IPv4 or IPv6. */
void socket_address_get(const struct sockaddr_storage *storage, NetAddress *ret,
                        uint16_t *ret_port);
