/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/syn.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

enum {
        HEADER4 = 20,
        HEADER6 = 40,
        TCP_FLAGS = 13,  /* The offset of the flags in a TCP header. */
        TCP_READ = 14,   /* The bytes of the TCP header that are read. */
        FLAG_SYN = 0x02, /* A first packet has only this one of FLAGS. */
        FLAGS = 0x17,    /* ACK, RST, SYN and FIN. */
};

static unsigned syn_number(const uint8_t *data) {
        return (unsigned)data[0] << 8 | data[1];
}

/* Reads an IPv4 header. Returns its length, or 0. */
static size_t syn_read4(const uint8_t *data, size_t size, Syn *ret) {
        const size_t length = (size_t)(data[0] & 0xf) * 4;

        if (size < HEADER4 || length < HEADER4 || data[9] != IPPROTO_TCP ||
            (syn_number(data + 6) & 0x3fff) != 0)
                return 0;
        ret->from.family = ret->to.family = AF_INET;
        memcpy(ret->from.bytes, data + 12, 4);
        memcpy(ret->to.bytes, data + 16, 4);
        return length;
}

static size_t syn_read6(const uint8_t *data, size_t size, Syn *ret) {
        if (size < HEADER6 || data[6] != IPPROTO_TCP)
                return 0;
        ret->from.family = ret->to.family = AF_INET6;
        memcpy(ret->from.bytes, data + 8, 16);
        memcpy(ret->to.bytes, data + 24, 16);
        return HEADER6;
}

int syn_read(const uint8_t *data, size_t size, Syn *ret, uint32_t *ret_sequence) {
        Syn syn;
        size_t length = 0;
        const uint8_t *tcp;

        memset(&syn, 0, sizeof(syn));
        if (size > 0 && data[0] >> 4 == 4)
                length = syn_read4(data, size, &syn);
        else if (size > 0 && data[0] >> 4 == 6)
                length = syn_read6(data, size, &syn);
        if (length == 0 || size < length + TCP_READ)
                return -EBADMSG;
        tcp = data + length;
        if ((tcp[TCP_FLAGS] & FLAGS) != FLAG_SYN)
                return -EBADMSG;
        syn.from_port = (uint16_t)syn_number(tcp);
        syn.to_port = (uint16_t)syn_number(tcp + 2);
        *ret_sequence = (uint32_t)syn_number(tcp + 4) << 16 | syn_number(tcp + 6);
        *ret = syn;
        return 0;
}
