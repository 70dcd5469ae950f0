/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/methods.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-write.h"
#include "rpc/schema.h"

const RpcShape rpc_nothing = { .name = "Nothing", .help = "an empty object" };

/* --- types --- */

static const struct {
        const char *name;
        const char *before, *after; /* the words around a limit */
} types[] = {
        [RPC_STRING] = { "a string", " of at most ", " bytes" },
        [RPC_PATH] = { "a string", " of at most ", " bytes" },
        [RPC_BOOL] = { "true or false", "", "" },
        [RPC_UINT] = { "an integer", " from ", "" },
        [RPC_STRINGS] = { "an array of strings", ", at most ", "" },
        [RPC_MAP] = { "an object of strings", ", at most ", "" },
        [RPC_OBJECT] = { "an object", "", "" },
        [RPC_MAPS] = { "an array of objects of strings", "", "" },
        [RPC_ANY] = { "any value", "", "" },
        [RPC_SHAPE] = { "an object", "", "" },
        [RPC_SHAPES] = { "an array of objects", "", "" },
};
static_assert(ELEMENTSOF(types) == RPC_TYPE_MAX, "every type has a name");

const char *rpc_type_name(RpcType type) {
        return types[type].name;
}

/* "one of "head", "tail"" */
static void values_text(const char *const *values, char *buf, size_t size) {
        size_t used = strlen(buf);

        for (const char *const *value = values; *value && used < size; value++)
                used += (size_t)snprintf(buf + used, size - used, "%s\"%s\"",
                                         value == values ? "one of " : ", ", *value);
}

const char *rpc_param_text(const RpcParam *param, char buf[RPC_PARAM_TEXT_MAX]) {
        const char *name = types[param->type].name;
        const char *required = param->required ? ", required" : "";
        char least[32] = "", values[100] = "";

        if (param->type == RPC_UINT)
                (void)snprintf(least, sizeof(least), "%" PRIu64 " to ", param->min);
        if (param->values) {
                values_text(param->values, values, sizeof(values));
                (void)snprintf(buf, RPC_PARAM_TEXT_MAX, "%s%s", values, required);
        } else if (param->max) {
                (void)snprintf(buf, RPC_PARAM_TEXT_MAX, "%s%s%s%" PRIu64 "%s%s", name,
                               types[param->type].before, least, param->max,
                               types[param->type].after, required);
        } else {
                (void)snprintf(buf, RPC_PARAM_TEXT_MAX, "%s%s", name, required);
        }
        return buf;
}

/* --- shapes and messages of the table --- */

void rpc_each_field(const RpcShape *shape, void (*fn)(void *data, const RpcField *field),
                    void *data) {
        if (shape->base)
                rpc_each_field(shape->base, fn, data);
        for (size_t i = 0; i < shape->fields_count; i++)
                fn(data, &shape->fields[i]);
}

void rpc_found_clear(RpcFound *found) {
        free(found->items);
        *found = (RpcFound){ 0 };
}

/* Adds an item. False if the set had it already. */
static bool found_add(RpcFound *found, const void *item) {
        const void **longer;

        for (size_t i = 0; i < found->count; i++)
                if (found->items[i] == item)
                        return false;
        longer = reallocarray(found->items, found->count + 1, sizeof(*longer));
        if (!longer)
                abort();
        longer[found->count++] = item;
        found->items = longer;
        return true;
}

static void found_add_shape(RpcFound *found, const RpcShape *shape);

static void found_add_field(void *data, const RpcField *field) {
        if (field->shape)
                found_add_shape(data, field->shape);
}

static void found_add_shape(RpcFound *found, const RpcShape *shape) {
        if (shape && found_add(found, shape))
                rpc_each_field(shape, found_add_field, found);
}

/* Adds only the shapes of its params' fields, because params are written field by field. */
static void found_add_outgoing(RpcFound *found, const RpcOutgoing *outgoing) {
        rpc_each_field(outgoing->params, found_add_field, found);
        found_add_shape(found, outgoing->result);
}

void rpc_find_shapes(const RpcMethod *methods, size_t count, RpcFound *ret) {
        *ret = (RpcFound){ 0 };
        for (size_t i = 0; i < count; i++) {
                found_add_shape(ret, methods[i].result);
                for (size_t s = 0; s < RPC_OUTGOING_MAX && methods[i].sends[s]; s++)
                        found_add_outgoing(ret, methods[i].sends[s]);
        }
}

void rpc_find_outgoings(const RpcMethod *methods, size_t count, RpcFound *ret) {
        *ret = (RpcFound){ 0 };
        for (size_t i = 0; i < count; i++)
                for (size_t s = 0; s < RPC_OUTGOING_MAX && methods[i].sends[s]; s++)
                        (void)found_add(ret, methods[i].sends[s]);
}

/* --- text --- */

static void reference_widen(void *data, const RpcField *field) {
        int *width = data;

        if ((int)strlen(field->name) > *width)
                *width = (int)strlen(field->name);
}

static int widest_param(const RpcMethod *method) {
        int widest = 0;

        for (size_t i = 0; i < method->params_count; i++)
                reference_widen(&widest, &(RpcField){ .name = method->params[i].name });
        return widest;
}

