/* SPDX-License-Identifier: Apache-2.0 */
/* A session's database (SQLite, WAL): its settings, its keys and values (kv), its history and its
 * audit.
 *
 * One process writes it, the keeper. Verbs that only read may open it read-only at the same time.
 * Each write is a transaction of its own, which survives the kill of any process. After a power
 * cut, the last writes may be missing, but nothing is damaged. This is synchronous = NORMAL: a
 * flush for each exec would cost more than the exec.
 *
 * Every error of SQLite becomes an Error that names what was tried:
 * - ERROR_DATA (-EINVAL): the file is not a database, is damaged or truncated, or has a newer
 *   version
 * - ERROR_LIMIT: a cap is reached (-ENOSPC, -EINVAL, -E2BIG), or the disk is full (-ENOSPC)
 * - ERROR_MISSING (-ENOENT): it does not exist
 * - ERROR_BUSY (-EBUSY): another process writes for longer than 5 s
 * - ERROR_SETUP: any other error
 *
 * A write that fails has changed nothing, and later writes may succeed.
 *
 * A Store must not be used across fork(2), because SQLite's locks belong to a process. A function
 * that gets rows must not call the store. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

enum {
        STORE_KEY_MAX = 1024,           /* bytes of a key of kv */
        STORE_VALUE_MAX = 1 << 20,      /* bytes of a value of kv */
        STORE_KV_MAX = 100000,          /* number of keys */
        STORE_KV_BYTES_MAX = 256 << 20, /* bytes of all keys and values together */
        /* Number of rows. Beyond it, the oldest rows of the most frequent name are deleted, 1 % at
         * a time, except for calls of this process that still run. */
        STORE_HISTORY_MAX = 100000,
        STORE_HISTORY_BYTES_MAX = 256 << 20, /* bytes of params and results */
        /* Number of rows; beyond it, the oldest rows of the most frequent kind are deleted. */
        STORE_AUDIT_MAX = 100000,
        STORE_AUDIT_BYTES_MAX = 64 << 20,
        STORE_TEXT_MAX = 64 * 1024, /* bytes of params, result or detail */
};

typedef struct Store Store;

typedef enum StoreMode {
        STORE_READ,   /* read only; the file must exist */
        STORE_WRITE,  /* read and write; the file must exist */
        STORE_CREATE, /* make a new file; -EEXIST if it exists */
} StoreMode;

/* Opens the database. path may go through /proc/self/fd/N/; then only its last directory must be
 * searchable. path is never followed if it is a symlink itself. The directory and the files must
 * belong to the effective user (private_check()). The store keeps an fd of the directory, and opens
 * its files through it.
 *
 * The directory must be writable for STORE_CREATE and STORE_WRITE, and for STORE_READ if no other
 * process has the file open. SQLite makes NAME-wal and NAME-shm in it, and the history makes
 * NAME-pending. A new file has mode 0600.
 *
 * A process should open a file only once. An older version of the file is updated, except by
 * STORE_READ (ERROR_BUSY). Returns 0 or a negative errno. */
int store_open(const char *path, StoreMode mode, Store **ret, Error *reterr);
/* Returns NULL. store may be NULL. */
Store *store_free(Store *store);
static inline void store_freep(Store **store) {
        *store = store_free(*store);
}
/* Frees memory that only makes the next call faster. Call it after a time without calls. */
void store_rest(Store *store);

/* --- settings of the session: names and texts, such as "policy" and "created_at" --- */

/* Adds or replaces a setting. Returns -EINVAL if name is longer than STORE_KEY_MAX, or value longer
 * than STORE_VALUE_MAX. */
int store_meta_set(Store *store, const char *name, const char *value, Error *reterr);
/* Does the same, and adds an event of this kind to the audit for each detail: all or nothing. */
int store_meta_set_audited(Store *store, const char *name, const char *value, const char *kind,
                           const StrList *details, uint64_t at_ms, Error *reterr);
/* The caller owns *ret, which is NULL if the name does not exist. */
int store_meta_get(Store *store, const char *name, char **ret, Error *reterr);

/* --- kv: keys are UTF-8 without NUL, values are any bytes --- */

/* Adds or replaces a key. Returns 0 or a negative errno:
 * - -EINVAL with an ERROR_USAGE: the key is empty or invalid
 * - -EINVAL with an ERROR_LIMIT: the key or value is too long
 * - -ENOSPC: a cap is reached, or the disk is full */
