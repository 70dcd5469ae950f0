/* SPDX-License-Identifier: Apache-2.0 */
/* The open questions of holt-egress, the oldest first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "network/denials.h"

enum { NET_ASKED_MAX = 8 };

typedef struct NetAsked {
        uint32_t id;
        char host[NET_PEER_TEXT]; /* Such as "example.org:443", which is a rule.
                                   */
} NetAsked;

typedef struct NetAskedList {
        NetAsked items[NET_ASKED_MAX];
        size_t count;
} NetAskedList;

/* Whether text is a rule for one port of one name, and not for an address. */
bool net_asked_is_name(const char *text);
/* Adds the question of the event, an EGRESS_ASKS. Returns false if the question must be refused: no
 * rule may have such a name, or too many questions are open. holt-egress asks no such question,
 * unless an attacker has taken it over. */
bool net_asked_add(NetAskedList *list, const EgressEvent *event);
/* Removes the question with this id. Returns whether it was the first. */
bool net_asked_remove(NetAskedList *list, uint32_t id);
