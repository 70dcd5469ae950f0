/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of the host that code inside may call: who offers them, who may call which, and the calls
 * that go on.
 *
 * Theory of operation. A client registers a tool over its connection, and the tool goes with that.
 * A call comes from inside (bridge.h) with a token, which stands for a grant: what one exec may
 * call, by names or by whose it is. The payload is checked by the tool's schema, the client is
 * asked by a request (tool.call), and what it answers is checked likewise. A client has
 * RPC_CALLS_MAX requests at a time; further calls wait here, in order. A call ends once: by its
 * answer, its time, the end of its grant, of who called or of the client. Each is noted in the
 * history and the audit.
 *
 * Names, payloads and tokens are an attacker's. So may be what a client answers, for the code that
 * it called may have been fed by one. */
#pragma once

#include "base/json.h"
#include "base/loop.h"
#include "rpc/server.h"
#include "store/unwritten.h"

enum {
        TOOLS_MAX = 256,
        TOOL_NAME_MAX = 64,
        TOOL_DESCRIPTION_MAX = 16 << 10,
        TOOL_SCHEMA_MAX = 64 << 10,  /* bytes of one schema's text */
        TOOLS_SCHEMAS_MAX = 4 << 20, /* of all of them */
        TOOL_TIMEOUT = 30000,        /* ms, where nobody says otherwise */
        TOOL_TIMEOUT_MAX = 86400000,
        TOOL_CALLS_MAX = 2048,         /* at the same time */
        TOOL_WAITING_MAX = 32 << 20,   /* bytes of payloads that wait */
        TOOL_DEPTH_MAX = 60,           /* objects and arrays in each other, of a payload */
        TOOL_PREVIEW_MAX = 200,        /* characters of a payload in the history */
        TOOL_TOKEN_LENGTH = 32,        /* hex digits */
        TOOL_REFUSALS_NOTED_MAX = 256, /* of one grant: inside can make any number */
};

/* What kind of failure the caller sees. */
typedef enum ToolFailureKind {
        TOOL_VALIDATION,
        TOOL_PERMISSION,
        TOOL_TIMED_OUT,
        TOOL_INTERNAL,
        TOOL_FAILURE_MAX,
} ToolFailureKind;
/* "validation_error", "permission_error", "timeout", "internal_error" */
const char *tool_failure_name(ToolFailureKind kind);

typedef struct ToolFailure {
        ToolFailureKind kind;
        char message[1600];
} ToolFailure;

typedef struct Tools Tools;
typedef struct Grant Grant;       /* what one exec may call */
typedef struct ToolCall ToolCall; /* that goes on */

/* 0 or -ENOMEM. */
int tools_new(Loop *loop, Unwritten *unwritten, Tools **ret, Error *reterr);
/* With all grants; calls are not answered any more. NULL is legal; returns NULL. */
Tools *tools_free(Tools *all);

/* --- clients --- */

typedef struct ToolSpec {
        const char *name, *description;
        const JsonValue *input, *output; /* output may be NULL */
        uint64_t timeout_ms;
} ToolSpec;

/* In place of one of the same name and owner. -EEXIST with an ERROR_EXISTS where it is another
 * connection's; -EINVAL (the name), -EBUSY or -E2BIG with an ERROR_LIMIT; -ENOMEM. */
int tools_register(Tools *all, RpcConnection *owner, const ToolSpec *spec, Error *reterr);
/* -ENOENT with an ERROR_MISSING where the connection has no such tool. */
int tools_unregister(Tools *all, const RpcConnection *owner, const char *name, Error *reterr);
/* Writes an array, called key, of those that the grant may call; of all without one. */
void tools_write(const Tools *all, const Grant *grant, const char *key, JsonWriter *w);
/* A client has gone, with its tools. */
void tools_forget(Tools *all, const RpcConnection *owner);
/* A client reads again. */
void tools_pump(Tools *all, const RpcConnection *owner);

/* --- grants --- */

/* names: what it may call, whoever has it, copied. NULL: what owner has as long as that connection
 * lasts; what other clients of the session offer is for their own code. *ret lasts until
 * grant_end(). 0, -ENOMEM, or an errno of getrandom(2). */
int tools_grant(Tools *all, const StrList *names, const RpcConnection *owner, Grant **ret,
                Error *reterr);
const char *grant_token(const Grant *grant);
/* The process that it is for, for the history. */
void grant_set_exec(Grant *grant, const char *exec);
/* Its calls fail. NULL is legal; returns NULL. */
Grant *grant_end(Grant *grant);
/* By a token of any text; NULL where there is none. */
Grant *tools_find_grant(const Tools *all, const char *token);

/* --- calls --- */

/* value or failure; borrowed. The call is gone. */
typedef void (*ToolDoneFn)(void *data, const JsonValue *value, const ToolFailure *failure);

/* payload may be NULL: an empty object. fn is called once, and never from in here, unless the call
 * is cancelled before. 0, or -EINVAL with *failure written. */
int tools_call(Tools *all, Grant *grant, const char *name, const JsonValue *payload, ToolDoneFn fn,
               void *data, ToolCall **ret, ToolFailure *failure);
/* Nobody waits for it any more. NULL is legal; returns NULL. */
ToolCall *tool_call_cancel(ToolCall *call);
