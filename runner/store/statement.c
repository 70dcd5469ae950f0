/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and transactions. No other file binds parameters or steps. */
#include "store/store-internal.h"

#include <errno.h>

/* --- one statement --- */

static int statement_prepare(Store *store, const Statement *statement, sqlite3_stmt **ret,
                             Error *reterr) {
        int rc;

        if (*ret)
                return 0;
        rc = sqlite3_prepare_v3(store->db, statement->sql, -1, SQLITE_PREPARE_PERSISTENT, ret,
                                NULL);
        return rc == SQLITE_OK ? 0 : store_error(store, rc, statement->what, reterr);
}

static int statement_bind(sqlite3_stmt *handle, int at, const Value *value) {
        const uint64_t number = value->number > INT64_MAX ? INT64_MAX : value->number;

        switch (value->type) {
        case VALUE_TEXT:
                return sqlite3_bind_text(handle, at, value->data, -1, SQLITE_STATIC);
        case VALUE_BLOB:
                /* A NULL pointer would bind NULL instead of an empty value. */
                return sqlite3_bind_blob64(handle, at, value->number > 0 ? value->data : "",
                                           value->number, SQLITE_STATIC);
        case VALUE_NUMBER:
                return sqlite3_bind_int64(handle, at, (sqlite3_int64)number);
        }
        return SQLITE_MISUSE;
}

int query_start(Store *store, const StatementTable *table, size_t which, const Value *values,
                size_t values_count, Query *ret, Error *reterr) {
        const Statement *statement = &table->rows[which];
        sqlite3_stmt **handle = &store->statements[table->module][which];
        int r;

        assert(which < table->count && table->count <= STORE_STATEMENTS_MAX);
        r = statement_prepare(store, statement, handle, reterr);
        if (r < 0)
                return r;
        /* A row's handler must not run the statement that gave it the row. */
        assert(!sqlite3_stmt_busy(*handle));
        assert((size_t)sqlite3_bind_parameter_count(*handle) == values_count);
        *ret = (Query){ .store = store, .statement = statement, .handle = *handle };
        for (size_t i = 0; i < values_count; i++) {
                int rc = statement_bind(*handle, (int)i + 1, &values[i]);

                if (rc != SQLITE_OK)
                        return store_error(store, rc, statement->what, reterr);
        }
        return 0;
}

int query_next(Query *query, Error *reterr) {
        int rc = sqlite3_step(query->handle);

        if (rc == SQLITE_ROW)
                return 1;
        if (rc == SQLITE_DONE)
                return 0;
        return store_error(query->store, rc, query->statement->what, reterr);
}

int query_first(Store *store, const StatementTable *table, size_t which, const Value *values,
                size_t values_count, Query *ret, Error *reterr) {
        int r = query_start(store, table, which, values, values_count, ret, reterr);

        return r < 0 ? r : query_next(ret, reterr);
}

void query_end(Query *query) {
        if (!query->handle)
                return;
        /* The result is that of the last step, which was handled. */
        (void)sqlite3_reset(query->handle);
        (void)sqlite3_clear_bindings(query->handle);
        query->handle = NULL;
}

int query_text(Query *query, int column, const char **ret, Error *reterr) {
        const char *text = (const char *)sqlite3_column_text(query->handle, column);

        if (!text && sqlite3_column_type(query->handle, column) != SQLITE_NULL)
                return error_oom(reterr);
        *ret = text;
        return 0;
}

int query_blob(Query *query, int column, const void **ret, size_t *ret_length, Error *reterr) {
        const void *bytes = sqlite3_column_blob(query->handle, column);
        const size_t length = (size_t)sqlite3_column_bytes(query->handle, column);

        /* SQLite returns NULL for an empty value, too. */
        if (!bytes && length > 0)
                return error_oom(reterr);
        *ret = bytes ? bytes : "";
        *ret_length = length;
        return 0;
}

uint64_t query_number(const Query *query, int column) {
        const sqlite3_int64 number = sqlite3_column_int64(query->handle, column);

        return number < 0 ? 0 : (uint64_t)number;
}

int statement_run(Store *store, const StatementTable *table, size_t which, const Value *values,
                  size_t values_count, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        int r = query_start(store, table, which, values, values_count, &query, reterr);

        while (r >= 0) {
                r = query_next(&query, reterr);
                if (r == 0)
                        return 0;
        }
        return r;
}

/* --- transactions --- */

enum { BEGIN, COMMIT, TRANSACTION_MAX };

static const Statement transaction_statements[] = {
        [BEGIN] = { "begin a write", "BEGIN IMMEDIATE" },
        [COMMIT] = { "finish a write", "COMMIT" },
};
static_assert(ELEMENTSOF(transaction_statements) == TRANSACTION_MAX,
              "every statement is in the table");

static const StatementTable transactions = { STORE_TRANSACTION, transaction_statements,
                                             TRANSACTION_MAX };

int store_begin(Store *store, Store **ret, Error *reterr) {
        int r = statement_run(store, &transactions, BEGIN, NO_VALUES, reterr);

        if (r < 0)
                return r;
        *ret = store;
        return 0;
}

int store_commit(Store **store, Error *reterr) {
        int r = statement_run(*store, &transactions, COMMIT, NO_VALUES, reterr);

        if (r < 0)
                return r;
        *store = NULL;
        return 0;
}

void store_rollbackp(Store **store) {
        /* On a full disk, SQLite has rolled back already. If this fails, the next write cannot
         * begin, and reports why. */
        if (*store && !sqlite3_get_autocommit((*store)->db))
                (void)sqlite3_exec((*store)->db, "ROLLBACK", NULL, NULL, NULL);
        *store = NULL;
}
