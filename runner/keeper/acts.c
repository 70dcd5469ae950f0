/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/acts.h"

#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "keeper/methods.h"
#include "store/unwritten.h"

struct Act {
        Act *next;
        const RpcConnection *connection;
        uint64_t row; /* of the history */
};

static Act **find(Act **list, const RpcConnection *connection) {
        while (*list && (*list)->connection != connection)
                list = &(*list)->next;
        return list;
}

static int check_name(const char *name, Error *reterr) {
        bool taken = name[0] == '\0' || streq(name, "tool.call");
        char quoted[160];
        int r;

        for (size_t i = 0; i < session_methods_count; i++)
                taken |= streq(name, session_methods[i].name);
        if (!taken)
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "\"%s\" can't be the name of an act",
                      str_quote(name, quoted, sizeof(quoted)));
        return error_cure(reterr, r, "It is not empty, and no method's.");
}

int act_begin(Keeper *keeper, RpcConnection *connection, const char *name, const char *params,
              Error *reterr) {
        _cleanup_free_ Act *act = calloc(1, sizeof(*act));
        int r = act ? check_name(name, reterr) : error_oom(reterr);

        if (r < 0)
                return r;
        if (act_goes_on(keeper, connection)) {
                (void)error_set(reterr, ERROR_BUSY, 0, "an act of this connection goes on");
                return error_cure(reterr, -EBUSY, "history.end ends it.");
        }
        r = store_history_begin(keeper->store, name, params, &act->row, reterr);
        if (r < 0)
                return r;
        act->connection = connection;
        act->next = keeper->acts;
        keeper->acts = TAKE_PTR(act);
        return 0;
}

int act_end(Keeper *keeper, const RpcConnection *connection, const char *result,
            const char **ret_unrecorded, Error *reterr) {
        Act **at = find(&keeper->acts, connection);
        _cleanup_free_ Act *act = *at;

        if (!act) {
                (void)error_set(reterr, ERROR_MISSING, 0, "no act of this connection goes on");
                return error_cure(reterr, -ENOENT, "history.begin begins one.");
        }
        *at = act->next;
        *ret_unrecorded = unwritten_record(keeper->unwritten,
                                           &(const StoreHistory){ .id = act->row,
                                                                  .result = result,
                                                                  .ended_ms = time_epoch_ms() });
        return 0;
}

bool act_goes_on(const Keeper *keeper, const RpcConnection *connection) {
        Act *first = keeper->acts;

        return *find(&first, connection) != NULL;
}

void acts_forget(Keeper *keeper, const RpcConnection *connection) {
        static const char gone[] = "{\"success\":false,\"kind\":\"setup\",\"errno\":\"ECANCELED\","
                                   "\"error\":\"the client has gone\"}";
        const char *unrecorded;
        Error ignored;

        (void)act_end(keeper, connection, gone, &unrecorded, &ignored);
}
