/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the file, and the steps from older versions. A migration that was in a release is
 * never changed: a new row is added after it. */
#include "store/store-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Small columns come first: a large value lies in pages of its own, which then need not be read.
 * length() counts the characters of a text, and the bytes of a blob. */
static const char version_1[] =
        "PRAGMA application_id = 0x686f6c74;"

        "CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT;"

        /* Keys are blobs, so that they sort by their bytes. */
        "CREATE TABLE kv (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"
        " STRICT;"

        "CREATE TABLE history (id INTEGER PRIMARY KEY, started_ms INTEGER NOT NULL,"
        " ended_ms INTEGER NOT NULL, name TEXT NOT NULL, params TEXT NOT NULL, result TEXT) STRICT;"
        "CREATE INDEX history_name ON history (name);"

        "CREATE TABLE audit (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL,"
        " detail TEXT NOT NULL) STRICT;"
        "CREATE INDEX audit_kind ON audit (kind);"

        "CREATE TABLE totals (name TEXT NOT NULL PRIMARY KEY, count INTEGER NOT NULL,"
        " bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "INSERT INTO totals VALUES ('kv', 0, 0), ('history', 0, 0), ('audit', 0, 0);"

        "CREATE TRIGGER kv_insert AFTER INSERT ON kv BEGIN"
        " UPDATE totals SET count = count + 1, bytes = bytes + length(NEW.key) + length(NEW.value)"
        " WHERE name = 'kv'; END;"
        "CREATE TRIGGER kv_update AFTER UPDATE ON kv BEGIN"
        " UPDATE totals SET bytes = bytes - length(OLD.value) + length(NEW.value)"
        " WHERE name = 'kv'; END;"
        "CREATE TRIGGER kv_delete AFTER DELETE ON kv BEGIN"
        " UPDATE totals SET count = count - 1, bytes = bytes - length(OLD.key) - length(OLD.value)"
        " WHERE name = 'kv'; END;"

        "CREATE TRIGGER history_insert AFTER INSERT ON history BEGIN"
        " UPDATE totals SET count = count + 1, bytes = bytes + length(CAST(NEW.params AS BLOB))"
        " + ifnull(length(CAST(NEW.result AS BLOB)), 0) WHERE name = 'history'; END;"
        "CREATE TRIGGER history_update AFTER UPDATE OF result ON history BEGIN"
        " UPDATE totals SET bytes = bytes - ifnull(length(CAST(OLD.result AS BLOB)), 0)"
        " + ifnull(length(CAST(NEW.result AS BLOB)), 0) WHERE name = 'history'; END;"
        "CREATE TRIGGER history_delete AFTER DELETE ON history BEGIN"
        " UPDATE totals SET count = count - 1, bytes = bytes - length(CAST(OLD.params AS BLOB))"
        " - ifnull(length(CAST(OLD.result AS BLOB)), 0) WHERE name = 'history'; END;"

        "CREATE TRIGGER audit_insert AFTER INSERT ON audit BEGIN"
        " UPDATE totals SET count = count + 1, bytes = bytes + length(CAST(NEW.detail AS BLOB))"
        " WHERE name = 'audit'; END;"
        "CREATE TRIGGER audit_delete AFTER DELETE ON audit BEGIN"
        " UPDATE totals SET count = count - 1, bytes = bytes - length(CAST(OLD.detail AS BLOB))"
        " WHERE name = 'audit'; END;";

const Migration store_migrations[] = {
        { 1, version_1 },
};
const size_t store_migrations_count = ELEMENTSOF(store_migrations);

/* All names of the last version, in byte order. */
static const char *const schema_names[] = {
        "audit",          "audit_delete",   "audit_insert", "audit_kind",     "history",
        "history_delete", "history_insert", "history_name", "history_update", "kv",
        "kv_delete",      "kv_insert",      "kv_update",    "meta",           "totals",
};

