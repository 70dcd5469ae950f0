/* SPDX-License-Identifier: Apache-2.0 */
/* holt mcp --wrap: runs another server of the protocol in a session, and passes its messages on.
 *
 * Theory of operation. The server is a process of the session, and talks over its stdin and stdout.
 * Every message from it is an attacker's. It is parsed strictly and written anew. Only
 * notifications reach the client, and one reply to each of its requests. A request of the server
 * gets an error. It might ask for the client's model, its directories or an answer of the user, and
 * so act outside of the sandbox. The texts of the server, such as the descriptions of its tools,
 * still reach a model.
 *
 * A result of a tool waits until the keeper has told what was refused since the previous one
 * (process.explain), and gets a line about that. */
#pragma once

#include "mcp/mcp.h"

/* argv: the command, which ends with NULL. Returns the exit code of the server, or a negative
 * errno. */
int wrap_run(const McpSettings *settings, const char *const *argv, Error *reterr);
