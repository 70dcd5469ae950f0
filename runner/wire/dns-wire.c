/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/dns-wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/strings.h"

enum {
        DNS_HEADER = 12,     /* Bytes of the header. */
        DNS_NAME_WIRE = 255, /* Bytes of a name in a message. */
        DNS_LABEL_MAX = 63,  /* Bytes of a part of a name. */
        DNS_PLAIN_MAX = 512, /* Bytes of a reply to a query without EDNS. */
        DNS_OPT_SIZE = 11,   /* Bytes of an OPT record without options. */
        DNS_CLASS_IN = 1,
        DNS_FLAG_QR = 0x8000, /* Set in a reply. */
        DNS_FLAGS_OPCODE = 0x7800,
        DNS_FLAG_RD = 0x0100, /* Recursion desired. */
        DNS_FLAG_RA = 0x0080, /* Recursion available. */
        DNS_FLAG_CD = 0x0010, /* Checking disabled. */
        DNS_OPT_DO = 0x8000,  /* DNSSEC records wanted. */
        DNS_POINTER = 0xc000, /* A name that continues elsewhere in the message. */
};

/* --- reading --- */

typedef struct DnsReader {
        const uint8_t *at, *end;
} DnsReader;

static size_t dns_left(const DnsReader *in) {
        return (size_t)(in->end - in->at);
}

/* Each caller has checked that the bytes are there. */
static uint16_t dns_take16(DnsReader *in) {
        uint16_t value = (uint16_t)(in->at[0] << 8 | in->at[1]);

        in->at += 2;
        return value;
}

/* Reads the name of the question as text with dots. A pointer is an error here, because no name
 * stands before the question. *ret_odd is true if a label contains a dot, which would look like the
 * end of the label in the text. Returns the length of the text, or -EBADMSG. */
static int dns_take_name(DnsReader *in, char ret[DNS_NAME_WIRE], bool *ret_odd) {
        size_t length = 0;

        for (;;) {
                size_t label;

                if (dns_left(in) == 0 || *in->at > DNS_LABEL_MAX)
                        return -EBADMSG;
                label = *in->at++;
                if (label == 0)
                        return length > 0 ? (int)length - 1 : 0;
                /* In the message, a length byte comes before each label, and the root's length byte
                 * at the end. */
                if (dns_left(in) < label || length + label + 2 > DNS_NAME_WIRE)
                        return -EBADMSG;
                if (memchr(in->at, '.', label))
                        *ret_odd = true;
                memcpy(ret + length, in->at, label);
                length += label;
                ret[length++] = '.';
                in->at += label;
        }
}

/* Returns 0 or a code for the reply. */
static int dns_take_question(DnsReader *in, DnsQuery *query) {
        const uint8_t *start = in->at;
        char name[DNS_NAME_WIRE];
        uint16_t class;
        bool odd = false;
        int length = dns_take_name(in, name, &odd);

        if (length < 0 || dns_left(in) < 4)
                return DNS_FORMERR;
        query->type = dns_take16(in);
        class = dns_take16(in);
        query->question = start;
        query->question_length = (size_t)(in->at - start);
        if (class != DNS_CLASS_IN)
                return DNS_NOTIMP;
        if (odd || net_name_normal(name, (size_t)length, query->name) < 0) {
                query->name[0] = '\0';
                return DNS_NXDOMAIN;
        }
        return 0;
}

/* Skips the name of a record. A pointer ends it and is not followed. */
static int dns_skip_name(DnsReader *in) {
        for (size_t length = 1;;) {
                size_t label;

                if (dns_left(in) == 0)
                        return -EBADMSG;
                label = *in->at++;
                if (label == 0)
                        return 0;
                if (label >= DNS_POINTER >> 8) {
                        if (dns_left(in) == 0)
                                return -EBADMSG;
                        in->at++;
                        return 0;
                }
                length += label + 1;
                if (label > DNS_LABEL_MAX || length > DNS_NAME_WIRE || dns_left(in) < label)
                        return -EBADMSG;
                in->at += label;
        }
}

/* Reads a record after the question. Only OPT counts. Returns 0 or a code for the reply. */
static int dns_take_record(DnsReader *in, DnsQuery *query) {
        const uint8_t *start = in->at;
        uint16_t type, class, version, flags, size;
        bool root;

        if (dns_skip_name(in) < 0 || dns_left(in) < 10)
                return DNS_FORMERR;
        root = in->at == start + 1;
        type = dns_take16(in);
        class = dns_take16(in);
        version = dns_take16(in) & 0xff;
        flags = dns_take16(in);
        size = dns_take16(in);
        if (dns_left(in) < size)
                return DNS_FORMERR;
        in->at += size;
        if (type != DNS_OPT)
                return 0;
        if (!root || query->edns)
                return DNS_FORMERR;
        query->edns = true;
        query->dnssec = flags & DNS_OPT_DO;
        if (class > DNS_PLAIN_MAX)
                query->reply_max = class < DNS_REPLY_MAX ? class : DNS_REPLY_MAX;
        return version == 0 ? 0 : DNS_BADVERS;
}