enum { SCHEMA_NAMES, SCHEMA_VERSION, SCHEMA_APPLICATION, SCHEMA_MAX };

static const Statement statements[] = {
        /* Names that SQLite makes for itself, such as the indexes of unique columns, are not
         * checked. */
        [SCHEMA_NAMES] = { "read the tables",
                           "SELECT name FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*'"
                           " ORDER BY name" },
        [SCHEMA_VERSION] = { "read the version", "PRAGMA user_version" },
        [SCHEMA_APPLICATION] = { "read the kind", "PRAGMA application_id" },
};
static_assert(ELEMENTSOF(statements) == SCHEMA_MAX, "every statement is in the table");

static const StatementTable schema = { STORE_SCHEMA, statements, SCHEMA_MAX };

int store_check_schema(Store *store, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        size_t same = 0, count = 0;
        int r = query_start(store, &schema, SCHEMA_NAMES, NO_VALUES, &query, reterr);

        while (r >= 0 && (r = query_next(&query, reterr)) > 0) {
                const char *name = NULL;

                r = query_text(&query, 0, &name, reterr);
                if (count < ELEMENTSOF(schema_names) && name && streq(name, schema_names[count]))
                        same++;
                count++;
        }
        if (r < 0)
                return r;
        if (same != count || count != ELEMENTSOF(schema_names))
                return store_damaged(store, reterr, "does not have holt's tables");
        return 0;
}

/* --- versions --- */

static int schema_read_number(Store *store, size_t which, uint64_t *ret, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        int r = query_first(store, &schema, which, NO_VALUES, &query, reterr);

        if (r < 0)
                return r;
        *ret = query_number(&query, 0);
        return 0;
}

static int migrate_by(Store *store, const Migration *migration, Error *reterr) {
        _cleanup_(store_rollbackp) Store *transaction = NULL;
        char version[64];
        int r, rc;

        r = store_begin(store, &transaction, reterr);
        if (r < 0)
                return r;
        (void)snprintf(version, sizeof(version), "PRAGMA user_version = %d", migration->version);
        rc = sqlite3_exec(store->db, migration->sql, NULL, NULL, NULL);
        rc = rc ? rc : sqlite3_exec(store->db, version, NULL, NULL, NULL);
        if (rc != SQLITE_OK)
                return store_error(store, rc, "make the tables", reterr);
        return store_commit(&transaction, reterr);
}

int store_check_version(const Store *store, uint64_t application_id, uint64_t version, int newest,
                        Error *reterr) {
        int r;

        if (application_id != STORE_APPLICATION_ID)
                return store_damaged(store, reterr, "is a database, but not holt's");
        if (version == 0)
                return store_damaged(store, reterr, "has no version");
        if (version <= (uint64_t)newest)
                return 0;
        r = error_set(reterr, ERROR_DATA, 0,
                      "%s has version %llu; this holt supports versions up to %d", store->path,
                      (unsigned long long)version, newest);
        return error_cure(reterr, r, "A newer holt has written it. Use that newer holt.");
}

int store_migrate(Store *store, const Migration *migrations, size_t count, Error *reterr) {
        const int newest = migrations[count - 1].version;
        uint64_t version, application_id;
        int r;

        r = schema_read_number(store, SCHEMA_VERSION, &version, reterr);
        if (r == 0)
                r = schema_read_number(store, SCHEMA_APPLICATION, &application_id, reterr);
        if (r == 0 && !store->made)
                r = store_check_version(store, application_id, version, newest, reterr);
        if (r < 0)
                return r;
        if (store->mode == STORE_READ && version < (uint64_t)newest) {
                r = error_set(reterr, ERROR_BUSY, EAGAIN, "%s was made by an older holt",
                              store->path);
                return error_cure(reterr, r, "Start the session once to update the file.");
        }
        for (size_t i = 0; i < count && r == 0; i++)
                if ((uint64_t)migrations[i].version > version)
                        r = migrate_by(store, &migrations[i], reterr);
        return r;
}
