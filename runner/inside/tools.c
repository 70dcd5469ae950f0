/* SPDX-License-Identifier: Apache-2.0 */
#include "inside/tools.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/json-schema.h"
#include "base/list.h"
#include "inside/tools-internal.h"

const char *tool_failure_name(ToolFailureKind kind) {
        static const char *const names[] = {
                [TOOL_VALIDATION] = "validation_error",
                [TOOL_PERMISSION] = "permission_error",
                [TOOL_TIMED_OUT] = "timeout",
                [TOOL_INTERNAL] = "internal_error",
        };

        static_assert(ELEMENTSOF(names) == TOOL_FAILURE_MAX, "every kind has a name");
        return names[kind];
}

/* --- the table --- */

int tools_new(Loop *loop, Unwritten *unwritten, Tools **ret, Error *reterr) {
        Tools *all = calloc(1, sizeof(*all));

        if (!all)
                return error_oom(reterr);
        all->loop = loop;
        all->unwritten = unwritten;
        *ret = all;
        return 0;
}

Tool *tool_unref(Tool *tool) {
        if (!tool || --tool->references > 0)
                return NULL;
        free(tool->name);
        free(tool->description);
        json_free(tool->input);
        json_free(tool->output);
        json_write_clear(&tool->input_text);
        json_write_clear(&tool->output_text);
        free(tool);
        return NULL;
}

static void remove_tool(Tools *all, Tool *tool) {
        (void)list_remove(&all->tools, tool);
        (void)tool_unref(tool);
}

Tools *tools_free(Tools *all) {
        if (!all)
                return NULL;
        tool_calls_drop(all);
        while (all->grants)
                (void)grant_end(all->grants);
        while (all->tools)
                remove_tool(all, all->tools);
        free(all);
        return NULL;
}

Tool *tool_find(const Tools *all, const char *name) {
        for (Tool *tool = all->tools; tool; tool = tool->next)
                if (streq(tool->name, name))
                        return tool;
        return NULL;
}

/* --- registering --- */

static int tools_check_name(const char *name, Error *reterr) {
        bool plain = name[0] != '\0' && strlen(name) <= TOOL_NAME_MAX;
        char quoted[100];
        int r;

        for (const char *c = name; *c; c++)
                plain &= isalnum((unsigned char)*c) || strchr("_-.", *c);
        if (plain)
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "the tool name \"%s\" is invalid",
                      str_quote(name, quoted, sizeof(quoted)));
        return error_cure(reterr, r,
                          "Use 1 to %d of the characters A-Z, a-z, 0-9, \"_\", \"-\" and \".\".",
                          TOOL_NAME_MAX);
}

/* Makes a document of its own, and the text of it. */
static int copy_schema(const JsonValue *schema, const char *name, JsonDocument **ret,
                       JsonWriter *ret_text, Error *reterr) {
        int r;

        if (!schema)
                return 0;
        json_copy(ret_text, NULL, schema);
        if (json_write_finish(ret_text) < 0)
                return error_oom(reterr);
        if (ret_text->length > TOOL_SCHEMA_MAX) {
                (void)error_set(reterr, ERROR_LIMIT, 0, "the %s of the tool exceeds %d KiB", name,
                                TOOL_SCHEMA_MAX >> 10);
                return -E2BIG;
        }
        r = json_schema_verify(schema, name, reterr);
        return r < 0 ? r : json_parse(ret_text->data, ret_text->length, name, ret, reterr);
}

static int tool_new(RpcConnection *owner, const ToolSpec *spec, Tool **ret, Error *reterr) {
        Tool *tool = calloc(1, sizeof(*tool));
        int r;

        if (!tool)
                return error_oom(reterr);
        *tool = (Tool){ .references = 1,
                        .owner = owner,
                        .name = strdup(spec->name),
                        .description = strdup(spec->description),
                        .timeout_ms = spec->timeout_ms,
                        .checked_by_client = spec->checked_by_client };
        r = tool->name && tool->description ? 0 : error_oom(reterr);
        if (r == 0)
                r = copy_schema(spec->input, "input_schema", &tool->input, &tool->input_text,
                                reterr);
        if (r == 0)
                r = copy_schema(spec->output, "output_schema", &tool->output, &tool->output_text,
                                reterr);
        if (r < 0)
                (void)tool_unref(tool);
        else
                *ret = tool;
        return r;
}

static size_t schemas_size(const Tool *tool) {
        return tool->input_text.length + tool->output_text.length;
}

static int tools_check_room(const Tools *all, const Tool *tool, Error *reterr) {
        unsigned count = 0;
        size_t schemas = schemas_size(tool);

        for (const Tool *t = all->tools; t; t = t->next) {
                if (streq(t->name, tool->name)) /* The new tool replaces it. */
                        continue;
                schemas += schemas_size(t);
                count++;
        }
        if (count < TOOLS_MAX && schemas <= TOOLS_SCHEMAS_MAX)
                return 0;
        if (count < TOOLS_MAX)
                (void)error_set(reterr, ERROR_LIMIT, 0,
                                "the schemas of all tools together exceed %d MiB",
                                TOOLS_SCHEMAS_MAX >> 20);
        else
                (void)error_set(reterr, ERROR_LIMIT, 0, "%d tools are registered already",
                                TOOLS_MAX);
        return error_cure(reterr, -EBUSY, "Unregister some.");
}

