/* SPDX-License-Identifier: Apache-2.0 */
/* Between a NetAddress with a port and the kernel's form. */
#pragma once

#include <sys/socket.h>

#include "policy/net/address.h"

/* Returns the length of *ret. */
socklen_t socket_address_set(const NetAddress *address, uint16_t port,
                             struct sockaddr_storage *ret);
/* Reads the address and the port of the socket, or of its peer. Returns 0 or a negative errno. */
int socket_address_own(int fd, NetAddress *ret, uint16_t *ret_port);
int socket_address_peer(int fd, NetAddress *ret, uint16_t *ret_port);
/* The address is one of IPv4 or IPv6. */
void socket_address_get(const struct sockaddr_storage *storage, NetAddress *ret,
                        uint16_t *ret_port);
