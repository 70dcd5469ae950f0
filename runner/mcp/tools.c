/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mcp/mcp-internal.h"

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
          MCP_GROUP_BASH,
          "Run shell commands",
          "Runs commands in a lasting bash in the sandbox. The directory, variables and functions "
          "last until the next call.",
          "shell.run",
          { { "command", "code", "the commands", true },
            { "cwd", NULL, NULL, false },
            { "timeout_ms", NULL, NULL, false } },
          MCP_DESTRUCTIVE | MCP_OPEN_WORLD,
          .runs = true,
          .noun = "shell",
          .interrupt = "shell.interrupt",
          .write_fixed = tools_fix_output,
          .write_content = mcp_content_command },
        { "bash_restart",
          MCP_GROUP_BASH,
          "Restart the shell",
          "Kills the shell of the tool bash with everything that it started. The next call gets a "
          "new one.",
          "shell.restart",
          { { NULL } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "python",
          MCP_GROUP_PYTHON,
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
          .noun = "interpreter",
          .interrupt = "python.interrupt",
          .write_fixed = tools_fix_output,
          .write_content = mcp_content_python },
        { "python_restart",
          MCP_GROUP_PYTHON,
          "Restart the interpreter",
          "Kills the interpreter of the tool python. The next call gets a new one.",
          "python.restart",
          { { NULL } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "read",
          MCP_GROUP_FILES,
          "Read a file",
          "Reads a part of a text file.",
          "files.read",
          { { "path", NULL, NULL, true },
            { "offset", NULL, NULL, false },
            { "length", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT,
          .write_content = mcp_content_read },
        { "write",
          MCP_GROUP_FILES,
          "Write a file",
          "Creates a file, or replaces its content. Missing directories are created.",
          "files.write",
          { { "path", NULL, NULL, true }, { "content", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT,
          .write_fixed = tools_fix_parents },
        { "edit",
          MCP_GROUP_FILES,
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
          MCP_GROUP_FILES,
          "List a directory",
          "Lists a directory in the sandbox.",
          "files.list",
          { { "path", NULL, NULL, false },
            { "recursive", NULL, NULL, false },
            { "after", NULL, NULL, false },
            { "limit", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "glob",
          MCP_GROUP_FILES,
          "Find files",
          "Finds files by a pattern of their path.",
          "files.glob",
          { { "pattern", NULL, NULL, true },
            { "path", NULL, NULL, false },
            { "limit", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "grep",
          MCP_GROUP_FILES,
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
          MCP_GROUP_FILES,
          "Upload a file",
          "Writes a file with any bytes, which are passed in base64.",
          "files.write",
          { { "path", NULL, NULL, true }, { "base64", NULL, "the content in base64", true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT,
          .write_fixed = tools_fix_parents },
        { "download",
          MCP_GROUP_FILES,
          "Download a file",
          "Reads a part of a file in base64.",
          "files.read",
          { { "path", NULL, NULL, true },
            { "offset", NULL, NULL, false },
            { "length", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT,
          .write_fixed = tools_fix_base64 },
        { "process_start",
          MCP_GROUP_PROCESSES,
          "Start a process",
          "Starts a command in the background, with a pipe for its stdin.",
          "process.spawn",
          { { "command", "shell", "command line for bash -c", true },
            { "cwd", NULL, NULL, false },
            { "timeout_ms", NULL, NULL, false } },
          MCP_DESTRUCTIVE | MCP_OPEN_WORLD,
          .write_fixed = tools_fix_input },
        { "process_read",
          MCP_GROUP_PROCESSES,
          "Read a process's output",
          "Reads what a process has printed, in chunks, and its state.",
          "process.read",
          { { "id", NULL, NULL, true }, { "from", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "process_write",
          MCP_GROUP_PROCESSES,
          "Write to a process",
          "Writes to the stdin of a process.",
          "process.write",
          { { "id", NULL, NULL, true }, { "data", NULL, NULL, true } },
          MCP_DESTRUCTIVE },
        { "process_close_stdin",
          MCP_GROUP_PROCESSES,
          "End a process's input",
          "Ends the stdin of a process.",
          "process.close_stdin",
          { { "id", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "process_wait",
          MCP_GROUP_PROCESSES,
          "Wait for a process",
          "Waits until a process has ended, and returns its output.",
          "process.wait",
          { { "id", NULL, NULL, true },
            { "timeout_ms", NULL,
              "stop waiting after this time, without ending the process; default 30000", false,
              RPC_UINT } },
          MCP_READ_ONLY | MCP_IDEMPOTENT,
          .noun = "process",
          .write_content = mcp_content_command,
          .start = mcp_wait_start },
        { "process_kill",
          MCP_GROUP_PROCESSES,
          "Kill a process",
          "Kills a process and everything that it has started.",
          "process.kill",
          { { "id", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "process_list",
          MCP_GROUP_PROCESSES,
          "List processes",
          "Lists the processes of the sandbox.",
          "process.list",
          { { NULL } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "kv_get",
          MCP_GROUP_KV,
          "Get a value",
          "Returns the value of a key.",
          "kv.get",
          { { "key", NULL, NULL, true } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "kv_set",
          MCP_GROUP_KV,
          "Set a value",
          "Sets the value of a key, which lasts with the session.",
          "kv.set",
          { { "key", NULL, NULL, true }, { "value", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "kv_delete",
          MCP_GROUP_KV,
          "Delete a value",
          "Removes a key.",
          "kv.delete",
          { { "key", NULL, NULL, true } },
          MCP_DESTRUCTIVE | MCP_IDEMPOTENT },
        { "kv_keys",
          MCP_GROUP_KV,
          "List keys",
          "Lists keys by their prefix.",
          "kv.keys",
          { { "prefix", NULL, NULL, false },
            { "after", NULL, NULL, false },
            { "limit", NULL, NULL, false } },
          MCP_READ_ONLY | MCP_IDEMPOTENT },
        { "forward",
          MCP_GROUP_NETWORK,
          "Forward a port",
          "Lets programs of the host connect to a port in the sandbox.",
          "ports.forward",
          { { "port", NULL, NULL, true } },
          MCP_IDEMPOTENT },
        { "network_status",
          MCP_GROUP_NETWORK,
          "Show the sandbox",
          "Describes the sandbox: its network rules, routes and limits.",
          "session.show",
          { { NULL } },
          MCP_READ_ONLY | MCP_IDEMPOTENT,
          .plain = true,
          .write_content = mcp_content_status },
        { "request_grant",
          MCP_GROUP_NETWORK,
          "Ask for a grant",
          "Asks the user to let the sandbox reach a host. Only the user can allow it.",
          NULL,
          { { "rule", NULL, "a host and a port, such as \"example.org:443\"", true },
            { "reason", NULL, "why the sandbox needs it, for the user", true } },
          MCP_OPEN_WORLD,
          .plain = true,
          .start = mcp_grant_start },
};

static const char *const group_names[] = {
        [MCP_GROUP_BASH] = "bash",   [MCP_GROUP_PYTHON] = "python",
        [MCP_GROUP_FILES] = "files", [MCP_GROUP_PROCESSES] = "processes",
        [MCP_GROUP_KV] = "kv",       [MCP_GROUP_NETWORK] = "network",
};
static_assert(ELEMENTSOF(group_names) == MCP_GROUP_MAX, "every group has a name");

int mcp_groups_parse(const char *text, unsigned *ret, Error *reterr) {
        unsigned groups = 0;
        char shown[64];

        for (const char *word = text;; word += strcspn(word, ",") + 1) {
                const size_t length = strcspn(word, ",");
                size_t i = 0;

                while (i < MCP_GROUP_MAX && (strlen(group_names[i]) != length ||
                                             strncmp(group_names[i], word, length) != 0))
                        i++;
                if (i == MCP_GROUP_MAX) {
                        int r = error_set(reterr, ERROR_USAGE, 0,
                                          "--tools: \"%s\" is no list of groups",
                                          str_quote(text, shown, sizeof(shown)));
                        return error_cure(reterr, r,
                                          "The groups are bash, python, files, processes, kv and "
                                          "network.");
                }
                groups |= 1U << i;
                if (word[length] == '\0')
                        break;
        }
        *ret = groups;
        return 0;
}

const McpTool *mcp_tool_find(const char *name) {
        for (size_t i = 0; name && i < ELEMENTSOF(tools); i++)
                if (streq(tools[i].name, name))
                        return &tools[i];
        return NULL;
}

bool mcp_tool_is_served(const Mcp *mcp, const McpTool *tool) {
        return mcp->settings.groups == 0 || mcp->settings.groups & 1U << tool->group;
}

void mcp_tools_write(const Mcp *mcp, JsonWriter *w) {
        for (size_t i = 0; i < ELEMENTSOF(tools); i++)
                if (mcp_tool_is_served(mcp, &tools[i]))
                        mcp_tool_write(mcp, &tools[i], w);
}
