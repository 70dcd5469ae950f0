/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/acts.h"

#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "base/time.h"
#include "store/unwritten.h"

typedef struct Act {
        struct Act *next;
        const RpcConnection *connection;
        uint64_t row; /* Id of the row in the history. */
} Act;

struct Acts {
        Store *store;
        Unwritten *unwritten;
        Act *first;
};

static Act *act_find(const Acts *all, const RpcConnection *connection) {
        Act *act = all->first;

        while (act && act->connection != connection)
                act = act->next;
        return act;
}

int acts_new(Store *store, Unwritten *unwritten, Acts **ret, Error *reterr) {
        Acts *all = calloc(1, sizeof(*all));

        if (!all)
                return error_oom(reterr);
        *all = (Acts){ .store = store, .unwritten = unwritten };
        *ret = all;
        return 0;
}

Acts *acts_free(Acts *all) {
        list_each_safe(act, all ? all->first : NULL)
                free(act);
        free(all);
        return NULL;
}

int act_begin(Acts *all, RpcConnection *connection, const char *name, const char *params,
              Error *reterr) {
        _cleanup_free_ Act *act = calloc(1, sizeof(*act));
        int r;

        if (!act)
                return error_oom(reterr);
        if (act_goes_on(all, connection)) {
                (void)error_set(reterr, ERROR_BUSY, 0,
                                "this connection has already begun a row of the history");
                return error_cure(reterr, -EBUSY, "End it first: history.end.");
        }
        r = store_history_begin(all->store, name, params, time_epoch_ms(), &act->row, reterr);
        if (r < 0)
                return r;
        act->connection = connection;
        list_push(&all->first, TAKE_PTR(act));
        return 0;
}

int act_end(Acts *all, const RpcConnection *connection, const char *result,
            const char **ret_unrecorded, Error *reterr) {
        _cleanup_free_ Act *act = act_find(all, connection);

        if (!act) {
                (void)error_set(reterr, ERROR_MISSING, 0,
                                "this connection has not begun a row of the history");
                return error_cure(reterr, -ENOENT, "Begin one first: history.begin.");
        }
        (void)list_remove(&all->first, act);
        *ret_unrecorded = unwritten_record(all->unwritten,
                                           &(const StoreHistory){ .id = act->row,
                                                                  .result = result,
                                                                  .ended_ms = time_epoch_ms() });
        return 0;
}

bool act_goes_on(const Acts *all, const RpcConnection *connection) {
        return act_find(all, connection) != NULL;
}

void acts_forget(Acts *all, const RpcConnection *connection) {
        static const char gone[] = "{\"success\":false,\"kind\":\"setup\",\"errno\":\"ECANCELED\","
                                   "\"error\":\"the client has gone\"}";
        const char *unrecorded;
        Error ignored;

        (void)act_end(all, connection, gone, &unrecorded, &ignored);
}
