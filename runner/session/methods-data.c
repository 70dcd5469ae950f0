/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of the session itself, and of what its database has. */
#include <string.h>

#include "session/methods.h"

enum { LIMIT_DEFAULT = 100 };

static void write_mount(const PlanMount *mount, JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "target", mount->target);
        json_write_string(w, "source", mount->source);
        json_write_bool(w, "read_only", mount->flags & PLAN_READ_ONLY);
        json_write_end(w);
}

int method_session_show(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        JsonWriter *w = rpc_result(call);

        (void)error;
        json_write_string(w, "name", keeper->name);
        json_write_string(w, "state", "live");
        json_write_int(w, "keeper_pid", getpid());
        json_write_uint(w, "started_ms", keeper->started_ms);
        json_write_uint(w, "idle_us", keeper->idle);
        json_write_uint(w, "processes", processes_live(keeper->processes));
        json_write_string(w, "cwd", keeper->plan.cwd);
        json_write_array(w, "mounts");
        for (size_t i = 0; i < keeper->plan.mounts_count; i++)
                if (keeper->plan.mounts[i].kind == PLAN_BIND)
                        write_mount(&keeper->plan.mounts[i], w);
        json_write_end(w);
        rpc_reply(call);
        return 0;
}

int method_session_stop(RpcCall *call, void *data, Error *error) {
        (void)error;
        (void)rpc_result(call);
        rpc_reply(call);
        keeper_stop(data);
        return 0;
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
        Error ignored;

        if (!str_starts(name, areas[0]) && !str_starts(name, areas[1]))
                return;
        keeper->used_at = loop_now();
        params = rpc_params_text(call);
        write_noted(&w, error);
        if (!params || json_write_finish(&w) < 0)
                return;
        w.data[w.length - 1] = '\0'; /* the newline */
        (void)store_history_add(keeper->store, name, params, w.data, rpc_call_started_ms(call),
                                &ignored);
}

/* --- kv --- */

int method_kv_get(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        _cleanup_free_ char *value = NULL;
        size_t length = 0;
        int r = store_kv_get(keeper->store, rpc_string(call, "key"), &value, &length, error);

        if (r < 0)
                return r;
        json_write_bytes(rpc_result(call), "value", value, length);
        rpc_reply(call);
        return 0;
}

int method_kv_set(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        const char *value = rpc_string(call, "value");
        int r = store_kv_set(keeper->store, rpc_string(call, "key"), value, strlen(value), error);

        if (r < 0)
                return r;
        (void)rpc_result(call);
        rpc_reply(call);
        return 0;
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

/* Rows go into a writer of their own first: an error in the middle is an error, not half an answer.
 */
typedef struct Listing {
        StrList keys;
        JsonWriter *writer;
        uint64_t count, last;
} Listing;

static int add_key(void *data, const char *key, size_t value_length) {
        Listing *listing = data;

        (void)value_length;
        return strlist_add(&listing->keys, key);
}

static void write_next_key(JsonWriter *w, const StrList *keys, uint64_t limit) {
        json_write_string(w, "next",
                          keys->count == limit && limit > 0 ? keys->items[limit - 1] : NULL);
}

int method_kv_keys(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        const char *prefix = rpc_string(call, "prefix"), *after = rpc_string(call, "after");
        const uint64_t limit = rpc_uint(call, "limit", LIMIT_DEFAULT);
        Listing listing = { 0 };
        int r = store_kv_keys(keeper->store, prefix ? prefix : "", after ? after : "", limit,
                              add_key, &listing, error);
        JsonWriter *w;

        if (r == 0) {
                w = rpc_result(call);
                json_write_array(w, "keys");
                for (size_t i = 0; i < listing.keys.count; i++)
                        json_write_string(w, NULL, listing.keys.items[i]);
                json_write_end(w);
                write_next_key(w, &listing.keys, limit);
                rpc_reply(call);
        }
        strlist_clear(&listing.keys);
        return r;
}

/* --- history and audit --- */

static void write_next(JsonWriter *w, const Listing *listing, uint64_t limit) {
        json_write_end(w);
        if (listing->count == limit && limit > 0)
                json_write_uint(w, "next", listing->last);
        else
                json_write_null(w, "next");
}

static int add_history(void *data, const StoreHistory *row) {
        Listing *listing = data;
        JsonWriter *w = listing->writer;

        listing->count++;
        listing->last = row->id;
        json_write_object(w, NULL);
        json_write_uint(w, "id", row->id);
        json_write_string(w, "name", row->name);
        json_write_uint(w, "started_ms", row->started_ms);
        if (row->ended_ms)
                json_write_uint(w, "ended_ms", row->ended_ms);
        else
                json_write_null(w, "ended_ms");
        json_write_string(w, "params", row->params);
        json_write_string(w, "result", row->result);
        json_write_end(w);
        return 0;
}

int method_history_list(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        const uint64_t limit = rpc_uint(call, "limit", LIMIT_DEFAULT);
        Listing listing = { .writer = rpc_result(call) };
        int r;

        json_write_array(listing.writer, "rows");
        r = store_history_list(keeper->store, rpc_uint(call, "before", 0), rpc_string(call, "name"),
                               limit, add_history, &listing, error);
        if (r < 0) {
                rpc_fail(call, error);
                return 0;
        }
        write_next(listing.writer, &listing, limit);
        rpc_reply(call);
        return 0;
}

static int add_audit(void *data, const StoreAudit *row) {
        Listing *listing = data;
        JsonWriter *w = listing->writer;

        listing->count++;
        listing->last = row->id;
        json_write_object(w, NULL);
        json_write_uint(w, "id", row->id);
        json_write_uint(w, "at_ms", row->at_ms);
        json_write_string(w, "kind", row->kind);
        json_write_string(w, "detail", row->detail);
        json_write_end(w);
        return 0;
}

int method_audit_list(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        const uint64_t limit = rpc_uint(call, "limit", LIMIT_DEFAULT);
        Listing listing = { .writer = rpc_result(call) };
        int r;

        json_write_array(listing.writer, "rows");
        r = store_audit_list(keeper->store, rpc_uint(call, "before", 0), rpc_string(call, "kind"),
                             limit, add_audit, &listing, error);
        if (r < 0) {
                rpc_fail(call, error);
                return 0;
        }
        write_next(listing.writer, &listing, limit);
        rpc_reply(call);
        return 0;
}
