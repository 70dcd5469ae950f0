/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the first packet of a TCP connection, a SYN, as the kernel's queue shows it. Pure. A
 * program inside chooses most of its bytes. */
#pragma once

#include "policy/net/address.h"

/* One attempt to connect. All bytes are set, so that two can be compared by memcmp(3). */
typedef struct Syn {
        NetAddress from, to;
        uint16_t from_port, to_port;
} Syn;

/* data: an IPv4 or IPv6 packet, which may be cut. *ret_sequence is its sequence number, which stays
 * the same when the packet is sent again. Returns 0, or -EBADMSG if it is not a SYN, is a fragment,
 * or has IPv6 extension headers. */
int syn_read(const uint8_t *data, size_t size, Syn *ret, uint32_t *ret_sequence);
