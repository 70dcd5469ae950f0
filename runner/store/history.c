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
                          "INSERT INTO history (name, params, result, started_ms, ended_ms)"
                          " VALUES (?1, ?2, ?3, ?4, ?5)" },
        [HISTORY_END] = { "add a result to the history",
                          "UPDATE history SET result = ?2, ended_ms = ?3"
                          " WHERE id = ?1 AND ended_ms = 0" },
        [HISTORY_LIST] = { "list the history", "SELECT " COLUMNS " FROM history WHERE id < ?1"
                                               " ORDER BY id DESC LIMIT ?2" },
        [HISTORY_LIST_NAME] = { "list the history",
                                "SELECT " COLUMNS " FROM history WHERE id < ?1 AND name = ?3"
                                " ORDER BY id DESC LIMIT ?2" },
        [HISTORY_LAST] = { "read the history", "SELECT max(id) FROM history" },
        [HISTORY_DROP] = { "make room in the history",
                           "DELETE FROM history WHERE id IN (SELECT id FROM history"
                           " WHERE id < ?1 AND (ended_ms > 0 OR id <= ?3) ORDER BY id LIMIT ?2)" },
};
static_assert(ELEMENTSOF(statements) == HISTORY_MAX, "every one is in the table");

static const StatementTable history = { STORE_HISTORY, statements, HISTORY_MAX };

int store_history_start(Store *store, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        int r = query_start(store, &history, HISTORY_LAST, NO_VALUES, &query, reterr);

        if (r == 0)
                r = query_next(&query, reterr);
        if (r < 0)
                return r;
        store->history_before = query_number(&query, 0);
        return 0;
}

/* --- writing --- */

static int insert(Store *store, const StoreHistory *row, uint64_t *ret_id, Error *reterr) {
        int r;

        r = store_check_text(row->params, "what is called", reterr);
        if (r == 0 && row->result)
                r = store_check_text(row->result, "a result", reterr);
        if (r == 0)
                r = statement_run(store, &history, HISTORY_ADD,
                                  VALUES(TEXT(row->name), TEXT(row->params), TEXT(row->result),
                                         NUMBER(row->started_ms), NUMBER(row->ended_ms)),
                                  reterr);
        if (r < 0)
                return r;
        /* The newest row stays whatever the cap: so ids only grow. */
        *ret_id = (uint64_t)sqlite3_last_insert_rowid(store->db);
        return store_make_room(store, &history, HISTORY_DROP, *ret_id, &store->history_before,
                               reterr);
}

static int add(Store *store, const StoreHistory *row, uint64_t *ret_id, Error *reterr) {
        _cleanup_(store_rollbackp) Store *transaction = NULL;
        uint64_t id = 0;
        int r;

        r = store_begin(store, &transaction, reterr);
        if (r == 0)
                r = insert(store, row, &id, reterr);
        if (r == 0)
                r = store_commit(&transaction, reterr);
        if (r < 0)
                return r;
        *ret_id = id;
        return 0;
}

int store_history_begin(Store *store, const char *name, const char *params, uint64_t *ret_id,
                        Error *reterr) {
        const StoreHistory row = { .name = name, .params = params, .started_ms = store_now() };

        return add(store, &row, ret_id, reterr);
}

int store_history_end(Store *store, uint64_t id, const char *result, Error *reterr) {
        int r = store_check_text(result, "a result", reterr);

        if (r < 0)
                return r;
        return statement_run(store, &history, HISTORY_END,
                             VALUES(NUMBER(id), TEXT(result), NUMBER(store_now())), reterr);
}

int store_history_add(Store *store, const char *name, const char *params, const char *result,
                      uint64_t started_ms, Error *reterr) {
        const StoreHistory row = { .name = name,
                                   .params = params,
                                   .result = result,
                                   .started_ms = started_ms,
                                   .ended_ms = store_now() };
        uint64_t id;

        return add(store, &row, &id, reterr);
}

int store_audited_add(Store *store, const StoreHistory *row, const char *kind, const char *detail,
                      Error *reterr) {
        _cleanup_(store_rollbackp) Store *transaction = NULL;
        StoreHistory ended = *row;
        uint64_t id;
        int r;

        ended.ended_ms = store_now();
        r = store_begin(store, &transaction, reterr);
        if (r == 0)
                r = insert(store, &ended, &id, reterr);
        if (r == 0)
                r = store_audit_insert(store, kind, detail, reterr);
        return r < 0 ? r : store_commit(&transaction, reterr);
}

/* --- listing --- */

static int read_row(Query *query, StoreHistory *ret, Error *reterr) {
        StoreHistory row = { .id = query_number(query, 0),
                             .started_ms = query_number(query, 4),
                             .ended_ms = query_number(query, 5) };
        int r;

        r = query_text(query, 1, &row.name, reterr);
        if (r == 0)
                r = query_text(query, 2, &row.params, reterr);
        if (r == 0)
                r = query_text(query, 3, &row.result, reterr);
        if (r == 0)
                *ret = row;
        return r;
}

int store_history_list(Store *store, uint64_t before, const char *name, uint64_t limit,
                       StoreHistoryFn fn, void *data, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        const uint64_t end = before > 0 ? before : UINT64_MAX;
        StoreHistory row;
        int r;

        if (name)
                r = query_start(store, &history, HISTORY_LIST_NAME,
                                VALUES(NUMBER(end), NUMBER(limit), TEXT(name)), &query, reterr);
        else
                r = query_start(store, &history, HISTORY_LIST, VALUES(NUMBER(end), NUMBER(limit)),
                                &query, reterr);
        while (r >= 0 && (r = query_next(&query, reterr)) > 0) {
                r = read_row(&query, &row, reterr);
                if (r == 0)
                        r = fn(data, &row);
        }
        return r;
}
