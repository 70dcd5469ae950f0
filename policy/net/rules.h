/* SPDX-License-Identifier: Apache-2.0 */
/* Network rules: the names, addresses and ports that a sandbox may reach.
 *
 * A rule is HOST:PORTS. HOST is a name, "*." and a name, an address, or a block of addresses. PORTS
 * is a port, a range, or "*" for all. " # " and a reason may follow. These functions look up no
 * name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net/address.h"

enum {
        NET_NAME_MAX = 253,      /* bytes of a DNS name in text, without the NUL */
        NET_LABEL_MAX = 63,      /* bytes between two dots */
        NET_REASON_MAX = 200,    /* bytes of a reason */
        NET_LISTENERS_MAX = 512, /* listening sockets of one sandbox for its rules; other ports are
                                    redirected */
};

typedef enum NetHostKind {
        NET_NAME,     /* exactly this name */
        NET_WILDCARD, /* every name below this name, but not the name itself */
        NET_BLOCK,    /* a block of addresses */
} NetHostKind;

typedef struct NetRule {
        NetHostKind kind;
        char name[NET_NAME_MAX + 1]; /* lower case, without "*." and without a trailing dot */
        NetAddress address;          /* for NET_BLOCK: the first address */
        uint8_t prefix;              /* for NET_BLOCK: the number of its fixed bits */
        uint16_t first, last;        /* the range of ports, inclusive; "*" is 1 to 65535 */
        char *reason;                /* shown when a host of this rule is refused; owned, or NULL */
} NetRule;

typedef struct NetRules {
        NetRule *items;
        size_t count;
} NetRules;

/* Checks a rule, or "@" and the name of a set. Returns 0, or -EINVAL with a static reason in
 * *ret_why, which continues a sentence such as "RULE ...". What to do may follow on a second line.
 */
int net_rule_check(const char *text, const char **ret_why);
/* Adds a rule, or all rules of a named set. A name without a port adds two rules: ports 80 and 443.
 * Returns 0, -EINVAL with *ret_why, or -ENOMEM; after an error the rules are unchanged. */
int net_rules_add(NetRules *rules, const char *text, const char **ret_why);
/* Adds those hosts and ports of the rules in `text` that the rules in `allowed` also allow. Returns
 * like net_rules_add(). */
int net_rules_narrow(NetRules *rules, const NetRules *allowed, const char *text,
                     const char **ret_why);
void net_rules_clear(NetRules *rules);

/* Reads a port from 1 to 65535, without leading zeros. Returns 0 or -EINVAL. */
int net_port_read(const char *text, size_t length, uint16_t *ret);
/* Writes the usual form of a name to ret: lower case, no trailing dot. Returns 0, or -EINVAL if it
 * is no valid DNS name of ASCII letters, digits, '-', '_' and '.'. */
int net_name_normal(const char *name, size_t length, char ret[NET_NAME_MAX + 1]);
/* Whether inet_aton(3) could read the name as an address: its last label is a decimal, octal or
 * hexadecimal number. name is in its usual form. */
bool net_name_numeric(const char *name);

/* Whether a rule names the host, for any port. name is in its usual form. */
bool net_rules_name(const NetRules *rules, const char *name);
/* Whether net_rules_find_address() finds a rule for any port. */
bool net_rules_address(const NetRules *rules, const NetAddress *address);
/* Returns the reason of the first rule that names the host for any port and has a reason, or NULL.
 * name is NULL for an address. Borrowed. */
const char *net_rules_reason(const NetRules *rules, const char *name, const NetAddress *address);
/* Returns the first rule that allows the port of a name, or NULL. */
const NetRule *net_rules_find(const NetRules *rules, const char *name, uint16_t port);
/* Returns the first rule that allows the port of an address, or NULL. Only rules with addresses can
 * do that; net_block_allows() says which of them allow a special address. A mapped address is
 * judged as IPv4. No rule allows the sandbox's own blocks. */
const NetRule *net_rules_find_address(const NetRules *rules, const NetAddress *address,
                                      uint16_t port);
/* Whether every host and port of inner is also one of outer. */
bool net_rule_covers(const NetRule *outer, const NetRule *inner);
/* Returns the rule as text, such as "*.github.com:443", without its reason. Owned by the caller;
 * NULL without memory. */
char *net_rule_text(const NetRule *rule);

/* A named set, such as "python" (sets/python.json). */
typedef struct NetSet {
        const char *name, *description;
        const char *const *rules; /* up to NULL */
        const char *nearly;       /* what is wrong with a set whose name is nearly this one */
} NetSet;
extern const NetSet net_sets[];
extern const size_t net_sets_count;

/* Returns the set, or NULL. name has no "@". */
const NetSet *net_set(const char *name);
/* Returns the smallest set with a rule for the host of this name, or NULL. */
const NetSet *net_set_with(const char *name);
/* Says that no set has this name, and which one has nearly this name. Returns -EINVAL. */
int net_set_refuse(const char *name, const char **ret_why);
