/* SPDX-License-Identifier: Apache-2.0 */
/* The session of holt mcp, if the caller names none. */
#pragma once

#include "cli/ask.h"

typedef struct McpOwned {
        char name[64];
        RpcClient *client; /* the connection whose end removes the session */
        pid_t server;
} McpOwned;

/* Makes a session that ends with this process, even if it is killed. A holt serve of its own
 * removes it. workspace: a directory of the host, or NULL. net: rules of the network. Returns 0 or
 * a negative errno. */
int mcp_session_make(const char *workspace, const StrList *net, McpOwned *ret, Error *reterr);
/* Removes the session. */
void mcp_session_end(McpOwned *owned);
