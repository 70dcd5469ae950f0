/* SPDX-License-Identifier: Apache-2.0 */
/* Checks parameters by the method's table, before its function reads them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/path-text.h"
#include "base/utf8.h"
#include "rpc/connection.h"
#include "rpc/methods.h"

/* Limits of rpc_params_text(), in bytes. */
enum {
        TEXT_STRING_MAX = 1024, /* one string, before it is written as JSON */
        TEXT_MAX = 32 << 10,    /* the whole text; later values become "..." */
};

/* --- checks --- */

/* A value that is being checked. */
typedef struct Check {
        const RpcMethod *method;
        const RpcParam *param;
        char **ret_path;
        Error *reterr;
} Check;

/* Completes the error that is set: adds the allowed values as the cure, and the path. */
static int params_refuse(const Check *check, char *path) {
        char text[RPC_PARAM_TEXT_MAX];

        free(*check->ret_path);
        *check->ret_path = path;
        return error_cure(check->reterr, -EINVAL, "%s is %s: %s", check->param->name,
                          rpc_param_text(check->param, text), check->param->help);
}

static char *params_path(const RpcParam *param) {
        return json_path_key("$.params", param->name);
}

static int refuse_type(const Check *check, const JsonValue *value) {
        (void)error_set(check->reterr, ERROR_USAGE, 0, "%s: %s must be %s, not %s",
                        check->method->name, check->param->name, rpc_type_name(check->param->type),
                        json_type_name(json_type(value)));
        return params_refuse(check, params_path(check->param));
}

static int refuse_size(const Check *check) {
        (void)error_set(check->reterr, ERROR_USAGE, 0, "%s: %s is too large", check->method->name,
                        check->param->name);
        return params_refuse(check, params_path(check->param));
}

static int check_value(const Check *check, const char *text) {
        char quoted[80];

        for (const char *const *value = check->param->values; *value; value++)
                if (streq(*value, text))
                        return 0;
        (void)error_set(check->reterr, ERROR_USAGE, 0, "%s: %s cannot be \"%s\"",
                        check->method->name, check->param->name,
                        str_quote(text, quoted, sizeof(quoted)));
        return params_refuse(check, params_path(check->param));
}

static int refuse_form(const Check *check, const char *text) {
        char quoted[160];
        int r;

        free(*check->ret_path);
        *check->ret_path = params_path(check->param);
        r = error_set(check->reterr, ERROR_USAGE, 0, "%s: \"%s\" is not a valid %s",
                      check->method->name, str_quote(text, quoted, sizeof(quoted)),
                      check->param->form->noun);
        return error_cure(check->reterr, r, "%s", check->param->form->cure);
}

static int check_string(const Check *check, const JsonValue *value) {
        const char *text = json_string(value);

        if (!text)
                return refuse_type(check, value);
        if (check->param->max && strlen(text) > check->param->max)
                return refuse_size(check);
        if (check->param->form && !check->param->form->fits(text))
                return refuse_form(check, text);
        return check->param->values ? check_value(check, text) : 0;
}

static int refuse_path(const Check *check) {
        int r;

        free(*check->ret_path);
        *check->ret_path = params_path(check->param);
        r = error_set(check->reterr, ERROR_USAGE, 0, "%s: %s is not the base64 of a path",
                      check->method->name, check->param->name);
        return error_cure(check->reterr, r,
                          "Write a path that is not UTF-8 as U+0001 and the base64 of its bytes "
                          "(RFC 4648), padded and on one line. It must not contain a NUL.");
}

static int check_path(const Check *check, const JsonValue *value) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (!json_string(value))
                return refuse_type(check, value);
        r = path_from_text(json_string(value), &path);
        if (r < 0)
                return r == -ENOMEM ? error_oom(check->reterr) : refuse_path(check);
        return check->param->max && strlen(path) > check->param->max ? refuse_size(check) : 0;
}

static int check_bool(const Check *check, const JsonValue *value) {
        bool unused;

        return json_bool(value, &unused) < 0 ? refuse_type(check, value) : 0;
}

