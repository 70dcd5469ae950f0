/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a request may go on. */
#pragma once

#include "gateway/gateway.h"

typedef struct Verdict {
        unsigned status;  /* 0 if the request may go on; otherwise the code of the response */
        char reason[240]; /* for the program inside, and for the result */
} Verdict;

void verdict_set(Verdict *verdict, unsigned status, const char *fmt, ...) _printf_(3, 4);

/* Whether the gateway has terminated the connection's TLS. */
bool judge_is_tls(struct MHD_Connection *connection);
/* Finds the route of a request, and decides. target is "/NAME/PATH?QUERY", or "/PATH?QUERY" with
 * TLS. *ret_rest is the part from PATH on, borrowed from target. *ret_route is NULL if no route was
 * named. */
void judge_request(Gateway *gateway, struct MHD_Connection *connection, const char *method,
                   const char *target, Route **ret_route, const char **ret_rest, Verdict *ret);
/* Whether the route may carry `more` bytes that it has not counted. If not, sets the verdict. */
bool judge_bytes(const Route *route, uint64_t more, Verdict *ret);
/* Whether a header or query parameter has the token, and so must not go on. */
bool judge_has_token(const Gateway *gateway, const char *value);
/* Whether holt must not connect to this address of the route's upstream, a name. *ret_why is
 * static.
 */
bool judge_forbids(const Gateway *gateway, const Route *route, const NetAddress *address,
                   const char **ret_why);

/* Whether it is a token as in RFC 9110, section 5.6.2. A server may ignore a space at the end of a
 * name, and would then read a header that the gateway replaces. */
bool judge_is_word(const char *text);
/* Whether an upstream could take the path for another one: a part of it is "." or "..", also if it
 * is encoded, or it has a control character. path may have a query, which is only searched for "#".
 */
bool judge_is_ambiguous(const char *path, size_t length);
/* Whether a server may read a parameter of this name, up to the next "&". A part of the query may
 * be encoded, and some servers separate parameters by ";", too. */
bool judge_query_names(const char *part, const char *name);
