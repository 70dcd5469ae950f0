/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of methods: a reference for people, and a document for programs. */
#pragma once

#include <stdio.h>

#include "rpc/table.h"

/* "a string", "true or false". */
const char *rpc_type_name(RpcType type);

/* "a string of at most 256 bytes, required". Returns buf. */
enum { RPC_PARAM_TEXT_MAX = 160 };
const char *rpc_param_text(const RpcParam *param, char buf[RPC_PARAM_TEXT_MAX]);

/* Calls fn for each field of a shape. The fields of its base come first. */
void rpc_each_field(const RpcShape *shape, void (*fn)(void *data, const RpcField *field),
                    void *data);

/* A set of table rows that methods refer to. */
typedef struct RpcFound {
        const void **items; /* owned */
        size_t count;
} RpcFound;
void rpc_found_clear(RpcFound *found);

/* Finds the RpcShapes of all results, nested ones included, and the RpcOutgoings. Both end the
 * process if memory is out, which suits a program that prints its reference. */
void rpc_find_shapes(const RpcMethod *methods, size_t count, RpcFound *ret);
void rpc_find_outgoings(const RpcMethod *methods, size_t count, RpcFound *ret);

/* Prints the table as the method reference, as text or JSON. The JSON is one object with a member
 * for each method: {"help", "params": a JSON schema, "result": a JSON schema, "errors": names}. */
void rpc_print_methods(const RpcMethod *methods, size_t count, bool json, FILE *out);

/* Prints the table as an OpenRPC 1.3 document (spec.open-rpc.org).
 *
 * Shapes become components/schemas, and errors components/errors. OpenRPC has no place for messages
 * that a server sends by itself. They are in "x-notifications" and "x-requests", which are arrays
 * of method objects. "x-sends" of a method has the names of the messages that may follow its reply.
 *
 * 0, or a negative errno if an example is not JSON or memory is out. */
int rpc_print_openrpc(const RpcMethod *methods, size_t count, FILE *out, Error *reterr);
