/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

enum {
        HISTORY_ADD,
        HISTORY_END,
        HISTORY_LIST,
        HISTORY_LIST_NAME,
        HISTORY_LAST,
        HISTORY_DROP,
        HISTORY_MAX
};

#define COLUMNS "id, name, params, result, started_ms, ended_ms"

static const Statement statements[] = {
        [HISTORY_ADD] = { "add to the history",
                          "INSERT INTO history (id, name, params, result, started_ms, ended_ms)"
                          " VALUES (?1, ?2, ?3, ?4, ?5, ?6)" },
        [HISTORY_END] = { "add a result to the history",
                          "UPDATE history SET result = ?2, ended_ms = ?3"
                          " WHERE id = ?1 AND ended_ms = 0" },
        [HISTORY_LIST] = { "list the history", "SELECT " COLUMNS " FROM history WHERE id < ?1"
                                               " ORDER BY id DESC LIMIT ?2" },
        [HISTORY_LIST_NAME] = { "list the history",
                                "SELECT " COLUMNS " FROM history WHERE id < ?1 AND name = ?3"
                                " ORDER BY id DESC LIMIT ?2" },
        [HISTORY_LAST] = { "read the history", "SELECT max(id) FROM history" },
        /* Code inside can cause any number of rows for tool calls, as in the audit, so the most
         * frequent name makes room. The index makes counting cheap. Rows of calls that still run
         * are never removed, so a name with only such rows is skipped. */
        [HISTORY_DROP] = { "make room in the history",
                           "DELETE FROM history WHERE id IN (SELECT id FROM history"
                           " WHERE id < ?1 AND (ended_ms > 0 OR id <= ?3) AND name ="
                           " (SELECT name FROM (SELECT name, COUNT(*) AS rows, MIN(id) AS first"
                           " FROM history WHERE id < ?1 GROUP BY name) AS kind"
                           " WHERE EXISTS (SELECT 1 FROM history AS row WHERE row.name = kind.name"
                           " AND row.id < ?1 AND (row.ended_ms > 0 OR row.id <= ?3))"
                           " ORDER BY rows DESC, first LIMIT 1) ORDER BY id LIMIT ?2)" },
};
static_assert(ELEMENTSOF(statements) == HISTORY_MAX, "every statement is in the table");

static const StatementTable history = { STORE_HISTORY, statements, HISTORY_MAX };

int store_history_start(Store *store, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        int r = query_first(store, &history, HISTORY_LAST, NO_VALUES, &query, reterr);

        if (r < 0)
                return r;
        store->history_before = store->history_stored = query_number(&query, 0);
        store->history_last = store->history_stored;
        return 0;
}

/* --- writing --- */

static int history_check_row(const StoreHistory *row, Error *reterr) {
        int r = store_check_text(row->params, "the description of the call", reterr);

        return r == 0 && row->result ? store_check_text(row->result, "the result", reterr) : r;
}

/* The newest row is kept even if it exceeds the cap, so that ids only grow. */
static int history_insert_row(Store *store, const StoreHistory *row, Error *reterr) {
        int r = statement_run(store, &history, HISTORY_ADD,
                              VALUES(NUMBER(row->id), TEXT(row->name), TEXT(row->params),
                                     TEXT(row->result), NUMBER(row->started_ms),
                                     NUMBER(row->ended_ms)),
                              reterr);

        return r < 0 ? r
                     : store_make_room(store, &history, HISTORY_DROP, row->id,
                                       &store->history_before, reterr);
}

/* Inserts the pending rows. Some may be in the database already, moved by an earlier process. */
static int insert_pending(Store *store, Error *reterr) {
        int r = 0;

        for (size_t at = 0; r == 0 && at < store->pending.length;) {
                StoreHistory row;

                at += pending_read(&store->pending, at, &row);
                if (row.id > store->history_stored)
                        r = history_insert_row(store, &row, reterr);
        }
        return r;
}

int store_history_flush(Store *store, Error *reterr) {
        _cleanup_(store_rollbackp) Store *transaction = NULL;
        int r;

        if (store->pending.length == 0)
                return 0;
        r = store_begin(store, &transaction, reterr);
        if (r < 0)
                return r;
        r = insert_pending(store, reterr);
        if (r < 0)
                return r;
        r = store_commit(&transaction, reterr);
        if (r < 0)
                return r;
        store->history_stored = store->history_last;
        pending_empty(&store->pending);
        return 0;
}

