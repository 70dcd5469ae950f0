/* SPDX-License-Identifier: Apache-2.0 */
/* One-time grants: each allows one connection.
 *
 * Theory of operation. A connection that no lasting rule allows claims a one-time grant before it
 * is made, and no other connection can claim that grant meanwhile. If the connection is refused or
 * cannot be made, or if the program has given up before, the grant is free again. Once the program
 * is connected with the host outside, the grant is used. The grant's listeners stay until the
 * connection has ended. */
#pragma once

#include "egress/egress.h"

typedef struct Once Once;

enum { ONCE_GRANTS_MAX = 256 }; /* One-time grants of a sandbox that are not used yet. */

/* Makes a grant of a rule or a set, and appends it to *list. id: the grant's number in events.
 * Returns 0, -EINVAL or -ENOMEM. */
int once_add(Once **list, uint32_t id, const char *rule);
/* Frees the list, and empties it. */
void once_free(Once **list);
/* Counts the grants of a list. */
size_t once_count(const Once *list);
/* Adds copies of all rules of the list to items, unless items is NULL. The copies borrow the
 * reasons. Returns the number of rules. */
size_t once_rules(const Once *list, NetRule *items);
/* Puts the grants of a list into force, and empties it. */
void once_keep(Egress *egress, Once **list);

/* Whether a grant that is not used yet names the host, for any port. */
bool once_names(const Egress *egress, const char *name);
/* Whether a grant for the port of the host exists that is claimed or used. name is NULL for an
 * address. */
bool once_taken(const Egress *egress, const char *name, const NetAddress *address, uint16_t port);
/* Whether the grant is for the port of the host. */
bool once_allows(const Once *once, const char *name, const NetAddress *address, uint16_t port);
/* Claims a grant for the port of the host. Returns NULL if there is none. */
Once *once_claim(const Egress *egress, const char *name, const NetAddress *address, uint16_t port);
/* Uses a grant up, and tells holt. Accepts NULL. */
void once_use(Egress *egress, Once *once);
/* Ends a claim, with its connection. A used grant is freed. Accepts NULL. Returns NULL. */
Once *once_release(Egress *egress, Once *once);
/* Soon closes the listeners that neither a rule nor a one-time grant needs. */
void once_prune(const Egress *egress);
