/* SPDX-License-Identifier: Apache-2.0 */
/* The bridge: the socket inside by which code calls tools of the host (tools.h).
 *
 * Theory of operation. The keeper binds it in the sandbox's own /run, before anything runs there,
 * so that no socket file of the host is inside. A connection carries one JSON object a line each
 * way, and any number of requests at a time:
 *
 *         {"id": 1, "token": "…", "call": "name", "payload": {…}}
 *         {"id": 1, "value": …}  or  {"id": 1, "error": {"type": "…", "message": "…"}}
 *         {"id": 2, "token": "…", "list": true}
 *         {"id": 2, "tools": [{name, description, input_schema, output_schema, timeout_ms}]}
 *
 * types are those of tool_failure_name(). A line that can't be read is answered as well; its id is
 * found where the line begins with it, and is null otherwise.
 *
 * Everything that comes in is an attacker's: lines, connections, what is not read, and what all of
 * it together needs is bounded, and past a bound there is an error, or the end of the connection.
 * All connections together have a slice of each turn of the loop, so that the session's clients are
 * served during a flood.
 * Tokens divide code that does not mean ill: the processes of a session are one user's and can read
 * each other's environment. */
#pragma once

#include "inside/tools.h"
#include "policy/plan.h"

enum {
        BRIDGE_LINE_MAX = 1 << 20, /* bytes of a request */
        BRIDGE_CONNECTIONS_MAX = 256,
        BRIDGE_INPUT_MAX = 16 << 20,  /* bytes of lines that have not come to their end */
        BRIDGE_OUTPUT_MAX = 32 << 20, /* ... of answers that are not read */
        BRIDGE_OUTPUT_SOFT = 1 << 20, /* of one connection, whose requests are not read then */
};

#define BRIDGE_DIRECTORY PLAN_SESSION_OWN
#define BRIDGE_SOCKET BRIDGE_DIRECTORY "/bridge.sock"

typedef struct Bridge Bridge;

/* Listens; BRIDGE_DIRECTORY has to be there. 0 or a negative errno. */
int bridge_new(Loop *loop, Tools *tools, int root_fd, Bridge **ret, Error *reterr);
/* Before the tools are freed. NULL is legal; returns NULL. */
Bridge *bridge_free(Bridge *bridge);

/* Adds to an environment where the bridge and the helpers are, and the token unless it is NULL; in
 * PYTHONPATH in front of what is there, in PATH behind. 0 or -ENOMEM. */
int bridge_fill_env(const char *token, StrList *env);