int store_kv_set(Store *store, const char *key, const void *value, size_t length, Error *reterr);
/* The caller owns *ret, which ends with a NUL. Returns -ENOENT with an ERROR_MISSING if the key
 * does not exist. */
int store_kv_get(Store *store, const char *key, char **ret, size_t *ret_length, Error *reterr);
/* *ret_deleted: the key existed. */
int store_kv_delete(Store *store, const char *key, bool *ret_deleted, Error *reterr);

/* Is called with each row. Returns 0, or a negative errno that ends the listing. */
typedef int (*StoreKeyFn)(void *data, const char *key, size_t value_length);
/* Lists at most limit keys in byte order: those that start with prefix ("" for all), from the first
 * key behind "after" on ("" for the start). prefix may be any bytes, and may end within a
 * character. */
int store_kv_keys(Store *store, const char *prefix, const char *after, uint64_t limit,
                  StoreKeyFn fn, void *data, Error *reterr);

/* --- history: every exec and file call --- */

typedef struct StoreHistory {
        uint64_t id;         /* grows with each row */
        const char *name;    /* for example "exec" or "files.write" */
        const char *params;  /* JSON */
        const char *result;  /* JSON; NULL while the call runs, or if a crash has interrupted it */
        uint64_t started_ms; /* ms since the epoch */
        uint64_t ended_ms;   /* ms since the epoch; 0 while the call runs */
} StoreHistory;

/* Adds a row for a call that runs since started_ms, since the epoch. Returns -E2BIG if params is
 * too long. */
int store_history_begin(Store *store, const char *name, const char *params, uint64_t started_ms,
                        uint64_t *ret_id, Error *reterr);
/* Ends a call. ended_ms: since the epoch. Only the first end of a call counts. A row that was
 * deleted to make room is not an error. Returns -E2BIG if result is too long: the call then still
 * runs, and can be ended with a shorter result. */
int store_history_end(Store *store, uint64_t id, const char *result, uint64_t ended_ms,
                      Error *reterr);
/* Adds a row for a call that has ended; row->id is ignored. The row survives the end of this
 * process. store_history_flush() later moves it into the database. Returns -E2BIG if a text is too
 * long. */
int store_history_put(Store *store, const StoreHistory *row, Error *reterr);
/* Moves the pending rows into the database; every other call about the history does the same. Does
 * nothing if there are none. If it fails, the next call tries again. */
int store_history_flush(Store *store, Error *reterr);
/* fn is called when the first row becomes pending, or at once if rows are pending already. It must
 * not call the store. NULL removes fn. */
void store_on_pending(Store *store, void (*fn)(void *data), void *data);
typedef int (*StoreHistoryFn)(void *data, const StoreHistory *row);
/* Lists at most limit rows, the newest first. Only rows whose id is lower than "before" (0: all),
 * and whose name is "name" (NULL: any), are listed. */
int store_history_list(Store *store, uint64_t before, const char *name, uint64_t limit,
                       StoreHistoryFn fn, void *data, Error *reterr);

/* --- audit: denials, grants, kills, limits --- */

/* The kinds of rows; holt-kv(1) describes them. NULL-terminated. */
enum { AUDIT_KINDS = 10 };
extern const char *const audit_kinds[AUDIT_KINDS + 1];

typedef struct StoreAudit {
        uint64_t id;
        uint64_t at_ms;     /* ms since the epoch */
        const char *kind;   /* one of audit_kinds[] */
        const char *detail; /* JSON */
} StoreAudit;

/* at_ms: since the epoch. Returns -E2BIG if detail is too long. */
int store_audit_add(Store *store, const char *kind, const char *detail, uint64_t at_ms,
                    Error *reterr);
/* Adds a row to the history and one to the audit, both with the time at which the call ended.
 * Writes directly to the database: both rows or none. */
int store_audited_add(Store *store, const StoreHistory *row, const char *kind, const char *detail,
                      Error *reterr);
typedef int (*StoreAuditFn)(void *data, const StoreAudit *row);
/* Lists rows of the audit, as store_history_list() does for the history. */
int store_audit_list(Store *store, uint64_t before, const char *kind, uint64_t limit,
                     StoreAuditFn fn, void *data, Error *reterr);
