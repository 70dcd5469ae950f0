/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy inside, and the proxy outside through which holt-egress connects. */
#pragma once

#include "base/strings.h"
#include "policy/net/address.h"
#include "policy/net/rules.h"

enum { NET_LOGIN_MAX = 255 }; /* Bytes of "user:password". */

typedef struct NetUpstream {
        char name[NET_NAME_MAX + 1]; /* In its usual form; "" if the host is an address. */
        NetAddress address;          /* Its family is 0 if the host is a name. */
        uint16_t port;
        char login[NET_LOGIN_MAX + 1]; /* "user:password" without %XX; "" if there is none. */
} NetUpstream;

/* Adds the variables by which programs find the proxy inside. Returns 0 or -ENOMEM. */
int net_proxy_add_env(StrList *env);

/* Reads http://[USER[:PASSWORD]@]HOST:PORT. Returns 0, or -EINVAL with a static reason in *ret_why.
 */
int net_upstream_parse(const char *text, NetUpstream *ret, const char **ret_why);
/* The same, for the table of fields. */
int net_upstream_check(const char *text, const char **ret_why);
/* Returns the URL with "***" instead of the user and the password. Owned by the caller; NULL
 * without memory. */
char *net_upstream_mask(const char *text);
