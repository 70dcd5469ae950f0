/* SPDX-License-Identifier: Apache-2.0 */
/* The table of methods as a reference for people, and as a document for programs. */
#pragma once

#include <stdio.h>

#include "rpc/table.h"

/* "a string", "true or false". */
const char *rpc_type_name(RpcType type);

/* "a string of at most 256 bytes, required". Returns buf. */
enum { RPC_PARAM_TEXT_MAX = 160 };
const char *rpc_param_text(const RpcParam *param, char buf[RPC_PARAM_TEXT_MAX]);

/* Calls fn for each field of a shape, those of its base first. */
void rpc_each_field(const RpcShape *shape, void (*fn)(void *data, const RpcField *field),
                    void *data);

/* Rows of tables that several methods name, each once. */
typedef struct RpcFound {
        const void **items; /* owned */
        size_t count;
} RpcFound;
void rpc_found_clear(RpcFound *found);

/* The RpcShapes of results, with those in them; and the RpcOutgoings. Both end the process if
 * memory is out, which is right for a program that prints its reference. */
void rpc_find_shapes(const RpcMethod *methods, size_t count, RpcFound *ret);
void rpc_find_outgoings(const RpcMethod *methods, size_t count, RpcFound *ret);

/* Prints the table as the method reference: text, or with json one object with a member for each
 * method: {"help", "params": a JSON schema, "result": a JSON schema, "errors": names}. */
void rpc_print_methods(const RpcMethod *methods, size_t count, bool json, FILE *out);

/* Prints the table as an OpenRPC 1.3 document (spec.open-rpc.org).
 *
 * Shapes are components/schemas, errors components/errors. OpenRPC has no place for what a server
 * sends by itself, so that stands in "x-notifications" and "x-requests", which are arrays of method
 * objects; a method has the names of those that may follow it in its own "x-sends".
 *
 * 0, or a negative errno when an example is no JSON or memory is out. */
int rpc_print_openrpc(const RpcMethod *methods, size_t count, FILE *out, Error *reterr);
