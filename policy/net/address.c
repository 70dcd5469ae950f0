/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/net/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"

typedef struct AddressBlock {
        uint8_t family;
        uint8_t prefix;
        uint8_t bytes[16];
        const char *what; /* for people, after "resolves to" */
        bool useless;     /* no TCP connection reaches it */
} AddressBlock;

#define V4(n, a, b, c, d, text)                                                                    \
        { .family = AF_INET, .prefix = (n), .bytes = { (a), (b), (c), (d) }, .what = (text) }
#define V4_USELESS(n, a, text)                                                                     \
        { .family = AF_INET, .prefix = (n), .bytes = { (a) }, .what = (text), .useless = true }
#define V6(n, text, ...)                                                                           \
        { .family = AF_INET6, .prefix = (n), .bytes = { __VA_ARGS__ }, .what = (text) }
#define V6_USELESS(n, a, text)                                                                     \
        { .family = AF_INET6, .prefix = (n), .bytes = { (a) }, .what = (text), .useless = true }

/* Blocks with a special meaning, from the registries of IANA (RFC 6890) and the clouds' manuals.
 * The first row that contains an address describes it, so a smaller block comes before the larger
 * one around it. Documentation blocks such as 192.0.2.0/24 are missing on purpose: nothing answers
 * there, and tests use them as public addresses. */
static const AddressBlock address_blocks[] = {
        V4_USELESS(8, 0, "an unspecified address, which means this machine"),
        V4(8, 127, 0, 0, 0, "a loopback address"),
        V4(32, 169, 254, 169, 254, "the metadata service of a cloud"),
        V4(32, 168, 63, 129, 16, "the metadata service of a cloud"),   /* Azure */
        V4(32, 100, 100, 100, 200, "the metadata service of a cloud"), /* Alibaba */
        V4(32, 192, 0, 0, 192, "the metadata service of a cloud"),     /* Oracle */
        V4(16, 169, 254, 0, 0, "a link-local address"),
        V4(8, 10, 0, 0, 0, "a private address"),
        V4(12, 172, 16, 0, 0, "a private address"),
        V4(16, 192, 168, 0, 0, "a private address"),
        V4(10, 100, 64, 0, 0, "an address behind a carrier's NAT"),
        V4(24, 192, 0, 0, 0, "an address of a protocol, not of a server"),
        V4(24, 192, 88, 99, 0, "a 6to4 relay"),
        V4(15, 198, 18, 0, 0, "a benchmark address, which the sandbox uses itself"),
        V4_USELESS(4, 224, "a multicast address"),
        V4(32, 255, 255, 255, 255, "the broadcast address"),
        V4_USELESS(4, 240, "a reserved address"),

        V6_USELESS(128, 0, "an unspecified address, which means this machine"),
        V6(128, "a loopback address", [15] = 1),
        V6(96, "an IPv4 address inside an IPv6 address", [10] = 0xff, 0xff),     /* mapped */
        V6(96, "an IPv4 address inside an IPv6 address", [8] = 0xff, 0xff),      /* RFC 2765 */
        V6(96, "an IPv4 address inside an IPv6 address", 0),                     /* compatible */
        V6(96, "an IPv4 address behind NAT64", 0x00, 0x64, 0xff, 0x9b),          /* RFC 6052 */
        V6(48, "an IPv4 address behind NAT64", 0x00, 0x64, 0xff, 0x9b, 0x00, 1), /* RFC 8215 */
        V6(64, "an address that discards all packets", 0x01),                    /* RFC 6666 */
        V6(32, "a Teredo address", 0x20, 0x01, 0x00, 0x00),
        V6(48, "a benchmark address", 0x20, 0x01, 0x00, 0x02, 0x00, 0x00),
        V6(16, "a 6to4 address", 0x20, 0x02),
        V6(128, "the metadata service of a cloud", 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, 0x54),
        V6(128, "the metadata service of a cloud", 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54),
        V6(128, "the metadata service of a cloud", 0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9,
           0xfe),
        V6(7, "a private address", 0xfc),
        V6(10, "a link-local address", 0xfe, 0x80),
        V6(10, "a private address", 0xfe, 0xc0), /* site-local */
        V6_USELESS(8, 0xff, "a multicast address"),
        /* Public addresses are in 2000::/3. These three blocks are the rest of IPv6. */
        V6(3, "an address outside the public range", 0),
        V6(2, "an address outside the public range", 0x40),
        V6(1, "an address outside the public range", 0x80),
};

/* The sandbox's own blocks, NET_POOL4 and NET_POOL6. */
static const NetAddress address_pool4 = { AF_INET, { 198, 18 } };
static const NetAddress address_pool6 = { AF_INET6, { 0xfd, 0x00, 0x68, 0x6f, 0x6c, 0x74 } };

static unsigned address_bits(uint8_t family) {
        return family == AF_INET ? 32 : 128;
}

