/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/json-write.h"
#include "base/json.h"
#include "policy/schema.h"
#include "rpc/methods.h"
#include "rpc/schema.h"
#include "version.h"

/* --- parts of a method --- */

static void write_param(JsonWriter *w, const RpcParam *param) {
        json_write_object(w, NULL);
        json_write_string(w, "name", param->name);
        json_write_string(w, "description", param->help);
        json_write_bool(w, "required", param->required);
        json_write_object(w, "schema");
        rpc_schema_param(w, param);
        json_write_end(w);
        json_write_end(w);
}

/* Writes a parameter of a message that the server sends. */
static void write_field(void *data, const RpcField *field) {
        JsonWriter *w = data;

        json_write_object(w, NULL);
        json_write_string(w, "name", field->name);
        json_write_bool(w, "required", field->presence != RPC_SOMETIMES);
        json_write_object(w, "schema");
        rpc_schema_field(w, field);
        json_write_end(w);
        json_write_end(w);
}

static void write_result(JsonWriter *w, const RpcShape *shape) {
        json_write_object(w, "result");
        json_write_string(w, "name", shape->name);
        json_write_object(w, "schema");
        rpc_schema_reference(w, shape);
        json_write_end(w);
        json_write_end(w);
}

static void write_error_reference(JsonWriter *w, unsigned error) {
        char path[80];

        (void)snprintf(path, sizeof(path), "#/components/errors/%s", rpc_error_row(error)->name);
        json_write_object(w, NULL);
        json_write_string(w, "$ref", path);
        json_write_end(w);
}

static void write_errors(JsonWriter *w, unsigned errors) {
        json_write_array(w, "errors");
        for (unsigned i = 0; i < ERROR_KIND_MAX; i++)
                if (errors & 1U << i)
                        write_error_reference(w, i);
        write_error_reference(w, RPC_BAD_PARAMS);
        json_write_end(w);
}

static int parse_example(const char *name, const char *text, JsonDocument **ret, Error *reterr) {
        return json_parse(text, strlen(text), name, ret, reterr);
}

/* Writes one example object for each parameter. */
static int write_example_params(JsonWriter *w, const char *name, const char *text, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        int r = parse_example(name, text, &document, reterr);

        if (r < 0)
                return r;
        json_write_array(w, "params");
        for (const JsonValue *v = json_first(json_root(document)); v; v = json_next(v)) {
                json_write_object(w, NULL);
                json_write_string(w, "name", json_key(v));
                json_copy(w, "value", v);
                json_write_end(w);
        }
        json_write_end(w);
        return 0;
}

static int write_example_result(JsonWriter *w, const char *name, const char *text, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        int r = parse_example(name, text, &document, reterr);

        if (r < 0)
                return r;
        json_write_object(w, "result");
        json_write_string(w, "name", "result");
        json_copy(w, "value", json_root(document));
        json_write_end(w);
        return 0;
}

static int write_example(JsonWriter *w, const char *name, const RpcExample *example,
                         Error *reterr) {
        int r;

        json_write_array(w, "examples");
        json_write_object(w, NULL);
        json_write_string(w, "name", name);
        r = write_example_params(w, name, example->params, reterr);
        if (r == 0 && example->result)
                r = write_example_result(w, name, example->result, reterr);
        json_write_end(w);
        json_write_end(w);
        return r;
}

/* --- methods --- */

static int openrpc_write_method(JsonWriter *w, const RpcMethod *method, Error *reterr) {
        int r;

        assert(method->result && method->example.params && method->example.result);
        json_write_object(w, NULL);
        json_write_string(w, "name", method->name);
        json_write_string(w, "summary", method->help);
        json_write_string(w, "paramStructure", "by-name");
        json_write_array(w, "params");
        for (size_t i = 0; i < method->params_count; i++)
                write_param(w, &method->params[i]);
        json_write_end(w);
        write_result(w, method->result);
        write_errors(w, method->errors | RPC_ERRORS_ALWAYS);
        json_write_array(w, "x-sends");
        for (size_t i = 0; i < RPC_OUTGOING_MAX && method->sends[i]; i++)
                json_write_string(w, NULL, method->sends[i]->name);
        json_write_end(w);
        json_write_bool(w, "x-at-rest", method->at_rest);
        r = write_example(w, method->name, &method->example, reterr);
        json_write_end(w);
        return r;
}

static int write_outgoing(JsonWriter *w, const RpcOutgoing *outgoing, Error *reterr) {
        int r;

        json_write_object(w, NULL);
        json_write_string(w, "name", outgoing->name);
        json_write_string(w, "summary", outgoing->help);
        json_write_string(w, "paramStructure", "by-name");
        json_write_array(w, "params");
        rpc_each_field(outgoing->params, write_field, w);
        json_write_end(w);
        if (outgoing->result)
                write_result(w, outgoing->result);
        r = write_example(w, outgoing->name, &outgoing->example, reterr);
        json_write_end(w);
        return r;
}

