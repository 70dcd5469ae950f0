/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of this folder share. Unit tests use them to lower the caps and to
 * cause failures. */
#pragma once

#include <sqlite3.h>

#include "base/strings.h"
#include "base/time.h"
#include "store/store.h"

/* The modules, which have their own statements, caps and totals. */
typedef enum StoreModule {
        STORE_SELF, /* meta, totals */
        STORE_TRANSACTION,
        STORE_SCHEMA,
        STORE_KV,
        STORE_HISTORY,
        STORE_AUDIT,
        STORE_MODULE_MAX,
} StoreModule;

typedef struct StoreSize {
        uint64_t rows;
        uint64_t bytes; /* bytes of everything that clients have stored in the rows */
} StoreSize;

enum { STORE_STATEMENTS_MAX = 8 }; /* number of statements of one module */

/* Rows of the history that are on the disk, but not in the database yet (history-pending.c). */
typedef struct Pending {
        int dir_fd; /* borrowed from the store */
        char *name; /* owned: name of the file in dir_fd */
        int fd;     /* FD_NONE if there is no file */
        char *text; /* owned: content of the file, only whole records */
        size_t length;
        size_t rows;
        void (*fn)(void *data); /* set by store_on_pending() */
        void *data;
} Pending;

struct Store {
        sqlite3 *db;
        StoreMode mode;
        int dir_fd; /* owned: all files are opened below it; see store_register_vfs() */
        char *name; /* owned: name of the database in dir_fd */
        char *path; /* owned: path for messages */
        bool made;  /* this process has made the file; it is removed if opening fails */
        StoreSize caps[STORE_MODULE_MAX]; /* STORE_SELF has no caps */
        uint64_t history_before;          /* highest id of rows that an earlier process began */
        uint64_t history_stored;          /* id of the newest row in the database */
        uint64_t history_last;            /* id of the newest row, including pending ones */
        Pending pending;
        sqlite3_stmt *statements[STORE_MODULE_MAX][STORE_STATEMENTS_MAX];
};

/* --- sqlite.c: the library --- */

/* Returns in *ret_vfs the name of the VFS for opening databases. The first call configures the
 * library. Returns 0 or a negative errno. */
int store_library(const char **ret_vfs, Error *reterr);

/* Makes an Error, "cannot WHAT in PATH: ...", from a result code of SQLite, or from the
 * connection's last error. Returns a negative errno. */
int store_error(const Store *store, int rc, const char *what, Error *reterr);
/* Makes an ERROR_DATA, "PATH ...", with a cure, for damage that SQLite does not see. Returns
 * -EINVAL. */
int store_damaged(const Store *store, Error *reterr, const char *fmt, ...) _printf_(3, 4);

/* --- statement.c --- */

typedef struct Statement {
        const char *what; /* follows "cannot" in messages */
        const char *sql;
} Statement;

/* The statements of a module, indexed by its own enum. Each is prepared at its first use, and
 * kept. */
typedef struct StatementTable {
        StoreModule module;
        const Statement *rows;
        size_t count;
} StatementTable;

typedef enum ValueType {
        VALUE_TEXT, /* data is NULL for an SQL NULL */
        VALUE_BLOB,
        VALUE_NUMBER,
} ValueType;

/* The value of a parameter, borrowed until the statement has ended. */
typedef struct Value {
        ValueType type;
        const void *data;
        uint64_t number; /* the number, or the length of data; larger numbers become INT64_MAX */
} Value;

/* The versions of clang-format disagree about these macros. */
/* clang-format off */
#define TEXT(text)                                                                                 \
        { .type = VALUE_TEXT, .data = (text) }
#define BLOB(bytes, length)                                                                        \
        { .type = VALUE_BLOB, .data = (bytes), .number = (length) }
#define NUMBER(value)                                                                              \
        { .type = VALUE_NUMBER, .number = (value) }
/* clang-format on */
/* The parameters of a statement, in its order. Expands to two arguments of the functions below. */
#define VALUES(...) (const Value[]){ __VA_ARGS__ }, ELEMENTSOF(((const Value[]){ __VA_ARGS__ }))
#define NO_VALUES NULL, 0

typedef struct Query {
        Store *store;
        const Statement *statement;
        sqlite3_stmt *handle;
} Query;

/* Prepares a statement and binds its values. *ret is used with query_next() and must end with
 * query_end(). Returns 0 or a negative errno. */
