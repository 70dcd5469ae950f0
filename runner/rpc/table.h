/* SPDX-License-Identifier: Apache-2.0 */
/* One row of the table of methods: parameters, result, errors, notifications and an example.
 *
 * The server checks requests by it, and the reference and the OpenRPC document are printed from it
 * (rpc/methods.h). All is constant data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct RpcCall RpcCall; /* a request that is not answered yet */

typedef enum RpcType {
        RPC_STRING,
        RPC_PATH, /* a string that stands for any bytes (base/path-text.h); max is of these */
        RPC_BOOL,
        RPC_UINT,
        RPC_STRINGS,                   /* an array of strings */
        RPC_MAP,                       /* an object whose members are strings */
        RPC_OBJECT,                    /* any object */
        RPC_PARAM_TYPE_MAX,            /* the others are for results only */
        RPC_MAPS = RPC_PARAM_TYPE_MAX, /* an array of RPC_MAP */
        RPC_ANY,                       /* any JSON value */
        RPC_SHAPE,                     /* an object that has a table of its own */
        RPC_SHAPES,                    /* an array of such objects */
        RPC_TYPE_MAX,
} RpcType;

typedef struct RpcParam {
        const char *name;
        RpcType type;
        bool required;
        uint64_t max; /* largest number, bytes of a string, number of items; 0: no limit of its own
                       */
        const char *help;          /* one line, with the unit */
        uint64_t min;              /* smallest number */
        const char *const *values; /* the strings that it takes, up to NULL; NULL: any */
} RpcParam;

typedef enum RpcPresence {
        RPC_ALWAYS,
        RPC_OR_NULL,   /* always present, and may be null */
        RPC_SOMETIMES, /* may be missing */
} RpcPresence;

typedef struct RpcShape RpcShape;

/* A member of a result, or of the parameters of what the server sends. */
typedef struct RpcField {
        const char *name;
        RpcType type;
        RpcPresence presence;
        const char *help;          /* one line, with the unit */
        const RpcShape *shape;     /* for RPC_SHAPE and RPC_SHAPES */
        const char *const *values; /* the strings that it can be, up to NULL; NULL: any */
} RpcField;

/* An object that the server sends. */
struct RpcShape {
        const char *name; /* in the document: "Usage" */
        const char *help; /* one line */
        const RpcField *fields;
        size_t fields_count;
        const RpcShape *base; /* its fields come first; or NULL */
};

/* The result of a method that has nothing to say: an empty object. */
extern const RpcShape rpc_nothing;

/* Texts of JSON objects. */
typedef struct RpcExample {
        const char *params, *result;
} RpcExample;

/* A message that the server sends by itself: a notification, or a request if it has a result. */
typedef struct RpcOutgoing {
        const char *name; /* "process.output" */
        const char *help;
        const RpcShape *params;
        const RpcShape *result;
        RpcExample example;
} RpcOutgoing;

enum { RPC_OUTGOING_MAX = 4 };

/* For RpcMethod.errors: RPC_ERROR(MISSING) | RPC_ERROR(EXISTS). */
#define RPC_ERROR(kind) (1U << ERROR_##kind)
/* Every method may answer these: memory is out, or a limit of the connection is reached. */
#define RPC_ERRORS_ALWAYS (RPC_ERROR(SETUP) | RPC_ERROR(LIMIT))

typedef struct RpcMethod {
        const char *name; /* "kv.get" */
        const char *help; /* one line: what it does */
        const RpcParam *params;
        size_t params_count;
        const RpcShape *result;
        unsigned errors;                            /* beside RPC_ERRORS_ALWAYS */
        const RpcOutgoing *sends[RPC_OUTGOING_MAX]; /* what may follow it; up to NULL */
        RpcExample example;
        /* Answers by rpc_reply() or rpc_fail(), now or later, and returns 0; or returns negative
         * with *error written, and has not touched the call. */
        int (*function)(RpcCall *call, void *data, Error *error);
} RpcMethod;

/* For the members params and params_count, fields and fields_count, of a static array. */
#define RPC_PARAMS(array) .params = (array), .params_count = ELEMENTSOF(array)
#define RPC_FIELDS(array) .fields = (array), .fields_count = ELEMENTSOF(array)

/* --- errors --- */

/* The kinds of base/error.h, then those of JSON-RPC itself. */
typedef enum RpcErrorName {
        RPC_NO_JSON = ERROR_KIND_MAX, /* "parse-error" */
        RPC_NO_REQUEST,               /* "invalid-request" */
        RPC_NO_METHOD,                /* "unknown-method" */
        RPC_BAD_PARAMS,               /* "invalid-params" */
        RPC_ERROR_MAX,
} RpcErrorName;

/* Clients rely on codes and names: neither changes. error is an ErrorKind or an RpcErrorName. */
typedef struct RpcErrorRow {
        int code;
        const char *name;
        const char *meaning;
} RpcErrorRow;
const RpcErrorRow *rpc_error_row(unsigned error);
