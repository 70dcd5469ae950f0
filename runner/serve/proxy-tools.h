/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that clients of holt serve have registered, so that a session's next keeper knows them,
 * too. A keeper ends with its sandbox, for example if the host replaces a protected file; a tool
 * belongs to its client's connection, which goes on. */
#pragma once

#include "rpc/client.h"
#include "rpc/server.h"

typedef struct ProxyTool ProxyTool;

/* A keeper has done what call, of any method, asks for. Without memory the next keeper does not
 * know the tool. */
void proxy_tools_note(ProxyTool **all, const RpcCall *call);
/* Forgets those of client; NULL: of all clients. */
void proxy_tools_forget(ProxyTool **all, const RpcConnection *client);
/* Registers those of client with session's new keeper. Nobody waits for the answers. */
void proxy_tools_send(const ProxyTool *all, const RpcConnection *client, const char *session,
                      RpcClient *keeper);
