/* SPDX-License-Identifier: Apache-2.0 */
/* The second process of holt-gateway. It reads credentials from files and from commands.
 *
 * It is forked before the gateway confines itself, reads nothing that comes from inside, and knows
 * only the sources of the policy. A request is the number of a source, and the reply is the
 * credential or an error. It ends when the gateway closes its end of the socket. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"
#include "network/gateway-protocol.h"

enum {
        FETCH_SECRET_MAX = 16 << 10, /* Bytes of a credential. */
        FETCH_COMMAND_TIME = 30,     /* Seconds that a command may take. */
        FETCH_SOURCES_MAX = 128,
};

/* A reply. The credential ends with NUL; it is "" after an error, which `why` then names. told is
 * the end of what a failed command has written to stderr. It is for the caller, not for programs
 * inside. */
typedef struct Fetched {
        uint32_t number;
        char why[120];
        char told[GATEWAY_TOLD_MAX];
        char secret[FETCH_SECRET_MAX + 1];
} Fetched;

/* Adds a source, a path in a JSON string or a command in an array. The value must live until the
 * fork. Returns its number, or -E2BIG. */
int fetcher_add(const JsonValue *source);
/* Forks the process if there are sources. *ret is the gateway's end of the socket, or FD_NONE.
 * Returns 0 or a negative errno. */
int fetcher_fork(int *ret);
