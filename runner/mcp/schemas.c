/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the tools: schemas of their arguments and results. */
#include <string.h>

#include "mcp/mcp-internal.h"
#include "rpc/methods.h"
#include "rpc/schema.h"

/* --- arguments --- */

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

/* --- results --- */

/* Members of results that are for programs, and only cost a model its attention. */
static const char *const unshown[] = { "call", "field", "policy", "timeout_by_project",
                                       "unrecorded" };

bool mcp_shows(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(unshown); i++)
                if (streq(unshown[i], name))
                        return false;
        return true;
}

static void tools_write_shape(const RpcShape *shape, bool or_null, JsonWriter *w);

static void tools_write_field(void *data, const RpcField *field) {
        const bool or_null = field->presence == RPC_OR_NULL;
        JsonWriter *w = data;

        if (!mcp_shows(field->name))
                return;
        json_write_object(w, field->name);
        if (field->type == RPC_SHAPE)
                tools_write_shape(field->shape, or_null, w);
        else if (field->type == RPC_SHAPES) {
                json_write_string(w, "type", "array");
                json_write_object(w, "items");
                tools_write_shape(field->shape, false, w);
                json_write_end(w);
        } else if (field->type == RPC_UINT)
                rpc_schema_name_type(w, "integer", or_null);
        else
                rpc_schema_type(w, field);
        json_write_end(w);
}

static void tools_write_required(void *data, const RpcField *field) {
        if (field->presence != RPC_SOMETIMES && mcp_shows(field->name))
                json_write_string(data, NULL, field->name);
}

/* Models read the whole list of tools before their first word, so a result has its types only.
 * "holt serve --methods" describes the members. */
static void tools_write_members(const RpcShape *shape, bool noted, JsonWriter *w) {
        json_write_object(w, "properties");
        if (noted) {
                json_write_object(w, "note");
                json_write_string(w, "type", "string");
                json_write_end(w);
        }
        rpc_each_field(shape, tools_write_field, w);
        json_write_end(w);
        json_write_array(w, "required");
        if (noted)
                json_write_string(w, NULL, "note");
        rpc_each_field(shape, tools_write_required, w);
        json_write_end(w);
}

static void tools_write_shape(const RpcShape *shape, bool or_null, JsonWriter *w) {
        rpc_schema_name_type(w, "object", or_null);
        tools_write_members(shape, false, w);
}

static void tools_write_output(const RpcMethod *method, const McpTool *tool, JsonWriter *w) {
        json_write_object(w, "outputSchema");
        json_write_string(w, "type", "object");
        tools_write_members(method->result, tool->noun != NULL, w);
        json_write_end(w);
}

/* Writes the hints that differ from the protocol's defaults. */
static void tools_write_hints(const McpTool *tool, JsonWriter *w) {
        static const struct {
                const char *name;
                unsigned hint;
                bool usual;
        } hints[] = {
                { "readOnlyHint", MCP_READ_ONLY, false },
                { "destructiveHint", MCP_DESTRUCTIVE, true },
                { "idempotentHint", MCP_IDEMPOTENT, false },
                { "openWorldHint", MCP_OPEN_WORLD, true },
        };

        json_write_object(w, "annotations");
        json_write_string(w, "title", tool->title);
        for (size_t i = 0; i < ELEMENTSOF(hints); i++) {
                const bool set = (tool->hints & hints[i].hint) != 0;

                if (set != hints[i].usual)
                        json_write_bool(w, hints[i].name, set);
        }
        json_write_end(w);
}

void mcp_tool_write(const Mcp *mcp, const McpTool *tool, JsonWriter *w) {
        const RpcMethod *method = tools_method(mcp, tool->method);

        json_write_object(w, NULL);
        json_write_string(w, "name", tool->name);
        json_write_string(w, "title", tool->title);
        json_write_string(w, "description", tool->help);
        tools_write_input(method, tool, w);
        if (method && !tool->plain)
                tools_write_output(method, tool, w);
        tools_write_hints(tool, w);
        json_write_end(w);
}
