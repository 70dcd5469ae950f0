/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. The unit tests include it, to lower caps and to break things.
 */
#pragma once

#include <sqlite3.h>

#include "base/strings.h"
#include "base/time.h"
#include "store/store.h"

/* Whose statement, cap and total it is. */
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
        uint64_t bytes; /* of all that a client has written into them */
} StoreSize;

enum { STORE_STATEMENTS_MAX = 8 }; /* of one module */

/* Rows of the history that are written down, but not in the database yet: history-pending.c. */
typedef struct Pending {
        int dir_fd; /* the store's */
        char *name; /* of the file, in dir_fd */
        int fd;     /* FD_NONE without a file */
        char *text; /* its content, whole records */
        size_t length;
        size_t rows;
        void (*fn)(void *data); /* store_on_pending() */
        void *data;
} Pending;

struct Store {
        sqlite3 *db;
        StoreMode mode;
        int dir_fd; /* the way to all its files: see store_register_vfs() */
        char *name; /* in dir_fd */
        char *path; /* for messages */
        bool made;  /* by this process, and not finished: it goes if opening fails */
        StoreSize caps[STORE_MODULE_MAX]; /* none of the first three */
        uint64_t history_before;          /* what an earlier process began has an id up to this */
        uint64_t history_stored;          /* the newest row's id in the database */
        uint64_t history_last;            /* ... or pending */
        Pending pending;
        sqlite3_stmt *statements[STORE_MODULE_MAX][STORE_STATEMENTS_MAX];
};

static inline void store_freep(Store **store) {
        *store = store_free(*store);
}

/* --- sqlite.c: the library --- */

/* The name of the VFS to open databases by. Configures the library the first time. 0 or a negative
 * errno. */
int store_library(const char **ret_vfs, Error *reterr);

/* Turns a result of SQLite's, or the error that the connection has last had, into an Error: "cannot
 * WHAT in PATH: ...". Returns a negative errno. */
int store_error(const Store *store, int rc, const char *what, Error *reterr);
/* For what SQLite does not see: ERROR_DATA, "PATH ...", with its cure. Returns -EINVAL. */
int store_damaged(const Store *store, Error *reterr, const char *fmt, ...) _printf_(3, 4);

/* --- statement.c --- */

typedef struct Statement {
        const char *what; /* goes behind "cannot" */
        const char *sql;
} Statement;

/* A module's statements, by its own enum. Each is prepared when it is first needed, and kept. */
typedef struct StatementTable {
        StoreModule module;
        const Statement *rows;
        size_t count;
} StatementTable;

typedef enum ValueType {
        VALUE_TEXT, /* NULL for none */
        VALUE_BLOB,
        VALUE_NUMBER,
} ValueType;

/* What a parameter is bound to: borrowed until the statement has ended. */
typedef struct Value {
        ValueType type;
        const void *data;
        uint64_t number; /* or the length of data; past INT64_MAX it is that */
} Value;

/* Its versions do not agree on this. */
/* clang-format off */
#define TEXT(text)                                                                                 \
        { .type = VALUE_TEXT, .data = (text) }
#define BLOB(bytes, length)                                                                        \
        { .type = VALUE_BLOB, .data = (bytes), .number = (length) }
#define NUMBER(value)                                                                              \
        { .type = VALUE_NUMBER, .number = (value) }
/* clang-format on */
/* The parameters of a statement, in its order: two arguments of the functions below. */
#define VALUES(...) (const Value[]){ __VA_ARGS__ }, ELEMENTSOF(((const Value[]){ __VA_ARGS__ }))
#define NO_VALUES NULL, 0

typedef struct Query {
        Store *store;
        const Statement *statement;
        sqlite3_stmt *handle;
} Query;

/* Prepares, binds; ret is for query_next(), and ends with query_end(). 0 or a negative errno. */
int query_start(Store *store, const StatementTable *table, size_t which, const Value *values,
                size_t values_count, Query *ret, Error *reterr);
