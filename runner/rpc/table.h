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

typedef struct RpcCall RpcCall; /* an unanswered request */

typedef enum RpcType {
        RPC_STRING,
        RPC_PATH, /* a string that encodes any bytes (base/path-text.h); max counts these bytes */
        RPC_BOOL,
        RPC_UINT,
        RPC_STRINGS,                   /* an array of strings */
        RPC_MAP,                       /* an object whose members are strings */
        RPC_OBJECT,                    /* any object */
        RPC_PARAM_TYPE_MAX,            /* the types below are only for results */
        RPC_MAPS = RPC_PARAM_TYPE_MAX, /* an array of RPC_MAP */
        RPC_ANY,                       /* any JSON value */
        RPC_SHAPE,                     /* an object with its own table of fields */
        RPC_SHAPES,                    /* an array of such objects */
        RPC_TYPE_MAX,
} RpcType;

/* Components of the OpenRPC document that have the schema of "holt policy schema": a whole
 * document, and some of its fields. */
#define RPC_POLICY "Policy"
#define RPC_POLICY_PART "PolicyPart"

/* A form of strings that a pattern describes. */
typedef struct RpcForm {
        const char *noun;    /* "session name" */
        const char *pattern; /* a regular expression of ECMA-262, for the schema */
        bool (*fits)(const char *text);
        const char *cure; /* the rules in words */
} RpcForm;

typedef struct RpcParam {
        const char *name;
        RpcType type;
        bool required;
        uint64_t max;     /* largest number, bytes of a string, or number of items; 0: no limit */
        const char *help; /* one line, with the unit */
        uint64_t min;     /* smallest number */
        const char *const *values; /* the allowed strings, ended by NULL; NULL: any string */
        const char *component;     /* the schema of an RPC_OBJECT: RPC_POLICY; NULL: any object */
        const RpcForm *form;       /* the form of an RPC_STRING; NULL: any string */
} RpcParam;

typedef enum RpcPresence {
        RPC_ALWAYS,
        RPC_OR_NULL,   /* always present, and may be null */
        RPC_SOMETIMES, /* may be missing */
} RpcPresence;

typedef struct RpcShape RpcShape;

/* A field of a result, or of the parameters of a message that the server sends. */
typedef struct RpcField {
        const char *name;
        RpcType type;
        RpcPresence presence;
        const char *help;          /* one line, with the unit */
        const RpcShape *shape;     /* for RPC_SHAPE and RPC_SHAPES */
        const char *const *values; /* the possible strings, ended by NULL; NULL: any string */
        const char *component;     /* the schema of an RPC_OBJECT: RPC_POLICY_PART; NULL: any */
} RpcField;

/* An object that the server sends. */
struct RpcShape {
        const char *name; /* its name in the OpenRPC document, such as "Usage" */
        const char *help; /* one line */
        const RpcField *fields;
        size_t fields_count;
        const RpcShape *base; /* its fields come first; or NULL */
};

/* The empty object, for a method without a result. */
extern const RpcShape rpc_nothing;

/* Each is the text of a JSON object. */
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

/* A bit of RpcMethod.errors: RPC_ERROR(MISSING) | RPC_ERROR(EXISTS). */
#define RPC_ERROR(kind) (1U << ERROR_##kind)
/* Any method may fail with these: memory is out, or a limit of the connection is reached. */
#define RPC_ERRORS_ALWAYS (RPC_ERROR(SETUP) | RPC_ERROR(LIMIT))

typedef struct RpcMethod {
        const char *name; /* "kv.get" */
        const char *help; /* one line: what it does */
        const RpcParam *params;
        size_t params_count;
        const RpcShape *result;
        unsigned errors;                            /* without RPC_ERRORS_ALWAYS */
        const RpcOutgoing *sends[RPC_OUTGOING_MAX]; /* messages that it may cause, ended by NULL */
        RpcExample example;
        bool at_rest; /* holt serve replies for a session at rest without starting it */
        /* Returns 0, and replies by rpc_reply() or rpc_fail(), now or later. Or returns a negative
         * errno with *error set, and leaves the call as it was. */
        int (*function)(RpcCall *call, void *data, Error *error);
} RpcMethod;

/* Initialise the pointer and the count from a static array. */
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

/* Clients rely on codes and names, so neither may change. */
typedef struct RpcErrorRow {
        int code;
        const char *name;
        const char *meaning;
} RpcErrorRow;
/* Returns the row of error, an ErrorKind or an RpcErrorName. */
const RpcErrorRow *rpc_error_row(unsigned error);
