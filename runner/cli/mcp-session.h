/* SPDX-License-Identifier: Apache-2.0 */
/* The session of holt mcp, if the caller names none. */
#pragma once

#include "cli/ask.h"

typedef struct McpOwned {
        const char *workspace; /* borrowed: a directory of the host, or NULL */
        const StrList *net;    /* borrowed: rules of the network */
        bool ask;              /* the user is asked about other hosts */
        char name[64];
        RpcClient *client; /* the connection whose end removes the session */
        pid_t server;
} McpOwned;

/* Makes a session that ends with this process, even if it is killed. A holt serve of its own
 * removes it. data is the McpOwned, and the rest as in McpSettings. roots may be NULL. */
int mcp_session_make(void *data, const StrList *roots, const char **ret_name, Error *reterr);
/* Removes the session. */
void mcp_session_end(McpOwned *owned);
