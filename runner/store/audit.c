/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store-internal.h"

enum { AUDIT_ADD, AUDIT_LIST, AUDIT_LIST_KIND, AUDIT_DROP, AUDIT_MAX };

#define COLUMNS "id, at_ms, kind, detail"

const char *const audit_kinds[AUDIT_KINDS + 1] = { "denial", "grant", "guard",   "kill",
                                                   "limit",  "link",  "network", "port",
                                                   "route",  "tool",  NULL };

static const Statement statements[] = {
        [AUDIT_ADD] = { "add to the audit",
                        "INSERT INTO audit (at_ms, kind, detail) VALUES (?1, ?2, ?3)" },
        [AUDIT_LIST] = { "list the audit", "SELECT " COLUMNS " FROM audit WHERE id < ?1"
                                           " ORDER BY id DESC LIMIT ?2" },
        [AUDIT_LIST_KIND] = { "list the audit",
                              "SELECT " COLUMNS " FROM audit WHERE id < ?1 AND kind = ?3"
                              " ORDER BY id DESC LIMIT ?2" },
        /* Code inside can cause any number of audit rows for tool calls. So the most frequent kind
         * makes room, and no flood removes the traces of other acts. */
        [AUDIT_DROP] = { "make room in the audit",
                         "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id < ?1"
                         " AND kind = (SELECT kind FROM audit WHERE id < ?1 GROUP BY kind"
                         " ORDER BY COUNT(*) DESC, MIN(id) LIMIT 1) ORDER BY id LIMIT ?2)" },
};
static_assert(ELEMENTSOF(statements) == AUDIT_MAX, "every statement is in the table");

static const StatementTable audit = { STORE_AUDIT, statements, AUDIT_MAX };

int store_audit_insert(Store *store, const char *kind, const char *detail, uint64_t at_ms,
                       Error *reterr) {
        uint64_t id;
        int r;

        r = store_check_text(detail, "a detail", reterr);
        if (r == 0)
                r = statement_run(store, &audit, AUDIT_ADD,
                                  VALUES(NUMBER(at_ms), TEXT(kind), TEXT(detail)), reterr);
        if (r < 0)
                return r;
        id = (uint64_t)sqlite3_last_insert_rowid(store->db);
        return store_make_room(store, &audit, AUDIT_DROP, id, NULL, reterr);
}

int store_audit_add(Store *store, const char *kind, const char *detail, uint64_t at_ms,
                    Error *reterr) {
        _cleanup_(store_rollbackp) Store *transaction = NULL;
        int r;

        r = store_begin(store, &transaction, reterr);
        if (r == 0)
                r = store_audit_insert(store, kind, detail, at_ms, reterr);
        return r < 0 ? r : store_commit(&transaction, reterr);
}

int store_meta_set_audited(Store *store, const char *name, const char *value, const char *kind,
                           const StrList *details, uint64_t at_ms, Error *reterr) {
        _cleanup_(store_rollbackp) Store *transaction = NULL;
        int r = store_begin(store, &transaction, reterr);

        if (r == 0)
                r = store_meta_set(store, name, value, reterr);
        for (size_t i = 0; r == 0 && i < details->count; i++)
                r = store_audit_insert(store, kind, details->items[i], at_ms, reterr);
        return r < 0 ? r : store_commit(&transaction, reterr);
}

static int audit_read_row(Query *query, StoreAudit *ret, Error *reterr) {
        StoreAudit row = { .id = query_number(query, 0), .at_ms = query_number(query, 1) };
        int r;

        r = query_text(query, 2, &row.kind, reterr);
        if (r == 0)
                r = query_text(query, 3, &row.detail, reterr);
        if (r == 0)
                *ret = row;
        return r;
}

int store_audit_list(Store *store, uint64_t before, const char *kind, uint64_t limit,
                     StoreAuditFn fn, void *data, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        const uint64_t end = before > 0 ? before : UINT64_MAX;
        StoreAudit row;
        int r;

        if (kind)
                r = query_start(store, &audit, AUDIT_LIST_KIND,
                                VALUES(NUMBER(end), NUMBER(limit), TEXT(kind)), &query, reterr);
        else
                r = query_start(store, &audit, AUDIT_LIST, VALUES(NUMBER(end), NUMBER(limit)),
                                &query, reterr);
        while (r >= 0 && (r = query_next(&query, reterr)) > 0) {
                r = audit_read_row(&query, &row, reterr);
                if (r == 0)
                        r = fn(data, &row);
        }
        return r;
}