int dns_query_parse(const uint8_t *data, size_t length, DnsQuery *ret) {
        DnsReader in = { data, data + length };
        uint16_t questions, answers, authorities, additional;
        int r;

        if (length < DNS_HEADER || data[2] & DNS_FLAG_QR >> 8)
                return -EBADMSG;
        *ret = (DnsQuery){ .reply_max = DNS_PLAIN_MAX };
        ret->id = dns_take16(&in);
        ret->flags = dns_take16(&in);
        questions = dns_take16(&in);
        answers = dns_take16(&in);
        authorities = dns_take16(&in);
        additional = dns_take16(&in);
        if (ret->flags & DNS_FLAGS_OPCODE)
                return DNS_NOTIMP;
        /* A query has exactly one question (RFC 9619). */
        if (length > DNS_QUERY_MAX || questions != 1 || answers > 0 || authorities > 0)
                return DNS_FORMERR;
        r = dns_take_question(&in, ret);
        if (r == DNS_FORMERR)
                return r;
        while (additional-- > 0) {
                int record = dns_take_record(&in, ret);

                if (record > 0)
                        return record;
        }
        return dns_left(&in) == 0 ? r : DNS_FORMERR;
}

int dns_stream_next(const uint8_t *data, size_t length) {
        size_t size;

        if (length < 2)
                return 0;
        size = (size_t)(data[0] << 8 | data[1]);
        if (size < DNS_HEADER || size > DNS_QUERY_MAX)
                return -EBADMSG;
        return length - 2 >= size ? (int)size : 0;
}

/* --- writing --- */

typedef struct DnsWriter {
        uint8_t *start;
        size_t length, max;
} DnsWriter;

static void dns_put16(DnsWriter *out, unsigned value) {
        out->start[out->length++] = (uint8_t)(value >> 8);
        out->start[out->length++] = (uint8_t)value;
}

static void dns_put32(DnsWriter *out, uint32_t value) {
        dns_put16(out, value >> 16);
        dns_put16(out, value & 0xffff);
}

static void dns_put(DnsWriter *out, const void *bytes, size_t size) {
        if (size > 0)
                memcpy(out->start + out->length, bytes, size);
        out->length += size;
}

/* Writes a record that belongs to the name of the question. Returns false if it does not fit. */
static bool dns_put_answer(DnsWriter *out, uint16_t type, uint32_t ttl, const void *data,
                           size_t size) {
        if (out->max - out->length < 12 + size)
                return false;
        dns_put16(out, DNS_POINTER | DNS_HEADER);
        dns_put16(out, type);
        dns_put16(out, DNS_CLASS_IN);
        dns_put32(out, ttl);
        dns_put16(out, (unsigned)size);
        dns_put(out, data, size);
        return true;
}

/* Returns the number of records written. */
static unsigned dns_put_addresses(DnsWriter *out, const DnsQuery *query, const NetAddress *answers,
                                  size_t count, uint32_t ttl) {
        uint8_t family = query->type == DNS_A ? AF_INET : AF_INET6;
        unsigned written = 0;

        if (query->type != DNS_A && query->type != DNS_AAAA)
                return 0;
        for (size_t i = 0; i < count; i++)
                if (answers[i].family == family) {
                        if (!dns_put_answer(out, query->type, ttl, answers[i].bytes,
                                            family == AF_INET ? 4 : 16))
                                break;
                        written++;
                }
        return written;
}

/* Writes a name to ret. Returns its length, or 0 if the name is invalid or does not fit. */
static size_t dns_name_wire(const char *name, uint8_t ret[DNS_NAME_WIRE]) {
        size_t length = 0;

        while (*name) {
                size_t label = strcspn(name, ".");

                if (label == 0 || label > DNS_LABEL_MAX || length + label + 2 > DNS_NAME_WIRE)
                        return 0;
                ret[length++] = (uint8_t)label;
                memcpy(ret + length, name, label);
                length += label;
                name += label + (name[label] == '.');
        }
        ret[length++] = 0;
        return length;
}

static unsigned dns_put_target(DnsWriter *out, const DnsQuery *query, const char *target,
                               uint32_t ttl) {
        uint8_t name[DNS_NAME_WIRE];
        size_t length;

        if (query->type != DNS_PTR || !target)
                return 0;
        length = dns_name_wire(target, name);
        return length > 0 && dns_put_answer(out, DNS_PTR, ttl, name, length);
}

