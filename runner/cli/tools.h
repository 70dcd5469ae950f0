/* SPDX-License-Identifier: Apache-2.0 */
/* --tool NAME=COMMAND of holt exec and holt python: tools that are commands of the host; and --tool
 * NAME: one that another client of the session offers.
 *
 * Each call runs COMMAND, without a shell, with the payload as JSON on stdin. What it prints, one
 * JSON value, is the result that the code inside gets. It runs as the caller, outside any sandbox,
 * in "/" and with a clean environment: the payload is an attacker's. */
#pragma once

#include "base/strings.h"
#include "rpc/client.h"

enum {
        TOOL_COMMANDS_MAX = 64,         /* that run at the same time; the rest waits */
        TOOL_PRINTED_MAX = 1000 * 1024, /* bytes of a value */
};

typedef struct ToolHost ToolHost;

/* Registers each "NAME=COMMAND" of specs with client, a client of session. The client's sends are
 * queued from now on (rpc_client_queue()). *ret is NULL if specs has no command. 0; -EPERM with an
 * ERROR_POLICY for a command that the session could change (cli/tool-command.h); -ENOENT with an
 * ERROR_USAGE for a NAME that nobody offers; or another negative errno. */
int tool_host_new(const char *session, RpcClient *client, const StrList *specs, ToolHost **ret,
                  Error *reterr);
/* Whether one of them has a command, which somebody here has to run. */
bool tool_specs_have_command(const StrList *specs);
/* Writes the member "tools" of a request: all of specs by their names, where one is another
 * client's. Without it those of the own connection may be called, which is the rest. */
void tool_specs_write(const StrList *specs, JsonWriter *w);
/* Kills what still runs. NULL is legal, here and below; returns NULL. */
ToolHost *tool_host_free(ToolHost *host);

/* Becomes readable when there is something to do; -1 for NULL. */
int tool_host_fd(const ToolHost *host);
/* Does it. */
void tool_host_work(ToolHost *host);
/* Takes a message where it is about a tool; false of any other. */
bool tool_host_take(ToolHost *host, const RpcMessage *message);
