/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the first packet of a TCP connection, a SYN, as the kernel's queue shows it. Pure. A
 * program inside has made most of its bytes. */
#pragma once

#include "policy/net/address.h"

/* One attempt to connect. All bytes are set, so that two can be compared by memcmp(3). */
typedef struct Syn {
        NetAddress from, to;
        uint16_t from_port, to_port;
} Syn;

/* data: an IPv4 or IPv6 packet, whose end may be missing. *ret_sequence is the sequence number: a
 * packet that is sent again has the same one. Returns 0, or -EBADMSG if it is no SYN, or if its
 * headers are of a rare kind (IPv6 extension headers, fragments). */
int syn_read(const uint8_t *data, size_t size, Syn *ret, uint32_t *ret_sequence);