int query_start(Store *store, const StatementTable *table, size_t which, const Value *values,
                size_t values_count, Query *ret, Error *reterr);
/* Returns 1 for a row, 0 after the last row, or a negative errno. */
int query_next(Query *query, Error *reterr);
/* query_start(), and query_next() for a first row, which may be the only one. */
int query_first(Store *store, const StatementTable *table, size_t which, const Value *values,
                size_t values_count, Query *ret, Error *reterr);
/* Ends a query. query may be one that was never started. */
void query_end(Query *query);

/* Returns a column of the row, borrowed until the next call. *ret is NULL for an SQL NULL. Returns
 * 0 or -ENOMEM. */
int query_text(Query *query, int column, const char **ret, Error *reterr);
int query_blob(Query *query, int column, const void **ret, size_t *ret_length, Error *reterr);
uint64_t query_number(const Query *query, int column);

/* Runs a statement without result rows. Returns 0 or a negative errno. */
int statement_run(Store *store, const StatementTable *table, size_t which, const Value *values,
                  size_t values_count, Error *reterr);

/* Begins a write, and sets *ret to the store; store_commit() sets it to NULL. Declare the variable
 * with store_rollbackp() as its cleanup function, which undoes an uncommitted write. */
int store_begin(Store *store, Store **ret, Error *reterr);
int store_commit(Store **store, Error *reterr);
void store_rollbackp(Store **store);

/* --- audit.c --- */

/* Does the work of store_audit_add(), within a transaction. */
int store_audit_insert(Store *store, const char *kind, const char *detail, uint64_t at_ms,
                       Error *reterr);

/* --- schema.c --- */

typedef struct Migration {
        int version; /* version of the database after this migration */
        const char *sql;
} Migration;

extern const Migration store_migrations[];
extern const size_t store_migrations_count;

enum {
        STORE_APPLICATION_ID = 0x686f6c74, /* the bytes "holt" */
};

/* Checks whether the file is a holt database of a known version. It is called with the numbers of
 * the header, and again with those that SQLite reads. Returns 0, or -EINVAL with an ERROR_DATA. */
int store_check_version(const Store *store, uint64_t application_id, uint64_t version, int newest,
                        Error *reterr);
/* Updates a database to the last migration; each runs in a transaction of its own. A database that
 * is only read must be up to date. A newer one gives ERROR_DATA. */
int store_migrate(Store *store, const Migration *migrations, size_t count, Error *reterr);
/* Checks whether the tables are those of the last migration. */
int store_check_schema(Store *store, Error *reterr);

/* --- store.c --- */

/* Reads the numbers of rows and bytes of a module. Triggers keep them, so that no write has to
 * count. */
int store_size(Store *store, StoreModule module, StoreSize *ret, Error *reterr);

/* Makes an ERROR_LIMIT for a cap that is reached. Returns -errnum. */
int store_limit(Error *reterr, int errnum, const char *cure, const char *fmt, ...) _printf_(4, 5);
/* Checks the length of a text of the history or audit. Returns 0 or -E2BIG. */
int store_check_text(const char *text, const char *what, Error *reterr);

/* Deletes the oldest rows of a module, 1 % at a time, until its cap is met. They are deleted by
 * the statement `which` of `table`. Its parameters are newest (it deletes only lower ids), the
 * number of rows, and *over if over is not NULL. Returns -ENOSPC if no row may be deleted. */
int store_make_room(Store *store, const StatementTable *table, size_t which, uint64_t newest,
                    const uint64_t *over, Error *reterr);

/* --- history-pending.c --- */

/* Reads the rows that an earlier process has left, and sets history_last to the newest id. Returns
 * 0 or a negative errno. */
int pending_open(Store *store, Error *reterr);
/* Closes the file, and removes it if nothing is pending and it was opened for writing. */
void pending_close(Store *store);
/* Returns whether the database should take the pending rows now. */
bool pending_is_full(const Pending *pending);
/* Appends a row to the file. Returns 0, or a negative errno if nothing has changed. */
int pending_add(Pending *pending, const StoreHistory *row);
/* Reads the row at that offset of pending->text, and borrows its texts from there. Returns the
 * record's size. */
size_t pending_read(const Pending *pending, size_t at, StoreHistory *ret);
/* Drops the rows, because the database has them. */
void pending_empty(Pending *pending);

/* --- history.c --- */

/* Marks the existing rows as begun by an earlier process: their calls are over. */
int store_history_start(Store *store, Error *reterr);