int tools_register(Tools *all, RpcConnection *owner, const ToolSpec *spec, Error *reterr) {
        const Tool *old = tool_find(all, spec->name);
        Tool *tool = NULL;
        int r = tools_check_name(spec->name, reterr);

        if (r < 0)
                return r;
        if (old && old->owner != owner) {
                (void)error_set(reterr, ERROR_EXISTS, 0,
                                "another client has already registered a tool named \"%s\"",
                                spec->name);
                return error_cure(reterr, -EEXIST, "Choose another name.");
        }
        r = tool_new(owner, spec, &tool, reterr);
        if (r == 0)
                r = tools_check_room(all, tool, reterr);
        if (r < 0) {
                (void)tool_unref(tool);
                return r;
        }
        if (old)
                (void)tools_unregister(all, owner, spec->name, reterr);
        list_push(&all->tools, tool);
        return 0;
}

int tools_unregister(Tools *all, const RpcConnection *owner, const char *name, Error *reterr) {
        char quoted[100];

        list_each_safe(tool, all->tools)
                if (streq(tool->name, name) && tool->owner == owner) {
                        remove_tool(all, tool);
                        return 0;
                }
        (void)error_set(reterr, ERROR_MISSING, 0,
                        "this client has not registered a tool named \"%s\"",
                        str_quote(name, quoted, sizeof(quoted)));
        return -ENOENT;
}

void tools_forget(Tools *all, const RpcConnection *owner) {
        list_each_safe(tool, all->tools)
                if (tool->owner == owner)
                        remove_tool(all, tool);
        /* The owner's processes may go on, and the next connection may have the same address. */
        for (Grant *grant = all->grants; grant; grant = grant->next)
                if (grant->owner == owner)
                        grant->owner = NULL;
        tool_calls_end(all, NULL, owner);
}

/* Uses the schema texts written at registration, because anybody may list the tools again and
 * again. */
static void write_tool(const Tool *tool, JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "name", tool->name);
        json_write_string(w, "description", tool->description);
        json_write_value(w, "input_schema", &tool->input_text);
        if (tool->output)
                json_write_value(w, "output_schema", &tool->output_text);
        else
                json_write_null(w, "output_schema");
        json_write_uint(w, "timeout_ms", tool->timeout_ms);
        json_write_end(w);
}

void tools_write(const Tools *all, const Grant *grant, const char *key, JsonWriter *w) {
        json_write_array(w, key);
        for (const Tool *tool = all->tools; tool; tool = tool->next)
                if (!grant || grant_allows(grant, tool))
                        write_tool(tool, w);
        json_write_end(w);
}

/* --- grants --- */

static int make_token(char token[TOOL_TOKEN_LENGTH + 1]) {
        unsigned char bytes[TOOL_TOKEN_LENGTH / 2];

        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
                return -errno;
        for (size_t i = 0; i < sizeof(bytes); i++)
                (void)snprintf(token + 2 * i, 3, "%02x", bytes[i]);
        return 0;
}

int tools_grant(Tools *all, const StrList *names, const RpcConnection *owner, Grant **ret,
                Error *reterr) {
        Grant *grant = calloc(1, sizeof(*grant));
        int r;

        if (!grant)
                return error_oom(reterr);
        grant->all = all;
        grant->named = names != NULL;
        grant->owner = owner;
        r = make_token(grant->token);
        if (r < 0) {
                free(grant);
                return error_set(reterr, ERROR_SETUP, -r, "cannot make a token for tool calls");
        }
        list_push(&all->grants, grant);
        for (size_t i = 0; names && i < names->count; i++)
                if (strlist_add(&grant->names, names->items[i]) < 0) {
                        (void)grant_end(grant);
                        return error_oom(reterr);
                }
        *ret = grant;
        return 0;
}

const char *grant_token(const Grant *grant) {
        return grant->token;
}

void grant_set_exec(Grant *grant, const char *exec) {
        (void)snprintf(grant->exec, sizeof(grant->exec), "%s", exec);
}

Grant *grant_end(Grant *grant) {
        if (!grant)
                return NULL;
        tool_calls_end(grant->all, grant, NULL);
        (void)list_remove(&grant->all->grants, grant);
        strlist_clear(&grant->names);
        free(grant);
        return NULL;
}

/* Takes equally long for each token of the right length, however many digits are correct. */
static bool is_token(const Grant *grant, const char *token) {
        unsigned char difference = 0;

        for (size_t i = 0; i < TOOL_TOKEN_LENGTH; i++)
                difference |= (unsigned char)(grant->token[i] ^ token[i]);
        return difference == 0;
}

Grant *tools_find_grant(const Tools *all, const char *token) {
        if (strlen(token) != TOOL_TOKEN_LENGTH)
                return NULL;
        for (Grant *grant = all->grants; grant; grant = grant->next)
                if (is_token(grant, token))
                        return grant;
        return NULL;
}

bool grant_allows(const Grant *grant, const Tool *tool) {
        return grant->named ? strlist_has(&grant->names, tool->name) : tool->owner == grant->owner;
}
