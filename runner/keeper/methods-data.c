/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of the session itself, and of what its database has. */
#include <string.h>

#include "keeper/acts.h"
#include "keeper/methods.h"
#include "sandbox/result.h"
#include "store/rows.h"

int method_session_show(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        JsonWriter *w = rpc_result(call);

        (void)error;
        json_write_string(w, "name", keeper->name);
        json_write_string(w, "state", "live");
        json_write_int(w, "keeper_pid", getpid());
        json_write_uint(w, "started_ms", keeper->started_ms);
        json_write_uint(w, "processes", processes_live(keeper->processes));
        settings_write_facts(&keeper->settings, &keeper->plan, w);
        result_write_layers(w, &keeper->launch.layers, keeper->launch.identity.from_root);
        rpc_reply(call);
        return 0;
}

int method_session_stop(RpcCall *call, void *data, Error *error) {
        int r = keeper_wait_for_rest(data, call, error);

        if (r == 0)
                keeper_stop(data);
        return r;
}

/* --- what goes into the history by itself --- */

static void write_noted(JsonWriter *w, const Error *error) {
        json_write_object(w, NULL);
        json_write_bool(w, "success", !error);
        if (error) {
                json_write_string(w, "kind", error_kind_name(error->kind));
                json_write_string(w, "errno",
                                  error->errnum > 0 ? error_errno_name(error->errnum) : NULL);
                json_write_string(w, "error", error->text);
        }
        json_write_end(w);
}

void method_note(RpcCall *call, const Error *error, void *data) {
        static const char *const areas[] = { "files.", "mount." };
        const char *name = rpc_call_method(call)->name;
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_free_ char *params = NULL;
        Keeper *keeper = data;

        if (!str_starts(name, areas[0]) && !str_starts(name, areas[1]))
                return keeper_touched(keeper, false);
        keeper_touched(keeper, true);
        keeper->used_at = time_now_usec();
        if (act_goes_on(keeper->acts, rpc_call_connection(call)))
                return;
        params = rpc_params_text(call);
        write_noted(&w, error);
        if (!params || json_write_finish(&w) < 0)
                return;
        w.data[w.length - 1] = '\0'; /* the newline */
        (void)keeper_note_call(keeper, name, params, w.data, rpc_call_started_ms(call));
}

/* --- kv, history, audit --- */

static int reply_nothing(RpcCall *call) {
        (void)rpc_result(call);
        rpc_reply(call);
        return 0;
}

/* r is of an answer_...() into the call's result. */
static int reply(RpcCall *call, int r, const Error *error) {
        if (r < 0)
                rpc_fail(call, error);
        else
                rpc_reply(call);
        return 0;
}

int method_kv_get(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        return reply(call,
                     answer_kv_get(keeper->store, rpc_string(call, "key"),
                                   rpc_bool(call, "base64", false), rpc_result(call), error),
                     error);
}

int method_kv_set(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        _cleanup_free_ char *value = NULL;
        size_t length = 0;
        int r = method_take_content(call, "value", &value, &length, error);

        if (r == 0)
                r = store_kv_set(keeper->store, rpc_string(call, "key"), value, length, error);

        return r < 0 ? r : reply_nothing(call);
}

int method_kv_delete(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        bool deleted = false;
        int r = store_kv_delete(keeper->store, rpc_string(call, "key"), &deleted, error);

        if (r < 0)
                return r;
        json_write_bool(rpc_result(call), "deleted", deleted);
        rpc_reply(call);
        return 0;
}

int method_kv_keys(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        const char *prefix = rpc_string(call, "prefix"), *after = rpc_string(call, "after");
        int r = answer_kv_keys(keeper->store, prefix ? prefix : "", after ? after : "",
                               rpc_uint(call, "limit", ANSWER_LIMIT_DEFAULT), rpc_result(call),
                               error);

        return reply(call, r, error);
}

int method_history_list(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        int r = answer_history(keeper->store, rpc_uint(call, "before", 0), rpc_string(call, "name"),
                               rpc_uint(call, "limit", ANSWER_LIMIT_DEFAULT), rpc_result(call),
                               error);

        return reply(call, r, error);
}

int method_history_begin(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *params = rpc_params_text(call);
        const Keeper *keeper = data;
        int r = params ? act_begin(keeper->acts, rpc_call_connection(call),
                                   rpc_string(call, "name"), params, error)
                       : error_oom(error);

        return r < 0 ? r : reply_nothing(call);
}

int method_history_end(RpcCall *call, void *data, Error *error) {
        static const char *const texts[] = { "kind", "errno", "error" };
        const Keeper *keeper = data;
        const bool success = rpc_bool(call, "success", false);
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const char *unrecorded = NULL;
        int r;

        json_write_object(&w, NULL);
        json_write_bool(&w, "success", success);
        for (size_t i = 0; !success && i < ELEMENTSOF(texts); i++)
                json_write_string(&w, texts[i], rpc_string(call, texts[i]));
        json_write_end(&w);
        r = json_write_finish(&w) < 0
                    ? error_oom(error)
                    : act_end(keeper->acts, rpc_call_connection(call), w.data, &unrecorded, error);
        if (r < 0)
                return r;
        if (unrecorded)
                json_write_string(rpc_result(call), "unrecorded", unrecorded);
        return reply_nothing(call);
}

int method_audit_list(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        int r = answer_audit(keeper->store, rpc_uint(call, "before", 0), rpc_string(call, "kind"),
                             rpc_uint(call, "limit", ANSWER_LIMIT_DEFAULT), rpc_result(call),
                             error);

        return reply(call, r, error);
}