/* Writes the SOA record of the root, without which some resolvers keep a negative reply for a time
 * of their own (RFC 2308). Each of its times is 0. */
static unsigned dns_put_soa(DnsWriter *out) {
        static const uint8_t root_soa[] = {
                0,  0, DNS_SOA, 0, DNS_CLASS_IN,
                0,  0, 0,       0, 0,
                22, 0, 0, /* The server's and the owner's name. */
                0,  0, 0,       1, 0,
                0,  0, 0,       0, 0,
                0,  0, /* Serial number, refresh, retry. */
                0,  0, 0,       0, 0,
                0,  0, 0, /* Expire, minimum. */
        };

        if (out->max - out->length < sizeof(root_soa))
                return 0;
        dns_put(out, root_soa, sizeof(root_soa));
        return 1;
}

static void dns_put_opt(DnsWriter *out, const DnsQuery *query, unsigned code) {
        static const uint8_t root = 0;

        dns_put(out, &root, 1);
        dns_put16(out, DNS_OPT);
        dns_put16(out, DNS_REPLY_MAX);
        dns_put16(out, code >> 4 << 8); /* The code's upper bits, and version 0. */
        dns_put16(out, query->dnssec ? DNS_OPT_DO : 0);
        dns_put16(out, 0);
}

/* Writes the header, with the numbers of answers and authorities. */
static void dns_put_header(DnsWriter *out, const DnsQuery *query, unsigned code, unsigned answers,
                           unsigned authorities) {
        const unsigned copied = query->flags & (DNS_FLAGS_OPCODE | DNS_FLAG_RD | DNS_FLAG_CD);

        dns_put16(out, query->id);
        dns_put16(out, DNS_FLAG_QR | DNS_FLAG_RA | copied | (code & 15));
        dns_put16(out, query->question ? 1 : 0);
        dns_put16(out, answers);
        dns_put16(out, authorities);
        dns_put16(out, query->edns ? 1 : 0);
}

size_t dns_reply_write(const DnsQuery *query, int code, const NetAddress *answers, size_t count,
                       const char *target, uint32_t ttl, uint8_t ret[DNS_REPLY_MAX]) {
        DnsWriter out = { ret, DNS_HEADER, query->reply_max - (query->edns ? DNS_OPT_SIZE : 0u) };
        DnsWriter header = { ret, 0, DNS_HEADER };
        unsigned answered = 0, authorities = 0;

        dns_put(&out, query->question, query->question_length);
        if (query->question && code == DNS_NOERROR)
                answered = dns_put_addresses(&out, query, answers, answers ? count : 0, ttl) +
                           dns_put_target(&out, query, target, ttl);
        if (query->question && answered == 0 && (code == DNS_NOERROR || code == DNS_NXDOMAIN))
                authorities = dns_put_soa(&out);
        dns_put_header(&header, query, (unsigned)code, answered, authorities);
        if (query->edns)
                dns_put_opt(&out, query, (unsigned)code);
        return out.length;
}

/* --- names of addresses --- */

/* Reads a number of at most max_digits digits and the dot after it. Returns the rest of the name,
 * or NULL. */
static const char *dns_take_number(const char *name, int base, size_t max_digits, uint8_t *ret) {
        static const char digits[] = "0123456789abcdef";
        unsigned value = 0;
        size_t count;

        for (count = 0; name[count] && name[count] != '.'; count++) {
                const char *digit = memchr(digits, name[count], (size_t)base);

                if (!digit || count == max_digits || (count == 1 && value == 0))
                        return NULL;
                value = value * (unsigned)base + (unsigned)(digit - digits);
        }
        if (count == 0 || name[count] != '.' || value > 255)
                return NULL;
        *ret = (uint8_t)value;
        return name + count + 1;
}

static int dns_reverse4(const char *name, NetAddress *ret) {
        NetAddress address = { .family = AF_INET };

        for (int i = 3; i >= 0 && name; i--)
                name = dns_take_number(name, 10, 3, &address.bytes[i]);
        if (!name || !streq(name, "in-addr.arpa"))
                return -EINVAL;
        *ret = address;
        return 0;
}

static int dns_reverse6(const char *name, NetAddress *ret) {
        NetAddress address = { .family = AF_INET6 };

        for (int i = 31; i >= 0 && name; i--) {
                uint8_t half = 0;

                name = dns_take_number(name, 16, 1, &half);
                address.bytes[i / 2] |= (uint8_t)(i % 2 ? half : half << 4);
        }
        if (!name || !streq(name, "ip6.arpa"))
                return -EINVAL;
        *ret = address;
        return 0;
}

int dns_reverse_parse(const char *name, NetAddress *ret) {
        return dns_reverse4(name, ret) == 0 || dns_reverse6(name, ret) == 0 ? 0 : -EINVAL;
}
