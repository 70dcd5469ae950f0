/* SPDX-License-Identifier: Apache-2.0 */
/* Types and functions that tools.c (tools and grants) and tool-calls.c (calls) share. */
#pragma once

#include "inside/tools.h"

typedef struct Tool {
        struct Tool *next;
        unsigned references; /* One of the list, and one of each call. */
        RpcConnection *owner;
        char *name, *description;
        JsonDocument *input, *output;       /* output may be NULL; both are owned. */
        JsonWriter input_text, output_text; /* Finished JSON, for listings. */
        uint64_t timeout_ms;
        bool checked_by_client;
} Tool;

struct Grant {
        Grant *next;
        Tools *all;
        char token[TOOL_TOKEN_LENGTH + 1];
        char exec[16];
        bool named;
        StrList names; /* If named: tools that the grant allows, whoever offers them. */
        /* Otherwise: the connection whose tools it allows; NULL once that has closed. */
        const RpcConnection *owner;
        unsigned refusals;
};

struct Tools {
        Loop *loop;
        Unwritten *unwritten;
        Tool *tools;
        Grant *grants;
        ToolCall *first, *last; /* Oldest call first. */
        unsigned calls;
        size_t waiting; /* Bytes of payloads that wait. */
        uint64_t last_call;
};

Tool *tool_find(const Tools *all, const char *name);
/* NULL is legal; returns NULL. */
Tool *tool_unref(Tool *tool);
bool grant_allows(const Grant *grant, const Tool *tool);

/* Ends the calls of a grant, or of a client's tools. */
void tool_calls_end(Tools *all, const Grant *grant, const RpcConnection *owner);
/* Frees all calls without telling anyone. */
void tool_calls_drop(Tools *all);
