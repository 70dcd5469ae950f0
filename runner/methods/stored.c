/* SPDX-License-Identifier: Apache-2.0 */
#include "methods/stored.h"

#include <assert.h>
#include <limits.h>

#include "base/strings.h"
#include "keeper/keeper.h"
#include "session/live.h"
#include "session/route-store.h"
#include "session/sources.h"
#include "store/rows.h"

static uint64_t stored_limit(const RpcCall *call) {
        return rpc_uint(call, "limit", ANSWER_LIMIT_DEFAULT);
}

static int stored_kv_get(Store *store, RpcCall *call, Error *error) {
        return answer_kv_get(store, rpc_string(call, "key"), rpc_bool(call, "base64", false),
                             rpc_result(call), error);
}

static int stored_kv_keys(Store *store, RpcCall *call, Error *error) {
        const char *prefix = rpc_string(call, "prefix"), *after = rpc_string(call, "after");

        return answer_kv_keys(store, prefix ? prefix : "", after ? after : "", stored_limit(call),
                              rpc_result(call), error);
}

static int stored_history(Store *store, RpcCall *call, Error *error) {
        return answer_history(store, rpc_uint(call, "before", 0), rpc_string(call, "name"),
                              stored_limit(call), rpc_result(call), error);
}

static int stored_audit(Store *store, RpcCall *call, Error *error) {
        return answer_audit(store, rpc_uint(call, "before", 0), rpc_string(call, "kind"),
                            stored_limit(call), rpc_result(call), error);
}

static int stored_routes(Store *store, RpcCall *call, Error *error) {
        return route_store_write_at_rest(store, rpc_result(call), error);
}

typedef int (*StoredFn)(Store *store, RpcCall *call, Error *error);

static const struct {
        const char *method;
        StoredFn write; /* writes the result's members */
} stored[] = {
        { "kv.get", stored_kv_get },        { "kv.keys", stored_kv_keys },
        { "history.list", stored_history }, { "audit.list", stored_audit },
        { "route.list", stored_routes },
};

static StoredFn stored_find(const char *method) {
        for (size_t i = 0; i < ELEMENTSOF(stored); i++)
                if (streq(stored[i].method, method))
                        return stored[i].write;
        return NULL;
}

int stored_reply(RpcCall *call, Store *store, Error *error) {
        const StoredFn write = stored_find(rpc_call_method(call)->name);

        assert(write);
        if (write(store, call, error) < 0)
                rpc_fail(call, error);
        else
                rpc_reply(call);
        return 0;
}

static int stored_show(RpcCall *call, const char *name, Store *store, const char *path,
                       Error *error) {
        JsonWriter *w = rpc_result(call);

        json_write_string(w, "name", name);
        json_write_string(w, "state", "at rest");
        if (sources_write_facts(store, path, w, error) < 0)
                rpc_fail(call, error);
        else
                rpc_reply(call);
        return 0;
}

int stored_show_plan(RpcCall *call, void *data, Error *error) {
        const Keeper *reader = data;
        JsonWriter *w = rpc_result(call);

        (void)error;
        json_write_string(w, "name", reader->name);
        json_write_string(w, "state", session_states[0]);
        settings_write_facts(&reader->settings, &reader->plan, false, w);
        rpc_reply(call);
        return 0;
}

bool stored_has(const char *method) {
        return streq(method, "session.show") || stored_find(method);
}

bool stored_reads_files(const RpcMethod *method) {
        static const char *const others[] = { "process.list",  "route.add",    "route.remove",
                                              "session.allow", "session.stop", "tools.list" };

        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (streq(method->name, others[i]))
                        return false;
        return method->at_rest && !stored_has(method->name);
}

int stored_reply_at_rest(RpcCall *call, const char *name, int dir_fd, Error *error) {
        char path[PATH_MAX];
        _cleanup_(store_freep) Store *store = NULL;
        int r = session_path(dir_fd, path, error);

        if (r < 0)
                return r;
        r = settings_open_store(dir_fd, STORE_READ, &store, error);
        if (r < 0)
                return r;
        return streq(rpc_call_method(call)->name, "session.show")
                       ? stored_show(call, name, store, path, error)
                       : stored_reply(call, store, error);
}
