/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mcp/mcp-internal.h"
#include "rpc/methods.h"
#include "rpc/schema.h"

static void tools_fix_output(JsonWriter *w) {
        json_write_uint(w, "output_max", MCP_OUTPUT_MAX);
        json_write_string(w, "keep", "tail");
}

static void tools_fix_input(JsonWriter *w) {
        json_write_bool(w, "input", true);
        json_write_uint(w, "output_max", MCP_OUTPUT_MAX);
        json_write_string(w, "keep", "tail");
}

static void tools_fix_base64(JsonWriter *w) {
        json_write_bool(w, "base64", true);
}

static void tools_fix_parents(JsonWriter *w) {
        json_write_bool(w, "make_parents", true);
}

static const McpTool tools[] = {
        { "bash",
          "Run shell commands",
          "Runs commands in a lasting bash in the sandbox. The directory, variables and functions "
          "last until the next call.",
          "shell.run",
          { { "command", "code", "the commands", true },
            { "cwd", NULL, NULL, false },
            { "timeout_ms", NULL, NULL, false } },
          MCP_DESTRUCTIVE | MCP_OPEN_WORLD,
          .runs = true,
          .interrupt = "shell.interrupt",
          .write_fixed = tools_fix_output,
          .write_content = mcp_content_command },
        { "bash_restart",
          "Restart the shell",
          "Kills the shell of the tool bash with everything that it started. The next call gets a "
          "new one.",
          "shell.restart",
          { { NULL } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "python",
          "Run Python code",
          "Runs code in a lasting Python interpreter in the sandbox, as a notebook does. Figures "
          "are returned as images.",
          "python.run",
          { { "code", NULL, NULL, true },
            { "cwd", NULL, NULL, false },
            { "timeout_ms", NULL, NULL, false },
            { "fresh", NULL, NULL, false } },
          MCP_DESTRUCTIVE | MCP_OPEN_WORLD,
          .runs = true,
          .interrupt = "python.interrupt",
          .write_fixed = tools_fix_output,
          .write_content = mcp_content_python },
        { "python_restart",
          "Restart the interpreter",
          "Kills the interpreter of the tool python. The next call gets a new one.",
          "python.restart",
          { { NULL } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "read",
          "Read a file",
          "Reads a part of a text file.",
          "files.read",
          { { "path", NULL, NULL, true },
            { "offset", NULL, NULL, false },
            { "length", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT,
          .write_content = mcp_content_read },
        { "write",
          "Write a file",
          "Creates a file, or replaces its content. Missing directories are created.",
          "files.write",
          { { "path", NULL, NULL, true }, { "content", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT,
          .write_fixed = tools_fix_parents },
        { "edit",
          "Edit a file",
          "Replaces a text in a file of at most 512 KiB. Without all, the text must be unique.",
          NULL,
          { { "path", NULL, "a path inside, relative to the workspace", true },
            { "old", NULL, "the text to replace", true },
            { "new", NULL, "the new text", true },
            { "all", NULL, "true: replace every occurrence", false, RPC_BOOL } },
          MCP_DESTRUCTIVE,
          .plain = true,
          .start = mcp_edit_start },
        { "ls",
          "List a directory",
          "Lists a directory in the sandbox.",
          "files.list",
          { { "path", NULL, NULL, false },
            { "recursive", NULL, NULL, false },
            { "after", NULL, NULL, false },
            { "limit", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "glob",
          "Find files",
          "Finds files by a pattern of their path.",
          "files.glob",
          { { "pattern", NULL, NULL, true },
            { "path", NULL, NULL, false },
            { "limit", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "grep",
          "Search in files",
          "Finds lines that match a regular expression.",
          "files.grep",
          { { "pattern", NULL, NULL, true },
            { "path", NULL, NULL, false },
            { "glob", NULL, NULL, false },
            { "ignore_case", NULL, NULL, false },
            { "limit", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "upload",
          "Upload a file",
          "Writes a file with any bytes, which are passed in base64.",
          "files.write",
          { { "path", NULL, NULL, true }, { "base64", NULL, "the content in base64", true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT,
          .write_fixed = tools_fix_parents },
        { "download",
          "Download a file",
          "Reads a part of a file in base64.",
          "files.read",
          { { "path", NULL, NULL, true },
            { "offset", NULL, NULL, false },
            { "length", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT,
          .write_fixed = tools_fix_base64 },
        { "process_start",
          "Start a process",
          "Starts a command in the background, with a pipe for its stdin.",
          "process.spawn",
          { { "command", "shell", "command line for bash -c", true },
            { "cwd", NULL, NULL, false },
            { "timeout_ms", NULL, NULL, false } },
          MCP_DESTRUCTIVE | MCP_OPEN_WORLD,
          .write_fixed = tools_fix_input },
        { "process_read",
          "Read a process's output",
          "Reads what a process has printed, in chunks, and its state.",
          "process.read",
          { { "id", NULL, NULL, true }, { "from", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "process_write",
          "Write to a process",
          "Writes to the stdin of a process.",
          "process.write",
          { { "id", NULL, NULL, true }, { "data", NULL, NULL, true } },
          MCP_DESTRUCTIVE },
        { "process_close_stdin",
          "End a process's input",
          "Ends the stdin of a process.",
          "process.close_stdin",
          { { "id", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "process_wait",
          "Wait for a process",
          "Waits until a process has ended, and returns its output.",
          "process.wait",
          { { "id", NULL, NULL, true },
            { "timeout_ms", NULL,
              "stop waiting after this time, without ending the process; default 30000", false,
              RPC_UINT } },
          MCP_READ_ONLY | MCP_IDEMPOTENT,
          .write_content = mcp_content_command,
          .start = mcp_wait_start },
        { "process_kill",
          "Kill a process",
          "Kills a process and everything that it has started.",
          "process.kill",
          { { "id", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "process_list",
          "List processes",
          "Lists the processes of the sandbox.",
          "process.list",
          { { NULL } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "kv_get",
          "Get a value",
          "Returns the value of a key.",
          "kv.get",
          { { "key", NULL, NULL, true } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "kv_set",
          "Set a value",
          "Sets the value of a key, which lasts with the session.",
          "kv.set",
          { { "key", NULL, NULL, true }, { "value", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "kv_delete",
          "Delete a value",
          "Removes a key.",
          "kv.delete",
          { { "key", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "kv_keys",
          "List keys",
          "Lists keys by their prefix.",
          "kv.keys",
          { { "prefix", NULL, NULL, false },
            { "after", NULL, NULL, false },
            { "limit", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "forward",
          "Forward a port",
          "Lets programs of the host connect to a port in the sandbox.",
          "ports.forward",
          { { "port", NULL, NULL, true } },
          MCP_IDEMPOTENT },
        { "network_status",
          "Show the sandbox",
          "Describes the sandbox: its network rules, routes and limits.",
          "session.show",
          { { NULL } },
          MCP_READ_ONLY | MCP_IDEMPOTENT,
          .plain = true,
          .write_content = mcp_content_status },
        { "request_grant",
          "Ask for a grant",
          "Asks the user to let the sandbox reach a host. Only the user can allow it.",
          NULL,
          { { "rule", NULL, "a host and a port, such as \"example.org:443\"", true },
            { "reason", NULL, "why the sandbox needs it, for the user", true } },
          MCP_OPEN_WORLD,
          .plain = true,
          .start = mcp_grant_start },
};

const McpTool *mcp_tool_find(const char *name) {
        for (size_t i = 0; name && i < ELEMENTSOF(tools); i++)
                if (streq(tools[i].name, name))
                        return &tools[i];
        return NULL;
}

/* --- schemas --- */

static const RpcMethod *tools_method(const Mcp *mcp, const char *name) {
        for (size_t i = 0; name && i < mcp->settings.methods_count; i++)
                if (streq(mcp->settings.methods[i].name, name))
                        return &mcp->settings.methods[i];
        return NULL;
}

static const RpcParam *tools_param(const RpcMethod *method, const McpArgument *argument) {
        const char *name = argument->parameter ? argument->parameter : argument->name;

        for (size_t i = 0; method && i < method->params_count; i++)
                if (streq(method->params[i].name, name))
                        return &method->params[i];
        return NULL;
}

RpcType mcp_tool_type(const Mcp *mcp, const McpTool *tool, const McpArgument *argument) {
        const RpcParam *param = tools_param(tools_method(mcp, tool->method), argument);

        return param ? param->type : argument->type;
}

static void tools_write_argument(const RpcMethod *method, const McpArgument *argument,
                                 JsonWriter *w) {
        const RpcParam *param = tools_param(method, argument);

        json_write_object(w, argument->name);
        json_write_string(w, "description", argument->help ? argument->help : param->help);
        if (param)
                rpc_schema_param(w, param);
        else
                json_write_string(w, "type",
                                  argument->type == RPC_BOOL   ? "boolean"
                                  : argument->type == RPC_UINT ? "integer"
                                                               : "string");
        json_write_end(w);
}

static void tools_write_input(const RpcMethod *method, const McpTool *tool, JsonWriter *w) {
        json_write_object(w, "inputSchema");
        json_write_string(w, "type", "object");
        json_write_object(w, "properties");
        for (const McpArgument *a = tool->arguments; a < tool->arguments + MCP_ARGUMENTS_MAX; a++)
                if (a->name)
                        tools_write_argument(method, a, w);
        json_write_end(w);
        json_write_array(w, "required");
        for (const McpArgument *a = tool->arguments; a < tool->arguments + MCP_ARGUMENTS_MAX; a++)
                if (a->name && a->required)
                        json_write_string(w, NULL, a->name);
        json_write_end(w);
        json_write_bool(w, "additionalProperties", false);
        json_write_end(w);
}

/* References between shapes lead to "#/components/schemas", which is in each schema. Parts of
 * policies are any object there. */
static void tools_write_output(const RpcMethod *method, JsonWriter *w) {
        RpcFound shapes;

        rpc_find_shapes(method, 1, &shapes);
        json_write_object(w, "outputSchema");
        rpc_schema_shape(w, method->result);
        json_write_object(w, "components");
        json_write_object(w, "schemas");
        for (size_t i = 0; i < shapes.count; i++) {
                const RpcShape *shape = shapes.items[i];

                if (shape == method->result)
                        continue;
                json_write_object(w, shape->name);
                rpc_schema_shape(w, shape);
                json_write_end(w);
        }
        json_write_object(w, RPC_POLICY_PART);
        json_write_end(w);
        json_write_object(w, RPC_POLICY);
        json_write_end(w);
        json_write_end(w);
        json_write_end(w);
        json_write_end(w);
        rpc_found_clear(&shapes);
}

static void tools_write_hints(const McpTool *tool, JsonWriter *w) {
        json_write_object(w, "annotations");
        json_write_string(w, "title", tool->title);
        json_write_bool(w, "readOnlyHint", (tool->hints & MCP_READ_ONLY) != 0);
        json_write_bool(w, "destructiveHint", (tool->hints & MCP_DESTRUCTIVE) != 0);
        json_write_bool(w, "idempotentHint", (tool->hints & MCP_IDEMPOTENT) != 0);
        json_write_bool(w, "openWorldHint", (tool->hints & MCP_OPEN_WORLD) != 0);
        json_write_end(w);
}

void mcp_tools_write(const Mcp *mcp, JsonWriter *w) {
        for (size_t i = 0; i < ELEMENTSOF(tools); i++) {
                const RpcMethod *method = tools_method(mcp, tools[i].method);

                json_write_object(w, NULL);
                json_write_string(w, "name", tools[i].name);
                json_write_string(w, "title", tools[i].title);
                json_write_string(w, "description", tools[i].help);
                tools_write_input(method, &tools[i], w);
                if (method && !tools[i].plain)
                        tools_write_output(method, w);
                tools_write_hints(&tools[i], w);
                json_write_end(w);
        }
}