/* 1 with a row, 0 when there is none any more, or a negative errno. */
int query_next(Query *query, Error *reterr);
/* Legal on one that has not been started. */
void query_end(Query *query);

/* A column of the row: borrowed until the next call. *ret is NULL where it is NULL. -ENOMEM. */
int query_text(Query *query, int column, const char **ret, Error *reterr);
int query_blob(Query *query, int column, const void **ret, size_t *ret_length, Error *reterr);
uint64_t query_number(const Query *query, int column);

/* All of a statement that has no rows. 0 or a negative errno. */
int statement_run(Store *store, const StatementTable *table, size_t which, const Value *values,
                  size_t values_count, Error *reterr);

/* A write: *ret is the store until store_commit(), and where that doesn't come to pass
 * store_rollbackp() takes all back at the end of its scope. */
int store_begin(Store *store, Store **ret, Error *reterr);
int store_commit(Store **store, Error *reterr);
void store_rollbackp(Store **store);

/* --- audit.c --- */

/* store_audit_add(), within a transaction. */
int store_audit_insert(Store *store, const char *kind, const char *detail, uint64_t at_ms,
                       Error *reterr);

/* --- schema.c --- */

typedef struct Migration {
        int version; /* what the database has once it is through */
        const char *sql;
} Migration;

extern const Migration store_migrations[];
extern const size_t store_migrations_count;

enum {
        STORE_APPLICATION_ID = 0x686f6c74, /* "holt" */
};

/* Whether it is one of ours that we know: by its header, and again by what SQLite reads. 0, or
 * -EINVAL with an ERROR_DATA. */
int store_check_version(const Store *store, uint64_t application_id, uint64_t version, int newest,
                        Error *reterr);
/* Brings a database to the last of the migrations, each in a transaction of its own. One to be only
 * read has to be there already; a newer one is ERROR_DATA. */
int store_migrate(Store *store, const Migration *migrations, size_t count, Error *reterr);
/* Whether the tables are those of the last migration. */
int store_check_schema(Store *store, Error *reterr);

/* --- store.c --- */

/* Rows and bytes of a module, which triggers keep: no write counts. */
int store_size(Store *store, StoreModule module, StoreSize *ret, Error *reterr);

/* A cap is reached: ERROR_LIMIT. Returns -errnum. */
int store_limit(Error *reterr, int errnum, const char *cure, const char *fmt, ...) _printf_(4, 5);
/* Whether a text of history or audit is short enough. 0 or -E2BIG. */
int store_check_text(const char *text, const char *what, Error *reterr);

/* Deletes the oldest rows of a module, 1 % at a time, until the cap is not exceeded. which of table
 * does it, by three parameters: the id that they have to be below, newest; how many; and *over,
 * where that is not NULL. -ENOSPC where none may be deleted. */
int store_make_room(Store *store, const StatementTable *table, size_t which, uint64_t newest,
                    const uint64_t *over, Error *reterr);

/* --- history-pending.c --- */

/* Takes what an earlier process has left, whose newest id is history_last then. 0 or a negative
 * errno. */
int pending_open(Store *store, Error *reterr);
/* Removes the file where nothing is pending any more, unless it was only read. */
void pending_close(Store *store);
/* Whether it is time that the database takes what is here. */
bool pending_is_full(const Pending *pending);
/* Appends a row: safe from now on. A negative errno, and nothing has changed. */
int pending_add(Pending *pending, const StoreHistory *row);
/* The row at that place of pending->text, which it borrows from; the bytes that it takes there. */
size_t pending_read(const Pending *pending, size_t at, StoreHistory *ret);
/* The database has them. */
void pending_empty(Pending *pending);

/* --- history.c --- */

/* What is there has been begun by an earlier process: it is over, whatever became of it. */
int store_history_start(Store *store, Error *reterr);