static int check_uint(const Check *check, const JsonValue *value) {
        const uint64_t min = check->param->min;
        uint64_t max = check->param->max ? check->param->max : JSON_INTEGER_MAX, number = 0;

        if (json_uint(value, max, &number) == 0 && number >= min)
                return 0;
        if (json_type(value) != JSON_NUMBER)
                return refuse_type(check, value);
        (void)error_set(check->reterr, ERROR_USAGE, 0,
                        "%s: %s must be an integer from %" PRIu64 " to %" PRIu64,
                        check->method->name, check->param->name, min, max);
        return params_refuse(check, params_path(check->param));
}

/* Refuses an item or a member that is not a string. */
static int refuse_item(const Check *check, const JsonValue *item, size_t index) {
        _cleanup_free_ char *above = params_path(check->param);
        char *path = NULL;

        if (above && json_key(item))
                path = json_path_key(above, json_key(item));
        else if (above)
                path = json_path_index(above, index);
        (void)error_set(check->reterr, ERROR_USAGE, 0,
                        "%s: %s must have only strings in it, not %s", check->method->name,
                        check->param->name, json_type_name(json_type(item)));
        return params_refuse(check, path);
}

static int check_items(const Check *check, const JsonValue *value) {
        size_t count = 0;

        for (const JsonValue *item = json_first(value); item; item = json_next(item)) {
                if (check->param->max && count == check->param->max)
                        return refuse_size(check);
                if (!json_string(item))
                        return refuse_item(check, item, count);
                count++;
        }
        return 0;
}

static int check_strings(const Check *check, const JsonValue *value) {
        if (json_type(value) != JSON_ARRAY)
                return refuse_type(check, value);
        return check_items(check, value);
}

/* rpc_strings() returns members as NAME=VALUE. */
static int check_name(const Check *check, const char *name) {
        if (name[0] && !strchr(name, '=') && strlen(name) <= RPC_NAME_MAX)
                return 0;
        (void)error_set(check->reterr, ERROR_USAGE, 0,
                        "%s: each name in %s must have 1 to %d bytes and no \"=\"",
                        check->method->name, check->param->name, RPC_NAME_MAX);
        return params_refuse(check, params_path(check->param));
}

static int check_map(const Check *check, const JsonValue *value) {
        if (json_type(value) != JSON_OBJECT)
                return refuse_type(check, value);
        for (const JsonValue *item = json_first(value); item; item = json_next(item)) {
                int r = check_name(check, json_key(item));

                if (r < 0)
                        return r;
        }
        return check_items(check, value);
}

static int check_object(const Check *check, const JsonValue *value) {
        return json_type(value) == JSON_OBJECT ? 0 : refuse_type(check, value);
}

static int (*const checks[])(const Check *check, const JsonValue *value) = {
        [RPC_STRING] = check_string, [RPC_PATH] = check_path,       [RPC_BOOL] = check_bool,
        [RPC_UINT] = check_uint,     [RPC_STRINGS] = check_strings, [RPC_MAP] = check_map,
        [RPC_OBJECT] = check_object,
};
static_assert(ELEMENTSOF(checks) == RPC_PARAM_TYPE_MAX, "every type is checked");

static const RpcParam *find_param(const RpcMethod *method, const char *name) {
        for (size_t i = 0; i < method->params_count; i++)
                if (streq(method->params[i].name, name))
                        return &method->params[i];
        return NULL;
}

static int refuse_unknown(const RpcMethod *method, const char *name, char **ret_path,
                          Error *reterr) {
        Nearest nearest = { .word = name };
        size_t used = 0;
        char quoted[80];

        *ret_path = json_path_key("$.params", name);
        (void)error_set(reterr, ERROR_USAGE, 0, "%s: no parameter is called \"%s\"", method->name,
                        str_quote(name, quoted, sizeof(quoted)));
        for (size_t i = 0; i < method->params_count; i++)
                nearest_try(&nearest, method->params[i].name);
        if (nearest.best)
                return error_cure(reterr, -EINVAL, "Did you mean \"%s\"?", nearest.best);
        if (method->params_count == 0)
                return error_cure(reterr, -EINVAL, "The method has no parameters.");
        for (size_t i = 0; i < method->params_count && used < sizeof(reterr->cure); i++)
                used += (size_t)snprintf(reterr->cure + used, sizeof(reterr->cure) - used, "%s%s",
                                         i == 0 ? "The parameters are " : ", ",
                                         method->params[i].name);
        return -EINVAL;
}