static void print_params(const RpcMethod *method, FILE *out) {
        const int width = widest_param(method);

        for (size_t i = 0; i < method->params_count; i++) {
                const RpcParam *param = &method->params[i];
                char text[RPC_PARAM_TEXT_MAX];

                (void)fprintf(out, "    %-*s  %s: %s\n", width, param->name,
                              rpc_param_text(param, text), param->help);
        }
}

typedef struct Printing {
        FILE *out;
        int width;
} Printing;

static void print_field(void *data, const RpcField *field) {
        static const char *const presences[] = {
                [RPC_ALWAYS] = "", [RPC_OR_NULL] = ", or null", [RPC_SOMETIMES] = ", may be missing"
        };
        const Printing *printing = data;
        char values[160] = "";

        if (field->values)
                values_text(field->values, values, sizeof(values));
        (void)fprintf(printing->out, "    %-*s  %s", printing->width, field->name,
                      field->values ? values : types[field->type].name);
        if (field->shape)
                (void)fprintf(printing->out, " (%s)", field->shape->name);
        (void)fprintf(printing->out, "%s%s%s\n", presences[field->presence],
                      field->help ? ": " : "", field->help ? field->help : "");
}

static void print_shape(const RpcShape *shape, FILE *out) {
        Printing printing = { .out = out };

        rpc_each_field(shape, reference_widen, &printing.width);
        rpc_each_field(shape, print_field, &printing);
}

static void print_errors(const RpcMethod *method, FILE *out) {
        const char *before = "  Errors: ";

        for (unsigned i = 0; i < ERROR_KIND_MAX; i++)
                if ((method->errors | RPC_ERRORS_ALWAYS) & 1U << i) {
                        (void)fprintf(out, "%s%s", before, rpc_error_row(i)->name);
                        before = ", ";
                }
        (void)fputc('\n', out);
}

static void print_sends(const RpcMethod *method, FILE *out) {
        for (size_t i = 0; i < RPC_OUTGOING_MAX && method->sends[i]; i++)
                (void)fprintf(out, "%s%s", i == 0 ? "  May send " : ", ", method->sends[i]->name);
        if (method->sends[0])
                (void)fputc('\n', out);
}

static void print_method(const RpcMethod *method, FILE *out) {
        (void)fprintf(out, "%s\n  %s\n", method->name, method->help);
        if (method->at_rest)
                (void)fputs("  Does not start a session at rest\n", out);
        print_params(method, out);
        if (method->result->fields_count == 0 && !method->result->base)
                (void)fputs("  Returns nothing\n", out);
        else
                (void)fputs("  Returns\n", out);
        print_shape(method->result, out);
        print_errors(method, out);
        print_sends(method, out);
}

static void print_outgoing(const RpcOutgoing *outgoing, FILE *out) {
        (void)fprintf(out, "\n%s (%s the server)\n  %s\n", outgoing->name,
                      outgoing->result ? "a request of" : "a notification of", outgoing->help);
        print_shape(outgoing->params, out);
        if (outgoing->result) {
                (void)fputs("  The client replies with\n", out);
                print_shape(outgoing->result, out);
        }
}

static bool is_whole_message(const RpcShape *shape, const RpcMethod *methods, size_t count) {
        for (size_t i = 0; i < count; i++) {
                if (methods[i].result == shape)
                        return true;
                for (size_t s = 0; s < RPC_OUTGOING_MAX && methods[i].sends[s]; s++)
                        if (methods[i].sends[s]->result == shape)
                                return true;
        }
        return false;
}

static void print_rest(const RpcMethod *methods, size_t count, FILE *out) {
        _cleanup_(rpc_found_clear) RpcFound outgoings, shapes;

        rpc_find_outgoings(methods, count, &outgoings);
        for (size_t i = 0; i < outgoings.count; i++)
                print_outgoing(outgoings.items[i], out);
        rpc_find_shapes(methods, count, &shapes);
        for (size_t i = 0; i < shapes.count; i++) {
                const RpcShape *shape = shapes.items[i];

                if (is_whole_message(shape, methods, count))
                        continue;
                (void)fprintf(out, "\n%s\n  %s\n", shape->name, shape->help);
                print_shape(shape, out);
        }
}

/* --- JSON --- */

static void reference_write_method(JsonWriter *w, const RpcMethod *method) {
        json_write_object(w, method->name);
        json_write_string(w, "help", method->help);
        json_write_bool(w, "at_rest", method->at_rest);
        json_write_object(w, "params");
        rpc_schema_params(w, method);
        json_write_end(w);
        json_write_string(w, "result", method->result->name);
        json_write_array(w, "errors");
        for (unsigned i = 0; i < ERROR_KIND_MAX; i++)
                if ((method->errors | RPC_ERRORS_ALWAYS) & 1U << i)
                        json_write_string(w, NULL, rpc_error_row(i)->name);
        json_write_end(w);
        json_write_end(w);
}

static void print_json(const RpcMethod *methods, size_t count, FILE *out) {
        JsonWriter w = { .pretty = true };

        json_write_object(&w, NULL);
        for (size_t i = 0; i < count; i++)
                reference_write_method(&w, &methods[i]);
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
                print_method(&methods[i], out);
        }
        print_rest(methods, count, out);
}
