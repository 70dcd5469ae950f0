/* SPDX-License-Identifier: Apache-2.0 */
/* Host tools that code inside may call: registration, grants and open calls.
 *
 * Theory of operation. A client registers a tool over its connection; when the connection closes,
 * the tool goes. A call comes from inside (bridge.h) with a token. The token stands for a grant,
 * which says which tools one exec may call: by their names, or by their owner. holt checks the
 * payload against the tool's schema, and sends the client a request (tool.call). It checks the
 * reply in the same way. The client may ask to check both itself. A client has at most
 * RPC_CALLS_MAX requests at a time; further calls wait here, in order. A call ends once: by its
 * reply, its timeout, the end of its grant, or because the caller or the client has gone. Each call
 * has a row in the history and the audit.
 *
 * Names, payloads and tokens are an attacker's. A client's reply is not trusted either, because the
 * attacker's payload may have shaped it. */
#pragma once

#include "base/json.h"
#include "base/loop.h"
#include "rpc/server.h"
#include "store/unwritten.h"

enum {
        TOOLS_MAX = 256,
        TOOL_NAME_MAX = 64,
        TOOL_DESCRIPTION_MAX = 16 << 10,
        TOOL_SCHEMA_MAX = 64 << 10,  /* Bytes of one schema's text. */
        TOOLS_SCHEMAS_MAX = 4 << 20, /* Bytes of all schemas together. */
        TOOL_TIMEOUT = 30000,        /* Milliseconds, if the client sets none. */
        TOOL_TIMEOUT_MAX = 86400000,
        TOOL_CALLS_MAX = 2048,       /* Calls open at the same time. */
        TOOL_WAITING_MAX = 32 << 20, /* Bytes of payloads that wait. */
        TOOL_DEPTH_MAX = 60,         /* Maximum nesting depth of a payload. */
        TOOL_PREVIEW_MAX = 200,      /* Characters of a payload that the history keeps. */
        TOOL_TOKEN_LENGTH = 32,      /* Hex digits. */
        TOOL_REFUSALS_NOTED_MAX =
                256, /* Rows of one grant; code inside can cause any number of refusals. */
};

/* Kind of failure that the caller sees. */
typedef enum ToolFailureKind {
        TOOL_VALIDATION,
        TOOL_PERMISSION,
        TOOL_TIMED_OUT,
        TOOL_INTERNAL,
        TOOL_FAILURE_MAX,
} ToolFailureKind;
/* Returns "validation_error", "permission_error", "timeout" or "internal_error". */
const char *tool_failure_name(ToolFailureKind kind);

typedef struct ToolFailure {
        ToolFailureKind kind;
        char message[1600];
} ToolFailure;

typedef struct Tools Tools;
typedef struct Grant Grant;       /* Tools that one exec may call. */
typedef struct ToolCall ToolCall; /* An open call. */

/* Returns 0 or -ENOMEM. */
int tools_new(Loop *loop, Unwritten *unwritten, Tools **ret, Error *reterr);
/* Frees all grants too, and leaves open calls without a reply. NULL is legal; returns NULL. */
Tools *tools_free(Tools *all);

/* --- clients --- */

typedef struct ToolSpec {
        const char *name, *description;
        const JsonValue *input, *output; /* JSON schemas, borrowed; output may be NULL. */
        uint64_t timeout_ms;
        bool checked_by_client; /* The schemas are for listings; the client converts and checks. */
} ToolSpec;

/* Registers a tool, replacing one of the same name and owner. Returns -EEXIST with an ERROR_EXISTS
 * if another connection owns the name; -EINVAL for an invalid name; -EBUSY or -E2BIG with an
 * ERROR_LIMIT; or -ENOMEM. */
int tools_register(Tools *all, RpcConnection *owner, const ToolSpec *spec, Error *reterr);
/* Returns -ENOENT with an ERROR_MISSING if the connection has no such tool. */
int tools_unregister(Tools *all, const RpcConnection *owner, const char *name, Error *reterr);
/* Writes an array, called key, of the tools that the grant allows, or of all tools if it is
 * NULL. */
void tools_write(const Tools *all, const Grant *grant, const char *key, JsonWriter *w);
/* Removes the tools of a client that has gone. */
void tools_forget(Tools *all, const RpcConnection *owner);
/* Sends waiting calls to a client that reads again. */
void tools_pump(Tools *all, const RpcConnection *owner);

/* --- grants --- */

/* names: the allowed tools, whoever offers them; copied. NULL allows the tools of owner while that
 * connection lasts; tools of the session's other clients are for their own code. *ret lasts until
 * grant_end(). Returns 0, -ENOMEM, or an errno of getrandom(2). */
int tools_grant(Tools *all, const StrList *names, const RpcConnection *owner, Grant **ret,
                Error *reterr);
const char *grant_token(const Grant *grant);
/* Sets the id of the process that the grant is for, for the history. */
void grant_set_exec(Grant *grant, const char *exec);
/* Fails the grant's calls and frees it. NULL is legal; returns NULL. */
Grant *grant_end(Grant *grant);
/* Finds a grant by its token, which may be any text. Returns NULL if no grant has it. */
Grant *tools_find_grant(const Tools *all, const char *token);

/* --- calls --- */

/* Either value or failure is set, and borrowed. The call no longer exists. */
typedef void (*ToolDoneFn)(void *data, const JsonValue *value, const ToolFailure *failure);

/* Starts a call. A payload of NULL means an empty object. fn is called once, but never during this
 * call, and not after a cancellation. Returns 0, or -EINVAL with *failure written. */
int tools_call(Tools *all, Grant *grant, const char *name, const JsonValue *payload, ToolDoneFn fn,
               void *data, ToolCall **ret, ToolFailure *failure);
/* Ends a call that nobody waits for any more. NULL is legal; returns NULL. */
ToolCall *tool_call_cancel(ToolCall *call);
