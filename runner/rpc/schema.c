/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/schema.h"

#include <stdio.h>

#include "rpc/methods.h"

static void write_values(JsonWriter *w, const char *const *values, bool or_null) {
        if (!values)
                return;
        json_write_array(w, "enum");
        for (; *values; values++)
                json_write_string(w, NULL, *values);
        if (or_null)
                json_write_null(w, NULL);
        json_write_end(w);
}

void rpc_schema_name_type(JsonWriter *w, const char *type, bool or_null) {
        if (!or_null) {
                json_write_string(w, "type", type);
                return;
        }
        json_write_array(w, "type");
        json_write_string(w, NULL, type);
        json_write_string(w, NULL, "null");
        json_write_end(w);
}

/* Writes the type of an array's items, or of an object's members. */
static void write_strings(JsonWriter *w, const char *key) {
        json_write_object(w, key);
        json_write_string(w, "type", "string");
        json_write_end(w);
}

/* --- parameters --- */

static void param_string(JsonWriter *w, const RpcParam *param) {
        rpc_schema_name_type(w, "string", false);
        if (param->max)
                /* max counts bytes; JSON Schema counts characters. A string with more characters
                 * than max has more bytes, too. */
                json_write_uint(w, "maxLength", param->max);
        if (param->form)
                json_write_string(w, "pattern", param->form->pattern);
        write_values(w, param->values, false);
}

/* Writes no maximum: the encoded text of a path is longer than the path. */
static void schema_path(JsonWriter *w, const RpcParam *param) {
        (void)param;
        rpc_schema_name_type(w, "string", false);
}

static void param_bool(JsonWriter *w, const RpcParam *param) {
        (void)param;
        rpc_schema_name_type(w, "boolean", false);
}

static void param_uint(JsonWriter *w, const RpcParam *param) {
        rpc_schema_name_type(w, "integer", false);
        json_write_uint(w, "minimum", param->min);
        if (param->max)
                json_write_uint(w, "maximum", param->max);
}

static void param_strings(JsonWriter *w, const RpcParam *param) {
        rpc_schema_name_type(w, "array", false);
        write_strings(w, "items");
        if (param->max)
                json_write_uint(w, "maxItems", param->max);
}

static void param_map(JsonWriter *w, const RpcParam *param) {
        rpc_schema_name_type(w, "object", false);
        write_strings(w, "additionalProperties");
        if (param->max)
                json_write_uint(w, "maxProperties", param->max);
}

static void write_component(JsonWriter *w, const char *name) {
        char path[120];

        (void)snprintf(path, sizeof(path), "#/components/schemas/%s", name);
        json_write_string(w, "$ref", path);
}

static void param_object(JsonWriter *w, const RpcParam *param) {
        if (param->component)
                write_component(w, param->component);
        else
                rpc_schema_name_type(w, "object", false);
}

static void (*const param_types[])(JsonWriter *w, const RpcParam *param) = {
        [RPC_STRING] = param_string, [RPC_PATH] = schema_path,      [RPC_BOOL] = param_bool,
        [RPC_UINT] = param_uint,     [RPC_STRINGS] = param_strings, [RPC_MAP] = param_map,
        [RPC_OBJECT] = param_object,
};
static_assert(ELEMENTSOF(param_types) == RPC_PARAM_TYPE_MAX, "every type has a schema");

void rpc_schema_param(JsonWriter *w, const RpcParam *param) {
        assert(param->type < RPC_PARAM_TYPE_MAX);
        param_types[param->type](w, param);
}

void rpc_schema_params(JsonWriter *w, const RpcMethod *method) {
        json_write_string(w, "type", "object");
        json_write_object(w, "properties");
        for (size_t i = 0; i < method->params_count; i++) {
                json_write_object(w, method->params[i].name);
                json_write_string(w, "description", method->params[i].help);
                rpc_schema_param(w, &method->params[i]);
                json_write_end(w);
        }
        json_write_end(w);
        json_write_array(w, "required");
        for (size_t i = 0; i < method->params_count; i++)
                if (method->params[i].required)
                        json_write_string(w, NULL, method->params[i].name);
        json_write_end(w);
        json_write_bool(w, "additionalProperties", false);
}

/* --- results --- */

void rpc_schema_reference(JsonWriter *w, const RpcShape *shape) {
        write_component(w, shape->name);
}

