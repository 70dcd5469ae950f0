/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON schemas of parameters and results, as members of an object that the writer has open.
 */
#pragma once

#include "base/json-write.h"
#include "rpc/table.h"

/* Writes the type of one parameter, and the limits of its row. */
void rpc_schema_param(JsonWriter *w, const RpcParam *param);

/* Writes the schema of an object with all parameters of a method. */
void rpc_schema_params(JsonWriter *w, const RpcMethod *method);

/* Writes a shape. Shapes in it are references to "#/components/schemas/NAME". */
void rpc_schema_shape(JsonWriter *w, const RpcShape *shape);

/* Writes the member "type": the type, or null. */
void rpc_schema_name_type(JsonWriter *w, const char *type, bool or_null);
/* Writes the type of one field of a shape, without its description. */
void rpc_schema_type(JsonWriter *w, const RpcField *field);
/* Writes one field of a shape. */
void rpc_schema_field(JsonWriter *w, const RpcField *field);

/* Writes a reference to a shape. */
void rpc_schema_reference(JsonWriter *w, const RpcShape *shape);
