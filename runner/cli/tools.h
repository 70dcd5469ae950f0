/* SPDX-License-Identifier: Apache-2.0 */
/* The tools of --tool, for holt exec and holt python. NAME=COMMAND is a command of the host. NAME
 * alone is a tool that another client of the session offers.
 *
 * Each call runs COMMAND, without a shell, with the payload as JSON on stdin. Its output, one JSON
 * value, is the result for the code inside. COMMAND runs as the caller, outside any sandbox, in "/"
 * and with a clean environment, because the payload may come from an attacker. */
#pragma once

#include "base/strings.h"
#include "rpc/client.h"

enum {
        TOOL_COMMANDS_MAX = 64, /* number of commands at the same time; further calls wait */
        TOOL_PRINTED_MAX = 1000 * 1024, /* bytes of a result */
};

typedef struct ToolHost ToolHost;

/* Registers each "NAME=COMMAND" of specs with client, a client of session. The client's messages
 * are queued from now on (rpc_client_queue()). *ret is NULL if specs has no command.
 *
 * Returns 0 or a negative errno:
 * - -EPERM with an ERROR_POLICY: the session could change the command (cli/tool-command.h)
 * - -ENOENT with an ERROR_USAGE: nobody offers a NAME */
int tool_host_new(const char *session, RpcClient *client, const StrList *specs, ToolHost **ret,
                  Error *reterr);
/* Returns whether a spec has a command, which holt must stay to run. */
bool tool_specs_have_command(const StrList *specs);
/* Writes the member "tools" of a request: the names of all specs, if one of them is another
 * client's. Without that member, the code may call all tools of this connection. */
void tool_specs_write(const StrList *specs, JsonWriter *w);
/* Kills the commands that still run. Returns NULL. In these functions, host may be NULL. */
ToolHost *tool_host_free(ToolHost *host);

/* Returns an fd that becomes readable when there is work to do; -1 if host is NULL. */
int tool_host_fd(const ToolHost *host);
/* Does the work. */
void tool_host_work(ToolHost *host);
/* Takes a message about a tool. Returns false for any other message. */
bool tool_host_take(ToolHost *host, const RpcMessage *message);