static bool address_prefix_same(const uint8_t *a, const uint8_t *b, unsigned prefix) {
        const unsigned whole = prefix / 8, rest = prefix % 8;

        if (memcmp(a, b, whole) != 0)
                return false;
        return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

static bool address_in_row(const NetAddress *address, const AddressBlock *row) {
        return address->family == row->family &&
               address_prefix_same(address->bytes, row->bytes, row->prefix);
}

/* --- names by number --- */

/* The last four bytes, which contain the number. */
static uint8_t *address_tail(NetAddress *address) {
        return address->bytes + address_bits(address->family) / 8 - 4;
}

NetAddress net_address_own(uint8_t family, uint8_t last) {
        NetAddress address = family == AF_INET ? address_pool4 : address_pool6;

        address_tail(&address)[3] = last;
        return address;
}

NetAddress net_address_of_number(uint8_t family, unsigned number) {
        NetAddress address = family == AF_INET ? address_pool4 : address_pool6;
        uint8_t *tail = address_tail(&address);
        uint32_t bits;

        assert(number < NET_NUMBERS_MAX);
        memcpy(&bits, tail, sizeof(bits));
        bits = htonl(ntohl(bits) + NET_FIRST + number);
        memcpy(tail, &bits, sizeof(bits));
        return address;
}

int net_address_number(const NetAddress *address) {
        const NetAddress *pool = address->family == AF_INET ? &address_pool4 : &address_pool6;
        NetAddress copy = *address, base = *pool;
        const unsigned tail = address_bits(pool->family) - 32;
        uint32_t bits, first;

        if (!net_address_in_pool(address))
                return -ENOENT;
        /* In IPv6, the bytes between the prefix and the number must be zero. */
        if (pool->family == AF_INET6 && !address_prefix_same(copy.bytes, pool->bytes, tail))
                return -ENOENT;
        memcpy(&bits, address_tail(&copy), sizeof(bits));
        memcpy(&first, address_tail(&base), sizeof(first));
        bits = ntohl(bits) - ntohl(first);
        if (bits < NET_FIRST || bits >= NET_FIRST + NET_NUMBERS_MAX)
                return -ENOENT;
        return (int)(bits - NET_FIRST);
}

bool net_address_in_pool(const NetAddress *address) {
        return net_address_in(address, &address_pool4, NET_POOL4_PREFIX) ||
               net_address_in(address, &address_pool6, NET_POOL6_PREFIX);
}

/* --- blocks --- */

bool net_address_in(const NetAddress *address, const NetAddress *block, unsigned prefix) {
        return address->family == block->family && prefix <= address_bits(block->family) &&
               address_prefix_same(address->bytes, block->bytes, prefix);
}

bool net_address_is_loopback(const NetAddress *address) {
        return net_address_in(address, &net_loopback[0], 8) ||
               net_address_equal(address, &net_loopback[1]);
}

static const AddressBlock *address_special(const NetAddress *address) {
        for (size_t i = 0; i < ELEMENTSOF(address_blocks); i++)
                if (address_in_row(address, &address_blocks[i]))
                        return &address_blocks[i];
        return NULL;
}

const NetAddress net_loopback[] = {
        { AF_INET, { 127, 0, 0, 1 } },
        { AF_INET6, { [15] = 1 } },
};

bool net_address_equal(const NetAddress *a, const NetAddress *b) {
        return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

const char *net_address_forbidden(const NetAddress *address) {
        const AddressBlock *row = address_special(address);

        if (row)
                return row->what;
        return address->family == AF_INET || address->family == AF_INET6
                       ? NULL
                       : "an address of an unknown family";
}

NetAddress net_address_unmapped(const NetAddress *address) {
        static const NetAddress mapped = { AF_INET6, { [10] = 0xff, 0xff } };
        NetAddress inner = { .family = AF_INET };

        if (!net_address_in(address, &mapped, 96))
                return *address;
        memcpy(inner.bytes, address->bytes + 12, 4);
        return inner;
}

static bool block_in_row(const NetAddress *block, unsigned prefix, const AddressBlock *row) {
        return prefix >= row->prefix && address_in_row(block, row);
}

bool net_block_allows(const NetAddress *block, unsigned prefix, const NetAddress *address) {
        const AddressBlock *row = address_special(address);

        return net_address_in(address, block, prefix) && (!row || block_in_row(block, prefix, row));
}

bool net_block_useless(const NetAddress *block, unsigned prefix) {
        for (size_t i = 0; i < ELEMENTSOF(address_blocks); i++)
                if (address_blocks[i].useless && block_in_row(block, prefix, &address_blocks[i]))
                        return true;
        return false;
}

bool net_block_covers(const NetAddress *outer, unsigned outer_prefix, const NetAddress *inner,
                      unsigned inner_prefix) {
        if (inner_prefix < outer_prefix || !net_address_in(inner, outer, outer_prefix))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(address_blocks); i++)
                if (block_in_row(inner, inner_prefix, &address_blocks[i]) &&
                    !block_in_row(outer, outer_prefix, &address_blocks[i]))
                        return false;
        return true;
}

/* --- text --- */

int net_address_parse(const char *text, size_t length, NetAddress *ret) {
        char copy[NET_ADDRESS_TEXT];
        NetAddress address = { 0 };

        if (length >= sizeof(copy) || memchr(text, '\0', length))
                return -EINVAL;
        memcpy(copy, text, length);
        copy[length] = '\0';
        address.family = memchr(text, ':', length) ? AF_INET6 : AF_INET;
        if (inet_pton(address.family, copy, address.bytes) != 1)
                return -EINVAL;
        *ret = address;
        return 0;
}

char *net_address_text(const NetAddress *address, char ret[NET_ADDRESS_TEXT]) {
        if (!inet_ntop(address->family, address->bytes, ret, NET_ADDRESS_TEXT))
                memcpy(ret, "?", 2);
        return ret;
}