static int check_given(const RpcMethod *method, const JsonValue *params, char **ret_path,
                       Error *reterr) {
        for (const JsonValue *value = json_first(params); value; value = json_next(value)) {
                const RpcParam *param = find_param(method, json_key(value));
                const Check check = { method, param, ret_path, reterr };
                int r;

                if (!param)
                        return refuse_unknown(method, json_key(value), ret_path, reterr);
                r = checks[param->type](&check, value);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_required(const RpcMethod *method, const JsonValue *params, char **ret_path,
                          Error *reterr) {
        for (size_t i = 0; i < method->params_count; i++) {
                const RpcParam *param = &method->params[i];
                const Check check = { method, param, ret_path, reterr };

                if (!param->required || (params && json_member(params, param->name)))
                        continue;
                (void)error_set(reterr, ERROR_USAGE, 0, "%s: %s is missing", method->name,
                                param->name);
                return params_refuse(&check, params_path(param));
        }
        return 0;
}

int rpc_check_params(const RpcMethod *method, const JsonValue *params, char **ret_path,
                     Error *reterr) {
        int r;

        if (params && json_type(params) != JSON_OBJECT) {
                *ret_path = strdup("$.params");
                return error_set(reterr, ERROR_USAGE, 0,
                                 "%s: params must be an object with named parameters, not %s",
                                 method->name, json_type_name(json_type(params)));
        }
        r = params ? check_given(method, params, ret_path, reterr) : 0;
        return r < 0 ? r : check_required(method, params, ret_path, reterr);
}

/* --- values --- */

static bool param_is_path(const RpcCall *call, const char *name) {
        const RpcParam *param = find_param(call->method, name);

        return param && param->type == RPC_PATH;
}

static const JsonValue *find_value(const RpcCall *call, const char *name, unsigned types) {
        const RpcParam *param = find_param(call->method, name);

        assert(param && (types >> param->type & 1));
        (void)param;
        (void)types;
        return call->params ? json_member(call->params, name) : NULL;
}

/* Returns the bytes of a path, which the call owns. */
static const char *params_decode(const RpcCall *call, const char *text) {
        char *path = NULL;

        if (path_text_is_plain(text))
                return text;
        if (path_from_text(text, &path) < 0 || strlist_take(call->paths, path) < 0)
                return "";
        return call->paths->items[call->paths->count - 1];
}

const char *rpc_string(const RpcCall *call, const char *name) {
        const JsonValue *value = find_value(call, name, 1U << RPC_STRING | 1U << RPC_PATH);

        if (!value)
                return NULL;
        return param_is_path(call, name) ? params_decode(call, json_string(value))
                                         : json_string(value);
}

bool rpc_bool(const RpcCall *call, const char *name, bool otherwise) {
        const JsonValue *value = find_value(call, name, 1U << RPC_BOOL);

        if (value)
                (void)json_bool(value, &otherwise);
        return otherwise;
}

uint64_t rpc_uint(const RpcCall *call, const char *name, uint64_t otherwise) {
        const JsonValue *value = find_value(call, name, 1U << RPC_UINT);

        if (value)
                (void)json_uint(value, JSON_INTEGER_MAX, &otherwise);
        return otherwise;
}

bool rpc_has(const RpcCall *call, const char *name) {
        return find_value(call, name, ~0U) != NULL;
}

int rpc_strings(const RpcCall *call, const char *name, StrList *ret, Error *reterr) {
        const JsonValue *value = find_value(call, name, 1U << RPC_STRINGS | 1U << RPC_MAP);
        StrList list = { 0 };

        for (const JsonValue *i = value ? json_first(value) : NULL; i; i = json_next(i)) {
                char *item = json_key(i) ? str_format("%s=%s", json_key(i), json_string(i))
                                         : strdup(json_string(i));

                if (strlist_take(&list, item) < 0) {
                        strlist_clear(&list);
                        return error_oom(reterr);
                }
        }
        *ret = list;
        return 0;
}

const JsonValue *rpc_object(const RpcCall *call, const char *name) {
        return find_value(call, name, 1U << RPC_OBJECT);
}

/* --- the history's text --- */

/* Writes a string, cut behind a whole character. */
static void write_cut(JsonWriter *w, const char *key, const char *text) {
        size_t length = strnlen(text, TEXT_STRING_MAX + 1), cut = 0;

        while (length > TEXT_STRING_MAX) {
                size_t sequence = utf8_sequence(text + cut, length - cut);

                if (sequence == 0 || cut + sequence > TEXT_STRING_MAX)
                        break;
                cut += sequence;
        }
        json_write_bytes(w, key, text, length > TEXT_STRING_MAX ? cut : length);
}

/* Writes a path in readable form, with its bytes decoded. */
static void write_cut_path(JsonWriter *w, const char *key, const char *text) {
        _cleanup_free_ char *path = NULL;

        write_cut(w, key, path_from_text(text, &path) == 0 ? path : text);
}

/* Writes at most half of the remaining bytes, and leaves the rest to later values. "..." stands for
 * the items that were left out. In a map, its key is "", which no member can have. */
static void write_items(JsonWriter *w, const JsonValue *value) {
        const size_t end = w->length + (TEXT_MAX - w->length) / 2;
        const bool named = json_type(value) == JSON_OBJECT;
        const JsonValue *i = json_first(value);

        if (named)
                json_write_object(w, json_key(value));
        else
                json_write_array(w, json_key(value));
        for (; i && w->length < end; i = json_next(i))
                write_cut(w, json_key(i), json_string(i));
        if (i)
                json_write_string(w, named ? "" : NULL, "...");
        json_write_end(w);
}

static void write_object(JsonWriter *w, const JsonValue *value) {
        _cleanup_(json_write_clear) JsonWriter copy = { 0 };

        json_copy(&copy, NULL, value);
        if (copy.length < TEXT_MAX - w->length)
                json_write_value(w, json_key(value), &copy);
        else
                json_write_string(w, json_key(value), "...");
}

static void write_text(JsonWriter *w, const JsonValue *value, RpcType type) {
        const char *key = json_key(value);
        uint64_t number = 0;
        bool on = false;

        if (w->length >= TEXT_MAX)
                json_write_string(w, key, "...");
        else if (type == RPC_OBJECT)
                write_object(w, value);
        else if (type == RPC_PATH)
                write_cut_path(w, key, json_string(value));
        else if (json_string(value))
                write_cut(w, key, json_string(value));
        else if (json_bool(value, &on) == 0)
                json_write_bool(w, key, on);
        else if (json_uint(value, JSON_INTEGER_MAX, &number) == 0)
                json_write_uint(w, key, number);
        else
                write_items(w, value);
}

char *rpc_params_text(const RpcCall *call) {
        JsonWriter w = { 0 };
        const JsonValue *value = call->params ? json_first(call->params) : NULL;

        json_write_object(&w, NULL);
        for (; value; value = json_next(value)) {
                const RpcParam *param = find_param(call->method, json_key(value));

                assert(param); /* a call with an unknown parameter was refused earlier */
                write_text(&w, value, param->type);
        }
        json_write_end(&w);
        if (json_write_finish(&w) < 0) {
                json_write_clear(&w);
                return NULL;
        }
        w.data[w.length - 1] = '\0'; /* the newline */
        return w.data;
}

void rpc_write_params(const RpcCall *call, const char *except, JsonWriter *w) {
        const JsonValue *value = call->params ? json_first(call->params) : NULL;

        for (; value; value = json_next(value))
                if (!streq(json_key(value), except))
                        json_copy(w, json_key(value), value);
}
