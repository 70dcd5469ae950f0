/* SPDX-License-Identifier: Apache-2.0 */
/* The allowed names that the sandbox has asked for: their numbers, and their addresses outside.
 *
 * A name keeps its number as long as the process lives, so an address inside always stands for the
 * same name. The addresses outside come from c-ares and the host's /etc/hosts, and are kept for the
 * time that their records say, 60 seconds at most. */
#pragma once

#include "base/loop.h"
#include "policy/net/rules.h"

enum { NAME_ADDRESSES_MAX = 16 };

typedef struct Names Names;

typedef struct NameResult {
        int code; /* DNS_NOERROR, DNS_NXDOMAIN or DNS_SERVFAIL of dns-wire.h. */
        NetAddress items[NAME_ADDRESSES_MAX];
        size_t count;
        uint32_t ttl; /* Seconds. */
} NameResult;

/* Reads the host's settings (resolv.conf(5), hosts(5)). No file is opened later. Returns 0 or a
 * negative errno. */
int names_new(Loop *loop, Names **ret, Error *reterr);

/* Returns the number of a name in its usual form, or -ENOENT if it has none yet. */
int names_find(Names *names, const char *name);
/* Returns the number of a name, and gives it one if it has none. Returns -ENOSPC if the sandbox has
 * asked for too many names, or -ENOMEM. */
int names_add(Names *names, const char *name);
/* Like names_add(), for a name that only a wildcard allows. Also returns -ENOSPC if many such names
 * were new in a short time. */
int names_add_below(Names *names, const char *name);
/* Returns the name, or NULL. Borrowed. */
const char *names_text(const Names *names, unsigned number);

typedef void (*NameFn)(void *data, const NameResult *result);

/* Finds the addresses of name number `number`, and calls fn once: now or later. */
void names_resolve(Names *names, unsigned number, NameFn fn, void *data);
/* The same for the proxy outside, which has no number, so that no program inside can ask for it.
 * Only one such host exists: the host of the first call. */
void names_resolve_host(Names *names, const char *host, NameFn fn, void *data);
void names_forget_host(const Names *names, const void *data);
/* Forgets a call to fn with this data. */
void names_forget(Names *names, unsigned number, const void *data);
