/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of IPv4 and IPv6, and the blocks to which no allowed name may resolve. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct NetAddress {
        uint8_t family;    /* AF_INET or AF_INET6 */
        uint8_t bytes[16]; /* network order; IPv4 uses the first four, and the others are 0 */
} NetAddress;

/* The sandbox's own blocks. In both, the name with number n has the address NET_FIRST + n. */
#define NET_POOL4 "198.18.0.0"
#define NET_POOL6 "fd00:686f:6c74::"
enum {
        NET_POOL4_PREFIX = 15,
        NET_POOL6_PREFIX = 64,
        NET_OWN = 1, /* 198.18.0.1 and fd00:686f:6c74::1: the sandbox, with its resolver */
        NET_PROXY_PORT = 3128, /* the port of network.proxy, at the sandbox's own address */
        NET_REDIRECT = 2,      /* 198.18.0.2 and fd00:686f:6c74::2: takes redirected connections */
        NET_REDIRECT_PORT = 1, /* a port that programs do not listen on */
        NET_FIRST = 256,       /* the address of name number 0 */
        NET_NUMBERS_MAX = 65536,
};

/* Returns an address of the sandbox's blocks: NET_OWN, NET_REDIRECT, or 0 for the first of the
 * block.
 */
NetAddress net_address_own(uint8_t family, uint8_t last);
/* Returns the address that stands for name number n, for AF_INET or AF_INET6. number is less than
 * NET_NUMBERS_MAX. */
NetAddress net_address_of_number(uint8_t family, unsigned number);
/* Returns the number of the name, or -ENOENT if the address stands for none. */
int net_address_number(const NetAddress *address);
/* Whether the address lies in the sandbox's own blocks. */
bool net_address_in_pool(const NetAddress *address);

/* 127.0.0.1 and ::1. */
extern const NetAddress net_loopback[2];
/* Whether the address is ::1 or begins with 127. */
bool net_address_is_loopback(const NetAddress *address);

bool net_address_equal(const NetAddress *a, const NetAddress *b);
/* Whether the first `prefix` bits are the same. False if the families differ. */
bool net_address_in(const NetAddress *address, const NetAddress *block, unsigned prefix);
/* Returns why no name may resolve to this address, such as "a loopback address", or NULL if names
 * may. IPv6 addresses that contain an IPv4 address (mapped, NAT64, 6to4, Teredo) are forbidden,
 * because a gateway could turn one into a private address. holt cannot know the addresses of a
 * NAT64 with a prefix of its own. */
const char *net_address_forbidden(const NetAddress *address);
/* Returns the IPv4 address in a mapped one (::ffff:10.0.0.1), and other addresses unchanged. A
 * socket for both families reports IPv4 addresses in the mapped form. */
NetAddress net_address_unmapped(const NetAddress *address);

/* Whether a rule for the block allows the address. A block allows a forbidden address only if all
 * of the block is forbidden for the same reason. So 0.0.0.0/0 means every public address, and
 * 10.0.0.0/8 allows private ones. */
bool net_block_allows(const NetAddress *block, unsigned prefix, const NetAddress *address);
/* Whether TCP can connect to no address of the block, for example because they are multicast. */
bool net_block_useless(const NetAddress *block, unsigned prefix);
/* Whether outer allows every address that inner allows. */
bool net_block_covers(const NetAddress *outer, unsigned outer_prefix, const NetAddress *inner,
                      unsigned inner_prefix);

/* Reads an address in its usual text form (inet_pton(3)): no zones, no octal, no short forms.
 * Returns 0 or -EINVAL. */
int net_address_parse(const char *text, size_t length, NetAddress *ret);
enum { NET_ADDRESS_TEXT = 46 };
/* Writes the usual text form. Returns ret. */
char *net_address_text(const NetAddress *address, char ret[NET_ADDRESS_TEXT]);
