/* SPDX-License-Identifier: Apache-2.0 */
/* The bridge is the socket inside the sandbox through which code calls tools of the host (tools.h).
 *
 * Theory of operation. The keeper binds the socket in the sandbox's own /run before anything runs
 * there. So no socket file of the host is inside. Each line of a connection carries one JSON
 * object, in either direction, and a connection may have any number of requests open:
 *
 *         {"id": 1, "token": "…", "call": "name", "payload": {…}}
 *         {"id": 1, "value": …}  or  {"id": 1, "error": {"type": "…", "message": "…"}}
 *         {"id": 2, "token": "…", "list": true}
 *         {"id": 2, "tools": [{name, description, input_schema, output_schema, timeout_ms}]}
 *         {"id": 3, "token": "…", "link": "report.pdf", "for_ms": 60000}
 *         {"id": 3, "value": {"url": …}}
 *
 * tool_failure_name() lists the types of errors. If a line cannot be parsed, the reply carries its
 * id, provided that the line begins with it; otherwise the id is null.
 *
 * All input is an attacker's. Limits apply to lines, connections, unread replies and the memory
 * that these need together. Past a limit, the bridge replies with an error or closes the
 * connection. All connections together get one slice of each turn of the loop, so that a flood does
 * not keep the session's clients waiting. Tokens separate only code that cooperates: the processes
 * of a session belong to one user and can read each other's environment. */
#pragma once

#include "inside/tools.h"
#include "policy/plan.h"

enum {
        BRIDGE_LINE_MAX = 1 << 20, /* Bytes of one request. */
        BRIDGE_CONNECTIONS_MAX = 256,
        BRIDGE_INPUT_MAX = 16 << 20,  /* Bytes of unfinished lines, all connections together. */
        BRIDGE_OUTPUT_MAX = 32 << 20, /* Bytes of unread replies, all connections together. */
        /* Bytes of unread replies of one connection; no request is read beyond that. */
        BRIDGE_OUTPUT_SOFT = 1 << 20,
};

#define BRIDGE_DIRECTORY PLAN_SESSION_OWN
#define BRIDGE_SOCKET BRIDGE_DIRECTORY "/bridge.sock"

typedef struct Bridge Bridge;

/* Starts to listen. BRIDGE_DIRECTORY must exist. root_fd is borrowed. Returns 0 or a negative
 * errno. */
int bridge_new(Loop *loop, Tools *tools, int root_fd, Bridge **ret, Error *reterr);
/* Makes a link for code inside. for_ms: 0 for the usual time. Writes the members of the value, or
 * returns a negative errno. */
typedef int (*BridgeLinkFn)(void *data, const char *path, uint64_t for_ms, JsonWriter *w,
                            Error *reterr);
/* Lets code inside make links. Without this call, the bridge refuses such requests. */
void bridge_allow_links(Bridge *bridge, BridgeLinkFn fn, void *data);
/* Must come before tools_free(). NULL is legal; returns NULL. */
Bridge *bridge_free(Bridge *bridge);

/* Adds the paths of the bridge and the helpers to an environment, and the token unless it is NULL.
 * The helpers come first in PYTHONPATH and last in PATH. Returns 0 or -ENOMEM. */
int bridge_fill_env(const char *token, StrList *env);