/* Writes the requests of the server, or its notifications. */
static int write_outgoings(JsonWriter *w, const char *key, const RpcFound *outgoings, bool requests,
                           Error *reterr) {
        int r = 0;

        json_write_array(w, key);
        for (size_t i = 0; r == 0 && i < outgoings->count; i++) {
                const RpcOutgoing *outgoing = outgoings->items[i];

                if ((outgoing->result != NULL) == requests)
                        r = write_outgoing(w, outgoing, reterr);
        }
        json_write_end(w);
        return r;
}

/* --- the rest --- */

static void write_info(JsonWriter *w) {
        json_write_object(w, "info");
        json_write_string(w, "title", "holt");
        json_write_string(
                w, "description",
                "Sessions of holt by JSON-RPC 2.0, with one object per line; see holt-serve(1).");
        json_write_string(w, "version", HOLT_VERSION);
        json_write_object(w, "license");
        json_write_string(w, "name", "Apache-2.0");
        json_write_end(w);
        json_write_end(w);
}

static const RpcField error_fields[] = {
        { "name", RPC_STRING, RPC_ALWAYS, "the name of the error: a key of components/errors" },
        { "kind", RPC_STRING, RPC_ALWAYS, "the class of the error, which decides the exit code" },
        { "errno", RPC_STRING, RPC_OR_NULL, "the name of the errno, such as \"ENOENT\"" },
        { "hint", RPC_STRING, RPC_OR_NULL, "what to do about it" },
        { "command_hint", RPC_STRING, RPC_SOMETIMES,
          "the hint for the command line; only on the socket of a session" },
        { "layer", RPC_STRING, RPC_SOMETIMES, "the layer that the host refuses" },
        { "path", RPC_STRING, RPC_SOMETIMES,
          "the JSON path of the wrong parameter, such as \"$.params.id\"" },
};
static const RpcShape error_shape = { .name = "ErrorData",
                                      .help = "the field data of every error",
                                      RPC_FIELDS(error_fields) };

static void write_shape(JsonWriter *w, const RpcShape *shape) {
        json_write_object(w, shape->name);
        rpc_schema_shape(w, shape);
        json_write_end(w);
}

/* Writes the schema of policies once. A whole document must also have some fields. */
static void write_policies(JsonWriter *w) {
        json_write_object(w, RPC_POLICY_PART);
        json_write_string(w, "title", RPC_POLICY_PART);
        json_write_string(w, "description", "fields of a policy document");
        policy_schema_members(w);
        json_write_end(w);
        json_write_object(w, RPC_POLICY);
        json_write_string(w, "title", RPC_POLICY);
        json_write_string(w, "description", "a policy document (holt-policy(5))");
        json_write_array(w, "allOf");
        json_write_object(w, NULL);
        json_write_string(w, "$ref", "#/components/schemas/" RPC_POLICY_PART);
        json_write_end(w);
        json_write_end(w);
        policy_schema_required(w);
        json_write_end(w);
}

static void write_shapes(JsonWriter *w, const RpcMethod *methods, size_t count) {
        _cleanup_(rpc_found_clear) RpcFound shapes;

        rpc_find_shapes(methods, count, &shapes);
        json_write_object(w, "schemas");
        for (size_t i = 0; i < shapes.count; i++)
                write_shape(w, shapes.items[i]);
        write_shape(w, &error_shape);
        write_policies(w);
        json_write_end(w);
}

static void write_components(JsonWriter *w, const RpcMethod *methods, size_t count) {
        json_write_object(w, "components");
        write_shapes(w, methods, count);
        json_write_object(w, "errors");
        for (unsigned i = 0; i < RPC_ERROR_MAX; i++) {
                const RpcErrorRow *row = rpc_error_row(i);

                json_write_object(w, row->name);
                json_write_int(w, "code", row->code);
                json_write_string(w, "message", row->meaning);
                json_write_end(w);
        }
        json_write_end(w);
        json_write_end(w);
}

static int openrpc_write_document(JsonWriter *w, const RpcMethod *methods, size_t count,
                                  Error *reterr) {
        _cleanup_(rpc_found_clear) RpcFound outgoings;
        int r = 0;

        json_write_object(w, NULL);
        json_write_string(w, "openrpc", "1.3.2");
        write_info(w);
        json_write_array(w, "methods");
        for (size_t i = 0; r == 0 && i < count; i++)
                r = openrpc_write_method(w, &methods[i], reterr);
        json_write_end(w);
        rpc_find_outgoings(methods, count, &outgoings);
        if (r == 0)
                r = write_outgoings(w, "x-notifications", &outgoings, false, reterr);
        if (r == 0)
                r = write_outgoings(w, "x-requests", &outgoings, true, reterr);
        write_components(w, methods, count);
        json_write_end(w);
        return r;
}

int rpc_print_openrpc(const RpcMethod *methods, size_t count, FILE *out, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };
        int r = openrpc_write_document(&w, methods, count, reterr);

        if (r < 0)
                return r;
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        (void)fwrite(w.data, 1, w.length, out);
        return 0;
}
