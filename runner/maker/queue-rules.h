/* SPDX-License-Identifier: Apache-2.0 */
/* The packet filter of a sandbox's network, which lets holt-egress judge a connection before the
 * program knows that it is open.
 *
 * The first packet (SYN) of every connection to another address than the sandbox's own, or to an
 * imported port, goes into a queue. There it waits for the verdict of holt-egress (queue.h). If the
 * verdict rejects the packet, the filter does so as the mark says. Without holt-egress, nobody
 * reads the queue, and packets pass it. Then the filter resets the connection, because the routes
 * would lead to listeners that are gone, or nowhere. One batch of nfnetlink(7) messages makes all
 * of this, without nft(8). Parts may be missing in a kernel, or forbidden in a container. */
#pragma once

#include <stdint.h>

#include "maker/listeners.h"

/* The marks of packets with a verdict. No program inside can set one: that takes a capability. */
typedef enum QueueMark {
        QUEUE_RESET = 1, /* ECONNREFUSED */
        QUEUE_NO_HOST,   /* EHOSTUNREACH */
        QUEUE_NO_NET,    /* ENETUNREACH */
        QUEUE_MARK_END,
        QUEUE_IN = QUEUE_MARK_END, /* It is let in. */
} QueueMark;

enum {
        QUEUE_NUMBER = 0,
        QUEUE_COPIED = 160, /* Bytes of a packet: the longest IPv4 header and a TCP header. */
};

/* Makes the filter and the queue in the network namespace of the caller. plan: has the imported
 * ports; if they are many, the last ones are not queued. *ret_fd is the queue's socket. Returns 0
 * or a negative errno; nothing is made then. */
int queue_rules_make(const NetPlan *plan, int *ret_fd);
