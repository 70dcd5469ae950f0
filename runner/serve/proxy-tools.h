/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers the tools that clients of holt serve have registered, to register them with the
 * session's next keeper. A keeper ends with its sandbox, for example if the host replaces a
 * protected file. A tool belongs to its client's connection, which continues. */
#pragma once

#include "rpc/client.h"
#include "rpc/server.h"

typedef struct ProxyTool ProxyTool;

/* Notes a call that a keeper has answered. It ignores calls of all methods except tools.register
 * and tools.unregister. If memory is out, the next keeper does not get the tool. */
void proxy_tools_note(ProxyTool **all, const RpcCall *call);
/* Whether client has a tool for the next keeper of session. */
bool proxy_tools_has(const ProxyTool *all, const RpcConnection *client, const char *session);
/* Forgets the tools of client; NULL means all clients. */
void proxy_tools_forget(ProxyTool **all, const RpcConnection *client);
/* Registers the tools of client with session's new keeper. Nobody waits for the replies. */
void proxy_tools_send(const ProxyTool *all, const RpcConnection *client, const char *session,
                      RpcClient *keeper);