/* Inserts a row, with an entry in the audit if kind is given, in one transaction. */
static int history_insert_audited(Store *store, const StoreHistory *row, const char *kind,
                                  const char *detail, Error *reterr) {
        _cleanup_(store_rollbackp) Store *transaction = NULL;
        int r = store_begin(store, &transaction, reterr);

        if (r == 0)
                r = history_insert_row(store, row, reterr);
        if (r == 0 && kind)
                r = store_audit_insert(store, kind, detail, row->ended_ms, reterr);
        return r < 0 ? r : store_commit(&transaction, reterr);
}

/* Adds a row to the database after those that are pending, and numbers it. */
static int history_add(Store *store, StoreHistory *row, const char *kind, const char *detail,
                       Error *reterr) {
        int r = history_check_row(row, reterr);

        if (r == 0)
                r = store_history_flush(store, reterr);
        if (r < 0)
                return r;
        row->id = store->history_last + 1;
        r = history_insert_audited(store, row, kind, detail, reterr);
        if (r == 0)
                store->history_last = store->history_stored = row->id;
        return r;
}

int store_history_begin(Store *store, const char *name, const char *params, uint64_t started_ms,
                        uint64_t *ret_id, Error *reterr) {
        StoreHistory row = { .name = name, .params = params, .started_ms = started_ms };
        int r = history_add(store, &row, NULL, NULL, reterr);

        if (r == 0)
                *ret_id = row.id;
        return r;
}

int store_history_end(Store *store, uint64_t id, const char *result, uint64_t ended_ms,
                      Error *reterr) {
        int r = store_check_text(result, "the result", reterr);

        if (r < 0)
                return r;
        return statement_run(store, &history, HISTORY_END,
                             VALUES(NUMBER(id), TEXT(result), NUMBER(ended_ms)), reterr);
}

int store_history_put(Store *store, const StoreHistory *row, Error *reterr) {
        StoreHistory added = *row;
        int r = history_check_row(row, reterr);

        if (r == 0 && pending_is_full(&store->pending))
                r = store_history_flush(store, reterr);
        if (r < 0)
                return r;
        added.id = store->history_last + 1;
        /* If the file does not exist or has no room, the database's own error says why. */
        if (pending_add(&store->pending, &added) < 0)
                return history_add(store, &added, NULL, NULL, reterr);
        store->history_last = added.id;
        return 0;
}

int store_audited_add(Store *store, const StoreHistory *row, const char *kind, const char *detail,
                      Error *reterr) {
        StoreHistory added = *row;

        return history_add(store, &added, kind, detail, reterr);
}

/* --- listing --- */

static int history_read_row(Query *query, StoreHistory *ret, Error *reterr) {
        StoreHistory row = { .id = query_number(query, 0),
                             .started_ms = query_number(query, 4),
                             .ended_ms = query_number(query, 5) };
        int r;

        r = query_text(query, 1, &row.name, reterr);
        if (r < 0)
                return r;
        r = query_text(query, 2, &row.params, reterr);
        if (r < 0)
                return r;
        r = query_text(query, 3, &row.result, reterr);
        if (r < 0)
                return r;
        *ret = row;
        return 0;
}

/* Lists the pending rows, which are the newest. A reader finds them if a process was killed, or if
 * the database has no room for them. */
static int list_pending(const Store *store, uint64_t end, const char *name, uint64_t *limit,
                        StoreHistoryFn fn, void *data) {
        int r = 0;

        for (uint64_t id = store->history_last; id > store->history_stored && r == 0; id--) {
                StoreHistory row = { .id = 0 };

                for (size_t at = 0; at < store->pending.length && row.id != id;)
                        at += pending_read(&store->pending, at, &row);
                if (row.id == id && *limit > 0 && id < end && (!name || streq(name, row.name))) {
                        --*limit;
                        r = fn(data, &row);
                }
        }
        return r;
}

int store_history_list(Store *store, uint64_t before, const char *name, uint64_t limit,
                       StoreHistoryFn fn, void *data, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        uint64_t end = before > 0 ? before : UINT64_MAX;
        StoreHistory row;
        Error ignored;
        int r;

        if (store->mode != STORE_READ)
                (void)store_history_flush(store, &ignored);
        r = list_pending(store, end, name, &limit, fn, data);
        if (r < 0)
                return r;
        /* A running process may have moved them meanwhile. */
        if (store->pending.rows > 0 && end > store->history_stored + 1)
                end = store->history_stored + 1;
        if (name)
                r = query_start(store, &history, HISTORY_LIST_NAME,
                                VALUES(NUMBER(end), NUMBER(limit), TEXT(name)), &query, reterr);
        else
                r = query_start(store, &history, HISTORY_LIST, VALUES(NUMBER(end), NUMBER(limit)),
                                &query, reterr);
        while (r >= 0 && (r = query_next(&query, reterr)) > 0) {
                r = history_read_row(&query, &row, reterr);
                if (r == 0)
                        r = fn(data, &row);
        }
        return r;
}
