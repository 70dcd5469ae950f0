/* SPDX-License-Identifier: Apache-2.0 */
/* A session's database (SQLite, WAL): what it is, kv, history, audit.
 *
 * One process writes it, the keeper; verbs that only look may open it read-only beside it. Each
 * write is a transaction of its own, which a kill of any process leaves whole. After a power cut
 * the last ones may be missing, and nothing is damaged (synchronous = NORMAL: a flush for each exec
 * would cost more than the exec).
 *
 * Every error of SQLite becomes one Error with what was tried: ERROR_DATA for a file that is no
 * database, is damaged, cut short or of a newer version (-EINVAL); ERROR_LIMIT where a cap is
 * reached (-ENOSPC, -EINVAL, -E2BIG) or the disk is full (-ENOSPC); ERROR_MISSING for what is not
 * there (-ENOENT); ERROR_BUSY where another process writes for longer than 5 s (-EBUSY); otherwise
 * ERROR_SETUP. A write that fails has changed nothing, and later ones may succeed.
 *
 * A Store is not taken across fork(2): SQLite's locks are a process's. A function that rows are
 * handed to does not call the store. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
        STORE_KEY_MAX = 1024,           /* bytes of a key of kv */
        STORE_VALUE_MAX = 1 << 20,      /* bytes of a value of kv */
        STORE_KV_MAX = 100000,          /* keys */
        STORE_KV_BYTES_MAX = 256 << 20, /* of all keys and values together */
        /* rows: the oldest of the name that there is most of make room, 1 % at a time, but those
         * that this process has begun and not ended */
        STORE_HISTORY_MAX = 100000,
        STORE_HISTORY_BYTES_MAX = 256 << 20, /* of params and results together: likewise */
        STORE_AUDIT_MAX = 100000, /* rows: the oldest of the kind that there is most of make room */
        STORE_AUDIT_BYTES_MAX = 64 << 20,
        STORE_TEXT_MAX = 64 * 1024, /* bytes of params, result and detail */
};

typedef struct Store Store;

typedef enum StoreMode {
        STORE_READ,   /* only look; the file has to be there */
        STORE_WRITE,  /* the file has to be there */
        STORE_CREATE, /* a new one; -EEXIST where there is one */
} StoreMode;

/* path may lead through /proc/self/fd/N/, and none of the directories above its last one has to be
 * searchable then; it is never followed where it is a link itself. The directory,
 * the file and those beside it have to be the effective user's (private_check()). The store has an
 * fd of its own of that directory, by which it reaches its files from then on. For STORE_CREATE and
 * STORE_WRITE the directory has to be writable, and for STORE_READ, too, where no other process has
 * the file open: SQLite makes NAME-wal and NAME-shm beside it, and the history NAME-pending. A new
 * file has mode 0600. It should be the only one of its process: an older version is brought up to
 * date, which STORE_READ refuses (ERROR_BUSY). 0 or a negative errno. */
int store_open(const char *path, StoreMode mode, Store **ret, Error *reterr);
/* NULL is legal; returns NULL. */
Store *store_free(Store *store);
/* Gives back the memory that only makes the next call faster: for when none has come for a while.
 */
void store_rest(Store *store);

/* --- what the session is: names and texts, as "policy", "created_at" --- */

/* Adds or replaces. -EINVAL where the name is longer than STORE_KEY_MAX, the value than
 * STORE_VALUE_MAX. */
int store_meta_set(Store *store, const char *name, const char *value, Error *reterr);
/* *ret is owned by the caller; NULL where there is no such name. */
int store_meta_get(Store *store, const char *name, char **ret, Error *reterr);

/* --- kv: keys are UTF-8 without NUL, values any bytes --- */

/* Adds or replaces. -EINVAL (an empty key or one that is no UTF-8, ERROR_USAGE; a key or value that
 * is too long, ERROR_LIMIT), -ENOSPC (a cap, or the disk). */
int store_kv_set(Store *store, const char *key, const void *value, size_t length, Error *reterr);
/* *ret is owned by the caller and has a NUL behind it. -ENOENT with an ERROR_MISSING. */
int store_kv_get(Store *store, const char *key, char **ret, size_t *ret_length, Error *reterr);
/* *ret_deleted: whether it was there. */
int store_kv_delete(Store *store, const char *key, bool *ret_deleted, Error *reterr);

/* Rows are handed out one by one; each returns 0, or a negative errno that ends the listing. */
typedef int (*StoreKeyFn)(void *data, const char *key, size_t value_length);
/* Keys that start with prefix ("" for all), in byte order, behind after ("" from the start), limit
 * at most. prefix may be any bytes, and end within a character. */
int store_kv_keys(Store *store, const char *prefix, const char *after, uint64_t limit,
                  StoreKeyFn fn, void *data, Error *reterr);

/* --- history: every exec and file call --- */

typedef struct StoreHistory {
        uint64_t id;         /* grows with each row */
        const char *name;    /* "exec", "files.write" */
        const char *params;  /* JSON */
        const char *result;  /* JSON; NULL while it goes on, or where it was cut short by a crash */
        uint64_t started_ms; /* since the epoch */
        uint64_t ended_ms;   /* 0 while it goes on */
} StoreHistory;

/* A row for what begins now. -E2BIG (params). */
int store_history_begin(Store *store, const char *name, const char *params, uint64_t *ret_id,
                        Error *reterr);
/* ... and its end at that time (since the epoch), the first of which stands. A row that has made
 * room is no error. -E2BIG (result: the row then goes on; end it with a shorter one). */
int store_history_end(Store *store, uint64_t id, const char *result, uint64_t ended_ms,
                      Error *reterr);
/* Both at once, for what has ended; the row's id is not looked at. It is safe from the end of this
 * process, and in the database soon: store_history_flush(). -E2BIG */
int store_history_put(Store *store, const StoreHistory *row, Error *reterr);
/* Moves what was added into the database, as any other call about the history does; legal where
 * there is nothing. What fails is tried again by the next. */
int store_history_flush(Store *store, Error *reterr);
/* fn is called with the first row that is to be moved, or at once where there are some; none of the
 * store's functions may be called by it. NULL: nobody is told any more. */
void store_on_pending(Store *store, void (*fn)(void *data), void *data);
typedef int (*StoreHistoryFn)(void *data, const StoreHistory *row);
/* Newest first; only rows older than the id before (0: all), of that name (NULL: any), limit at
 * most. */
int store_history_list(Store *store, uint64_t before, const char *name, uint64_t limit,
                       StoreHistoryFn fn, void *data, Error *reterr);

/* --- audit: denials, grants, kills, limits --- */

typedef struct StoreAudit {
        uint64_t id;
        uint64_t at_ms;     /* since the epoch */
        const char *kind;   /* "denial", "grant", "guard", "kill", "limit", "tool" */
        const char *detail; /* JSON */
} StoreAudit;

/* at_ms is since the epoch. -E2BIG (detail) */
int store_audit_add(Store *store, const char *kind, const char *detail, uint64_t at_ms,
                    Error *reterr);
/* store_history_put(), and store_audit_add() of when that ended, both into the database: both or
 * neither. */
int store_audited_add(Store *store, const StoreHistory *row, const char *kind, const char *detail,
                      Error *reterr);
typedef int (*StoreAuditFn)(void *data, const StoreAudit *row);
/* As store_history_list(). */
int store_audit_list(Store *store, uint64_t before, const char *kind, uint64_t limit,
                     StoreAuditFn fn, void *data, Error *reterr);