static void field_plain(JsonWriter *w, const RpcField *field) {
        static const char *const names[] = {
                [RPC_STRING] = "string", [RPC_PATH] = "string",   [RPC_BOOL] = "boolean",
                [RPC_UINT] = "integer",  [RPC_STRINGS] = "array", [RPC_MAP] = "object",
                [RPC_OBJECT] = "object", [RPC_MAPS] = "array",
        };
        const bool or_null = field->presence == RPC_OR_NULL;

        rpc_schema_name_type(w, names[field->type], or_null);
        write_values(w, field->values, or_null);
}

static void field_uint(JsonWriter *w, const RpcField *field) {
        field_plain(w, field);
        json_write_uint(w, "minimum", 0);
}

static void field_strings(JsonWriter *w, const RpcField *field) {
        field_plain(w, field);
        write_strings(w, "items");
}

static void field_map(JsonWriter *w, const RpcField *field) {
        field_plain(w, field);
        write_strings(w, "additionalProperties");
}

static void field_maps(JsonWriter *w, const RpcField *field) {
        field_plain(w, field);
        json_write_object(w, "items");
        rpc_schema_name_type(w, "object", false);
        write_strings(w, "additionalProperties");
        json_write_end(w);
}

/* Writes no type, so that any value is valid. */
static void field_any(JsonWriter *w, const RpcField *field) {
        (void)w;
        (void)field;
}

static void field_component(JsonWriter *w, const char *name, bool or_null) {
        if (!or_null)
                return write_component(w, name);
        json_write_array(w, "anyOf");
        json_write_object(w, NULL);
        write_component(w, name);
        json_write_end(w);
        json_write_object(w, NULL);
        rpc_schema_name_type(w, "null", false);
        json_write_end(w);
        json_write_end(w);
}

static void field_shape(JsonWriter *w, const RpcField *field) {
        field_component(w, field->shape->name, field->presence == RPC_OR_NULL);
}

static void field_object(JsonWriter *w, const RpcField *field) {
        if (field->component)
                field_component(w, field->component, field->presence == RPC_OR_NULL);
        else
                field_plain(w, field);
}

static void field_shapes(JsonWriter *w, const RpcField *field) {
        rpc_schema_name_type(w, "array", field->presence == RPC_OR_NULL);
        json_write_object(w, "items");
        rpc_schema_reference(w, field->shape);
        json_write_end(w);
}

static void (*const field_types[])(JsonWriter *w, const RpcField *field) = {
        [RPC_STRING] = field_plain,  [RPC_PATH] = field_plain,      [RPC_BOOL] = field_plain,
        [RPC_UINT] = field_uint,     [RPC_STRINGS] = field_strings, [RPC_MAP] = field_map,
        [RPC_OBJECT] = field_object, [RPC_MAPS] = field_maps,       [RPC_ANY] = field_any,
        [RPC_SHAPE] = field_shape,   [RPC_SHAPES] = field_shapes,
};
static_assert(ELEMENTSOF(field_types) == RPC_TYPE_MAX, "every type has a schema");

void rpc_schema_type(JsonWriter *w, const RpcField *field) {
        field_types[field->type](w, field);
}

void rpc_schema_field(JsonWriter *w, const RpcField *field) {
        if (field->help)
                json_write_string(w, "description", field->help);
        rpc_schema_type(w, field);
}

static void write_property(void *data, const RpcField *field) {
        JsonWriter *w = data;

        json_write_object(w, field->name);
        rpc_schema_field(w, field);
        json_write_end(w);
}

static void write_required(void *data, const RpcField *field) {
        if (field->presence != RPC_SOMETIMES)
                json_write_string(data, NULL, field->name);
}

/* Generators of clients name types after the titles. */
void rpc_schema_shape(JsonWriter *w, const RpcShape *shape) {
        json_write_string(w, "title", shape->name);
        if (shape->help)
                json_write_string(w, "description", shape->help);
        json_write_string(w, "type", "object");
        json_write_object(w, "properties");
        rpc_each_field(shape, write_property, w);
        json_write_end(w);
        json_write_array(w, "required");
        rpc_each_field(shape, write_required, w);
        json_write_end(w);
        json_write_bool(w, "additionalProperties", false);
}
