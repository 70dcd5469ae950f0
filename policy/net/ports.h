/* SPDX-License-Identifier: Apache-2.0 */
/* Ports that a sandbox shares with the host. */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "policy/net/address.h"

/* A published or an imported port. */
typedef struct NetPort {
        NetAddress address; /* for a published port: the host's address, 127.0.0.1 by default */
        uint16_t host;      /* the host's port; for a published port, 0 means a free one */
        uint16_t inside;    /* the sandbox's port */
} NetPort;

/* Reads [ADDRESS:]HOSTPORT:PORT, with an IPv6 address in brackets. Returns 0, or -EINVAL with a
 * static reason in *ret_why. */
int net_publish_parse(const char *text, NetPort *ret, const char **ret_why);
/* Reads HOSTPORT[:PORT]. Returns like net_publish_parse(). */
int net_import_parse(const char *text, NetPort *ret, const char **ret_why);
/* The same as the functions above, for the table of fields. */
int net_publish_check(const char *text, const char **ret_why);
int net_import_check(const char *text, const char **ret_why);

bool net_port_equal(const NetPort *a, const NetPort *b);
enum { NET_PORT_TEXT = 60 };
/* Writes the host's side, such as "127.0.0.1:8080". Returns ret. */
char *net_port_host_text(const NetPort *port, char ret[NET_PORT_TEXT]);
/* Refuses two ports of the host that have the same port inside, and a port that is also published.
 * Returns 0 or a negative errno. */
int net_imports_check(const StrList *imports, const StrList *published, Error *reterr);
