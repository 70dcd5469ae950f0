/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/methods.h"

#include <inttypes.h>
#include <string.h>

/* --- types --- */

static void schema_string(JsonWriter *w, const RpcParam *param) {
        json_write_string(w, "type", "string");
        if (param->max)
                /* Characters; a string of more of them has more bytes than max too. */
                json_write_uint(w, "maxLength", param->max);
}

/* The text of a path that is not UTF-8 is longer than the path. */
static void schema_path(JsonWriter *w, const RpcParam *param) {
        (void)param;
        json_write_string(w, "type", "string");
}

static void schema_bool(JsonWriter *w, const RpcParam *param) {
        (void)param;
        json_write_string(w, "type", "boolean");
}

static void schema_uint(JsonWriter *w, const RpcParam *param) {
        json_write_string(w, "type", "integer");
        json_write_uint(w, "minimum", param->min);
        if (param->max)
                json_write_uint(w, "maximum", param->max);
}

static void schema_items(JsonWriter *w, const char *key) {
        json_write_object(w, key);
        json_write_string(w, "type", "string");
        json_write_end(w);
}

static void schema_strings(JsonWriter *w, const RpcParam *param) {
        json_write_string(w, "type", "array");
        schema_items(w, "items");
        if (param->max)
                json_write_uint(w, "maxItems", param->max);
}

static void schema_map(JsonWriter *w, const RpcParam *param) {
        json_write_string(w, "type", "object");
        schema_items(w, "additionalProperties");
        if (param->max)
                json_write_uint(w, "maxProperties", param->max);
}

static void schema_object(JsonWriter *w, const RpcParam *param) {
        (void)param;
        json_write_string(w, "type", "object");
}

static const struct {
        const char *name;
        const char *before, *after; /* what a limit stands between */
        void (*schema)(JsonWriter *w, const RpcParam *param);
} types[] = {
        [RPC_STRING] = { "a string", " of at most ", " bytes", schema_string },
        [RPC_PATH] = { "a string", " of at most ", " bytes", schema_path },
        [RPC_BOOL] = { "true or false", "", "", schema_bool },
        [RPC_UINT] = { "an integer", " from ", "", schema_uint },
        [RPC_STRINGS] = { "an array of strings", ", at most ", "", schema_strings },
        [RPC_MAP] = { "an object of strings", ", at most ", "", schema_map },
        [RPC_OBJECT] = { "an object", "", "", schema_object },
};
static_assert(ELEMENTSOF(types) == RPC_TYPE_MAX, "every type has a name");

const char *rpc_type_name(RpcType type) {
        return types[type].name;
}

const char *rpc_param_text(const RpcParam *param, char buf[RPC_PARAM_TEXT_MAX]) {
        const char *name = types[param->type].name;
        const char *required = param->required ? ", required" : "";
        char least[32] = "";

        if (param->type == RPC_UINT)
                (void)snprintf(least, sizeof(least), "%" PRIu64 " to ", param->min);
        if (param->max)
                (void)snprintf(buf, RPC_PARAM_TEXT_MAX, "%s%s%s%" PRIu64 "%s%s", name,
                               types[param->type].before, least, param->max,
                               types[param->type].after, required);
        else
                (void)snprintf(buf, RPC_PARAM_TEXT_MAX, "%s%s", name, required);
        return buf;
}

/* --- text --- */

static int widest_name(const RpcMethod *method) {
        size_t widest = 0;

        for (size_t i = 0; i < method->params_count; i++)
                if (strlen(method->params[i].name) > widest)
                        widest = strlen(method->params[i].name);
        return (int)widest;
}

static void print_text(const RpcMethod *method, FILE *out) {
        int width = widest_name(method);

        (void)fprintf(out, "%s\n  %s\n", method->name, method->help);
        for (size_t i = 0; i < method->params_count; i++) {
                const RpcParam *param = &method->params[i];
                char text[RPC_PARAM_TEXT_MAX];

                (void)fprintf(out, "    %-*s  %s: %s\n", width, param->name,
                              rpc_param_text(param, text), param->help);
        }
        (void)fprintf(out, "  Returns %s\n", method->result);
}

/* --- JSON --- */

static void write_properties(JsonWriter *w, const RpcMethod *method) {
        json_write_object(w, "properties");
        for (size_t i = 0; i < method->params_count; i++) {
                const RpcParam *param = &method->params[i];

                json_write_object(w, param->name);
                json_write_string(w, "description", param->help);
                types[param->type].schema(w, param);
                json_write_end(w);
        }
        json_write_end(w);
}

static void write_required(JsonWriter *w, const RpcMethod *method) {
        json_write_array(w, "required");
        for (size_t i = 0; i < method->params_count; i++)
                if (method->params[i].required)
                        json_write_string(w, NULL, method->params[i].name);
        json_write_end(w);
}

static void write_method(JsonWriter *w, const RpcMethod *method) {
        json_write_object(w, method->name);
        json_write_string(w, "help", method->help);
        json_write_string(w, "result", method->result);
        json_write_object(w, "params");
        json_write_string(w, "type", "object");
        write_properties(w, method);
        write_required(w, method);
        json_write_bool(w, "additionalProperties", false);
        json_write_end(w);
        json_write_end(w);
}

static void print_json(const RpcMethod *methods, size_t count, FILE *out) {
        JsonWriter w = { .pretty = true };

        json_write_object(&w, NULL);
        for (size_t i = 0; i < count; i++)
                write_method(&w, &methods[i]);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                (void)fwrite(w.data, 1, w.length, out);
        json_write_clear(&w);
}

void rpc_print_methods(const RpcMethod *methods, size_t count, bool json, FILE *out) {
        if (json)
                return print_json(methods, count, out);
        for (size_t i = 0; i < count; i++) {
                if (i > 0)
                        (void)fputc('\n', out);
                print_text(&methods[i], out);
        }
}
