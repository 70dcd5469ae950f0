/* SPDX-License-Identifier: Apache-2.0 */
/* holt mcp: a server of the Model Context Protocol (modelcontextprotocol.io) for one session.
 *
 * Theory of operation. The client, for example an agent, sends JSON-RPC requests, one object a
 * line. Each tool is a row (tools.c) that names a method of the session. The arguments become
 * parameters of that method, and the reply becomes the result. The server talks to the session's
 * keeper over a connection of its own. It connects again if the session has been stopped.
 *
 * The client acts for the caller, but its words may be a model's. So no tool widens the policy. A
 * grant needs an answer of the user, and the caller must have said --ask. The client asks the user
 * (elicitation). Texts from inside are an attacker's. They are the content of results, and never
 * become a message of the server's own. */
#pragma once

#include "base/error.h"
#include "rpc/table.h"

typedef struct McpSettings {
        const char *session; /* borrowed: name of an existing session */
        bool ask;            /* ask the user, through the client, about grants */
        unsigned groups;     /* a bit for each group of tools that is served; 0: all */
        /* Borrowed: methods of sessions. */
        const RpcMethod *methods;
        size_t methods_count;
} McpSettings;

/* Reads the names of groups of tools, with commas between them. Returns 0 or -EINVAL. */
int mcp_groups_parse(const char *text, unsigned *ret, Error *reterr);

/* Serves the client on stdin and stdout until it closes stdin, or until a signal. Returns 0 or a
 * negative errno. */
int mcp_run(const McpSettings *settings, Error *reterr);
