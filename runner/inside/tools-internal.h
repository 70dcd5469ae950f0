/* SPDX-License-Identifier: Apache-2.0 */
/* What tools.c, which has tools and grants, and tool-calls.c share. */
#pragma once

#include "inside/tools.h"

typedef struct Tool {
        struct Tool *next;
        unsigned references; /* of the list, and of calls */
        RpcConnection *owner;
        char *name, *description;
        JsonDocument *input, *output;       /* output may be NULL */
        JsonWriter input_text, output_text; /* finished, as they are listed */
        uint64_t timeout_ms;
} Tool;

struct Grant {
        Grant *next;
        Tools *all;
        char token[TOOL_TOKEN_LENGTH + 1];
        char exec[16];
        bool named;
        StrList names;              /* where it is: these, whoever has them */
        const RpcConnection *owner; /* else: this one's, or NULL once it has gone */
        unsigned refusals;
};

struct Tools {
        Loop *loop;
        Unwritten *unwritten;
        Tool *tools;
        Grant *grants;
        ToolCall *first, *last; /* in the order that they came */
        unsigned calls;
        size_t waiting; /* bytes */
        uint64_t last_call;
};

Tool *tool_find(const Tools *all, const char *name);
/* Returns NULL. */
Tool *tool_unref(Tool *tool);
bool grant_allows(const Grant *grant, const Tool *tool);

/* Ends the calls of a grant, or of a client's tools. */
void tool_calls_end(Tools *all, const Grant *grant, const RpcConnection *owner);
/* Frees them all, and tells nobody. */
void tool_calls_drop(Tools *all);
