/* SPDX-License-Identifier: Apache-2.0 */
/* holt mcp: a server of the Model Context Protocol (modelcontextprotocol.io) for one session.
 *
 * Theory of operation. The client, for example an agent, sends JSON-RPC requests, one object a
 * line. Each tool is a row (tools.c) that names a method of the session. The arguments become
 * parameters of that method, and the reply becomes the result. The server talks to the session's
 * keeper over a connection of its own. It connects again if the session has been stopped. If the
 * caller has named no session, workspace.c makes one.
 *
 * The client acts for the caller, but its words may be a model's. So no tool widens the policy. A
 * grant needs an answer of the user, and the caller must have said --ask. The client asks the user
 * (elicitation). Texts from inside are an attacker's. They are the content of results, and never
 * become a message of the server's own. */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "rpc/table.h"

typedef struct McpSettings {
        /* Borrowed: name of an existing session. NULL: make() makes one when it is needed. */
        const char *session;
        /* Makes a session. roots: directories of the host; the first one becomes the workspace, and
         * the others are writable, too. *ret_name is borrowed. Returns 0 or a negative errno. */
        int (*make)(void *data, const StrList *roots, const char **ret_name, Error *reterr);
        void *data;      /* for make */
        bool roots;      /* pass the roots of the client, if it has any, to make */
        bool ask;        /* ask the user, through the client, about grants */
        unsigned groups; /* a bit for each group of tools that is served; 0: all */
        /* Borrowed: methods of sessions. */
        const RpcMethod *methods;
        size_t methods_count;
} McpSettings;

/* Reads the names of groups of tools, with commas between them. Returns 0 or -EINVAL. */
int mcp_groups_parse(const char *text, unsigned *ret, Error *reterr);

/* Serves the client on stdin and stdout until it closes stdin, or until a signal. Returns 0 or a
 * negative errno. */
int mcp_run(const McpSettings *settings, Error *reterr);
