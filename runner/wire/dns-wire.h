/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages (RFC 1035, RFC 6891): reads a query of a program inside, and writes the reply. Pure:
 * sends and receives nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net/address.h"
#include "policy/net/rules.h"

enum {
        DNS_A = 1,
        DNS_SOA = 6,
        DNS_PTR = 12,
        DNS_AAAA = 28,
        DNS_OPT = 41,

        DNS_NOERROR = 0,
        DNS_FORMERR = 1,
        DNS_SERVFAIL = 2,
        DNS_NXDOMAIN = 3,
        DNS_NOTIMP = 4,
        DNS_BADVERS = 16, /* The query asks for a later version of EDNS. */

        DNS_QUERY_MAX = 4096, /* Bytes of a query; honest queries are shorter. */
        DNS_REPLY_MAX = 1232, /* Bytes of a reply; a packet of this size need not be split. */
};

typedef struct DnsQuery {
        uint16_t id;
        uint16_t type;      /* DNS_A, ... or any other number. */
        uint16_t flags;     /* The received flags: RD and CD are copied to the reply. */
        uint16_t reply_max; /* Bytes that the client takes by UDP, at most DNS_REPLY_MAX. */
        char name[NET_NAME_MAX + 1]; /* Usual form: lower case, no trailing dot. */
        bool edns;                   /* The query has an OPT record, so the reply has one. */
        bool dnssec;                 /* The DO bit of that record. */
        const uint8_t *question;     /* In the query: the bytes of the question, for the reply. */
        size_t question_length;
} DnsQuery;

/* Reads a query. Returns 0, or -EBADMSG if no reply must be sent, because it is too short or itself
 * a reply. Otherwise returns a positive DNS_* code for the reply (DNS_FORMERR, DNS_NOTIMP,
 * DNS_BADVERS), with id and flags set. Names that net_name_normal() refuses, and the root, give
 * DNS_NXDOMAIN with the question set. */
int dns_query_parse(const uint8_t *data, size_t length, DnsQuery *ret);

/* Finds the first query among bytes from a TCP connection. Returns the length of the query, which
 * begins at data + 2; 0 if it has not wholly arrived; or -EBADMSG if its length is impossible.
 * length: the bytes that have arrived. */
int dns_stream_next(const uint8_t *data, size_t length);

/* Writes a reply to ret and returns its length, at most query->reply_max. answers: addresses for A
 * and AAAA queries, or NULL; those of the other family are left out, and so are those that do not
 * fit. target: the name for a PTR query, or NULL. A reply without answers has an SOA record with a
 * time of 0, so that no program caches it. ttl: seconds. */
size_t dns_reply_write(const DnsQuery *query, int code, const NetAddress *answers, size_t count,
                       const char *target, uint32_t ttl, uint8_t ret[DNS_REPLY_MAX]);

/* Reads the name of a PTR query (in-addr.arpa, ip6.arpa) in its usual form. Returns 0 or -EINVAL.
 */
int dns_reverse_parse(const char *name, NetAddress *ret);
