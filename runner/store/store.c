/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. SQLite gets one path, /proc/self/fd/N/NAME. N is an fd of the directory,
 * which the store owns. So all later lookups go through that fd: the log and its index beside the
 * file, and the directory to be synced. The directories above need not be searchable, and may be
 * renamed.
 *
 * A file is refused before SQLite reads more than its header, because reading may cause writing.
 * Nothing is checkpointed into the file until the last step of opening has accepted it.
 *
 * Damage inside the file is reported when it is found: a check of all pages would take seconds at
 * the largest size. Opening reads the header, compares its number of pages with the file's size,
 * and reads the schema. */
#include "store/store-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/private.h"

enum {
        BUSY_MS = 5000,
        HEADER_SIZE = 100, /* https://sqlite.org/fileformat2.html#the_database_header */
        PAGE_SIZE_AT = 16, /* two bytes; 1 is 65536 */
        CHANGES_AT = 24,
        PAGES_AT = 28,
        VERSION_AT = 60,
        APPLICATION_AT = 68,
        PAGES_VALID_AT = 92, /* value of CHANGES when PAGES was written */
};

/* --- statements, meta and totals --- */

enum { META_SET, META_GET, TOTALS_GET, USE_LOG, SELF_MAX };

static const Statement statements[] = {
        [META_SET] = { "write a setting of the session",
                       "INSERT INTO meta (name, value) VALUES (?1, ?2)"
                       " ON CONFLICT (name) DO UPDATE SET value = excluded.value" },
        [META_GET] = { "read a setting of the session", "SELECT value FROM meta WHERE name = ?1" },
        [TOTALS_GET] = { "read the totals", "SELECT count, bytes FROM totals WHERE name = ?1" },
        [USE_LOG] = { "set up the log", "PRAGMA journal_mode = WAL" },
};
static_assert(ELEMENTSOF(statements) == SELF_MAX, "every statement is in the table");

static const StatementTable self = { STORE_SELF, statements, SELF_MAX };

int store_meta_set(Store *store, const char *name, const char *value, Error *reterr) {
        if (strlen(name) > STORE_KEY_MAX || strlen(value) > STORE_VALUE_MAX)
                return store_limit(reterr, EINVAL, "", "%s of a session is too long", name);
        return statement_run(store, &self, META_SET, VALUES(TEXT(name), TEXT(value)), reterr);
}

int store_meta_get(Store *store, const char *name, char **ret, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        const char *value = NULL;
        char *copy = NULL;
        int r = query_first(store, &self, META_GET, VALUES(TEXT(name)), &query, reterr);

        if (r > 0)
                r = query_text(&query, 0, &value, reterr);
        if (r < 0)
                return r;
        if (value) {
                copy = strdup(value);
                if (!copy)
                        return error_oom(reterr);
        }
        *ret = copy;
        return 0;
}

int store_size(Store *store, StoreModule module, StoreSize *ret, Error *reterr) {
        static const char *const names[STORE_MODULE_MAX] = {
                [STORE_KV] = "kv",
                [STORE_HISTORY] = "history",
                [STORE_AUDIT] = "audit",
        };
        _cleanup_(query_end) Query query = { 0 };
        int r = query_first(store, &self, TOTALS_GET, VALUES(TEXT(names[module])), &query, reterr);

        if (r < 0)
                return r;
        if (r == 0)
                return store_damaged(store, reterr, "does not have the total of %s", names[module]);
        *ret = (StoreSize){ query_number(&query, 0), query_number(&query, 1) };
        return 0;
}

/* --- caps --- */

int store_limit(Error *reterr, int errnum, const char *cure, const char *fmt, ...) {
        _cleanup_free_ char *text = NULL;
        va_list args;

        va_start(args, fmt);
        text = str_vformat(fmt, args);
        va_end(args);
        if (!text)
                return error_oom(reterr);
        /* No errno is added: "No space left on device" would mislead here. */
        (void)error_set(reterr, ERROR_LIMIT, 0, "%s", text);
        return error_cure(reterr, -errnum, "%s", cure);
}

int store_check_text(const char *text, const char *what, Error *reterr) {
        if (strlen(text) <= STORE_TEXT_MAX)
                return 0;
        return store_limit(reterr, E2BIG, "Write a shorter text.", "%s is longer than %d bytes",
                           what, STORE_TEXT_MAX);
}

int store_make_room(Store *store, const StatementTable *table, size_t which, uint64_t newest,
                    const uint64_t *over, Error *reterr) {
        const StoreSize *cap = &store->caps[table->module];

        for (;;) {
                StoreSize size = { 0 };
                int r = store_size(store, table->module, &size, reterr);

                if (r < 0 || (size.rows <= cap->rows && size.bytes <= cap->bytes))
                        return r;
                const Value values[] = { NUMBER(newest),
                                         NUMBER(size.rows < 100 ? 1 : size.rows / 100),
                                         NUMBER(over ? *over : 0) };
                r = statement_run(store, table, which, values, over ? 3 : 2, reterr);
                if (r < 0)
                        return r;
                if (sqlite3_changes64(store->db) == 0)
                        return store_limit(reterr, ENOSPC,
                                           "Wait until some of the calls have ended.",
                                           "%s is full, and all its calls still run", store->path);
        }
}

/* --- opening, step by step --- */

static int store_open_directory(Store *store, Error *reterr) {
        char *slash = strrchr(store->path, '/');
        const char *directory = slash == store->path ? "/" : slash ? store->path : ".";
        char real[PATH_MAX];
        int r;

        store->name = strdup(slash ? slash + 1 : store->path);
        if (!store->name)
                return error_oom(reterr);
        if (slash)
                *slash = '\0';
        store->dir_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (store->dir_fd < 0)
                return error_set(reterr, errno == ENOENT ? ERROR_MISSING : ERROR_SETUP, errno,
                                 "cannot open the directory %s", directory);
        /* People need the real path, not "/proc/self/fd/7". */
        r = path_of_fd(store->dir_fd, real);
        if (r < 0)
                return error_set(reterr, ERROR_SETUP, -r, "cannot read /proc/self/fd");
        free(store->path);
        store->path = str_format("%s/%s", streq(real, "/") ? "" : real, store->name);
        if (!store->path)
                return error_oom(reterr);
        return private_check(store->dir_fd, "", real, reterr);
}

/* Checks the files beside the database. Nobody else can write in their directory, so they cannot
 * change after the check. */
static int check_private(const Store *store, Error *reterr) {
        static const char *const suffixes[] = { "", "-journal", "-wal", "-shm", "-pending" };
        int r = 0;

        for (size_t i = 0; (r == 0 || r == -ENOENT) && i < ELEMENTSOF(suffixes); i++) {
                _cleanup_free_ char *name = str_format("%s%s", store->name, suffixes[i]);
                _cleanup_free_ char *path = str_format("%s%s", store->path, suffixes[i]);

                r = name && path ? private_check(store->dir_fd, name, path, reterr)
                                 : error_oom(reterr);
        }
        return r == -ENOENT ? 0 : r;
}

/* Makes the file itself, because SQLite would use the umask. The files beside it get the same mode
 * from SQLite. */
static int store_make_file(Store *store, Error *reterr) {
        int fd = openat(store->dir_fd, store->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (fd < 0)
                return error_set(reterr, errno == EEXIST ? ERROR_EXISTS : ERROR_SETUP, errno,
                                 "cannot make %s", store->path);
        store->made = true;
        (void)fd_close(fd);
        return 0;
}

static int store_refuse_file(const Store *store, int errnum, Error *reterr) {
        int r = error_set(reterr, errnum == ENOENT ? ERROR_MISSING : ERROR_SETUP, errnum,
                          "cannot open %s", store->path);

        if (errnum != ENOENT)
                return r;
        return error_cure(
                reterr, r,
                "The session cannot work without it. Restore the file from a copy. Or save what "
                "you need from that directory, and remove the session with holt rm.");
}

static int find_file(Store *store, Error *reterr) {
        struct stat st;

        if (store->mode == STORE_CREATE)
                return store_make_file(store, reterr);
        /* Opening a FIFO would wait. */
        if (fstatat(store->dir_fd, store->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return store_refuse_file(store, errno, reterr);
        if (!S_ISREG(st.st_mode))
                return store_damaged(store, reterr, "is not a regular file");
        return check_private(store, reterr);
}

static int open_database(Store *store, Error *reterr) {
        const int flags = store->mode == STORE_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
        _cleanup_free_ char *path = str_format("/proc/self/fd/%d/%s", store->dir_fd, store->name);
        const char *vfs;
        int r, rc;

        if (!path)
                return error_oom(reterr);
        r = store_library(&vfs, reterr);
        if (r < 0)
                return r;
        rc = sqlite3_open_v2(path, &store->db, flags, vfs);
        if (rc != SQLITE_OK)
                return store_error(store, rc, "open the database", reterr);
        (void)sqlite3_extended_result_codes(store->db, 1);
        (void)sqlite3_busy_timeout(store->db, BUSY_MS);
        /* SQLite silently opens a file read-only if it cannot write it. */
        if (store->mode != STORE_READ && sqlite3_db_readonly(store->db, "main") != 0)
                return store_error(store, SQLITE_READONLY, "open the database", reterr);
        return 0;
}

static uint32_t store_number(const uint8_t *at) {
        return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Returns whether the log has contents. They are newer than the file's header. */
static bool has_log(const Store *store) {
        char name[NAME_MAX + 1];
        struct stat st;

        if (snprintf(name, sizeof(name), "%s-wal", store->name) >= (int)sizeof(name))
                return false;
        return fstatat(store->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0;
}

static int store_check_size(Store *store, const uint8_t *header, uint64_t size, Error *reterr) {
        uint64_t page = (uint64_t)header[PAGE_SIZE_AT] << 8 | header[PAGE_SIZE_AT + 1];

        page = page == 1 ? 65536 : page;
        if (page < 512 || (page & (page - 1)) != 0)
                return store_damaged(store, reterr, "is damaged: its page size is invalid");
        if (store_number(header + CHANGES_AT) != store_number(header + PAGES_VALID_AT) ||
            has_log(store))
                return 0;
        if (size % page != 0 || size / page < store_number(header + PAGES_AT))
                return store_damaged(store, reterr, "is truncated");
        return 0;
}

/* Uses SQLite's own fd. Closing another fd of the same file would release this process's locks on
 * it (fcntl(2), POSIX record locks). */
static int check_header(Store *store, Error *reterr) {
        static const char magic[16] = "SQLite format 3";
        const int newest = store_migrations[store_migrations_count - 1].version;
        uint8_t header[HEADER_SIZE] = { 0 };
        sqlite3_file *file = NULL;
        sqlite3_int64 size = 0;
        int r, rc;

        if (store->made)
                return 0;
        rc = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
        rc = rc ? rc : file->pMethods->xFileSize(file, &size);
        rc = rc ? rc : file->pMethods->xRead(file, header, sizeof(header), 0);
        if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
                return store_error(store, rc, "read the header", reterr);
        if (size == 0)
                return store_damaged(store, reterr, "is empty");
        if (memcmp(header, magic, (size_t)size < sizeof(magic) ? (size_t)size : sizeof(magic)) != 0)
                return store_damaged(store, reterr, "is not a database");
        if (size < HEADER_SIZE)
                return store_damaged(store, reterr, "is truncated");
        r = store_check_version(store, store_number(header + APPLICATION_AT),
                                store_number(header + VERSION_AT), newest, reterr);
        return r < 0 ? r : store_check_size(store, header, (uint64_t)size, reterr);
}

/* The file belongs to the caller, but may be damaged, or come from an untrusted source. */
static const struct {
        int option, value;
} options[] = {
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },
        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
        { SQLITE_DBCONFIG_ENABLE_FKEY, 1 },
        { SQLITE_DBCONFIG_ENABLE_VIEW, 0 },
        { SQLITE_DBCONFIG_DQS_DDL, 0 },
        { SQLITE_DBCONFIG_DQS_DML, 0 },
        /* no checkpoint until the file is accepted */
        { SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1 },
};

static const struct {
        int limit, value;
} limits[] = {
        { SQLITE_LIMIT_LENGTH, STORE_VALUE_MAX + (64 << 10) }, /* bytes of a row */
        { SQLITE_LIMIT_ATTACHED, 0 },
        { SQLITE_LIMIT_WORKER_THREADS, 0 },
};

/* SQLite moves the log into the file when it has 1 MiB, during a write. An idle log takes no more
 * than that on the disk. The cache is the keeper's memory. */
static const char pragmas[] = "PRAGMA cell_size_check = ON;"
                              "PRAGMA synchronous = NORMAL;"
                              "PRAGMA cache_size = -256;"
                              "PRAGMA mmap_size = 0;"
                              "PRAGMA temp_store = MEMORY;"
                              "PRAGMA secure_delete = FAST;"
                              "PRAGMA wal_autocheckpoint = 256;"
                              "PRAGMA journal_size_limit = 1048576;";

/* A new database that is interrupted is removed and never repaired, so until it is complete a
 * journal in memory is enough. That saves most waits for the disk. Freed pages are used again,
 * because moving other pages there would make each write slower. */
static const char new_pragmas[] = "PRAGMA auto_vacuum = NONE;"
                                  "PRAGMA journal_mode = MEMORY;";

static int store_configure(Store *store, Error *reterr) {
        int rc = SQLITE_OK;

        for (size_t i = 0; i < ELEMENTSOF(options) && rc == SQLITE_OK; i++)
                rc = sqlite3_db_config(store->db, options[i].option, options[i].value, NULL);
        for (size_t i = 0; i < ELEMENTSOF(limits); i++)
                (void)sqlite3_limit(store->db, limits[i].limit, limits[i].value);
        rc = rc ? rc : sqlite3_exec(store->db, pragmas, NULL, NULL, NULL);
        if (store->made)
                rc = rc ? rc : sqlite3_exec(store->db, new_pragmas, NULL, NULL, NULL);
        return rc == SQLITE_OK ? 0 : store_error(store, rc, "open the database", reterr);
}

static int store_migrate_to(Store *store, Error *reterr) {
        return store_migrate(store, store_migrations, store_migrations_count, reterr);
}

/* Turns on WAL, which the file then keeps. If processes cannot share memory through a file there,
 * SQLite reports no error, and returns the old mode instead. */
static int use_log(Store *store, Error *reterr) {
        _cleanup_(query_end) Query query = { 0 };
        const char *mode = NULL;
        int r;

        if (store->mode == STORE_READ)
                return 0;
        r = query_first(store, &self, USE_LOG, NO_VALUES, &query, reterr);
        if (r > 0)
                r = query_text(&query, 0, &mode, reterr);
        if (r < 0 || (mode && streq(mode, "wal")))
                return r;
        r = error_set(reterr, ERROR_SETUP, EOPNOTSUPP, "cannot make a log beside %s", store->path);
        return error_cure(reterr, r, "Keep sessions on a local file system: see XDG_DATA_HOME.");
}

static int open_pending(Store *store, Error *reterr) {
        int r = pending_open(store, reterr);

        if (r < 0 || store->mode == STORE_READ)
                return r;
        r = store_history_flush(store, reterr);
        return r == -ENOSPC || r == -EDQUOT ? 0 : r; /* the rows stay pending until there is room */
}

static int accept_file(Store *store, Error *reterr) {
        int rc = sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);

        return rc == SQLITE_OK ? 0 : store_error(store, rc, "open the database", reterr);
}

/* The order matters. Steps before check_header() write nothing to an existing file. Steps before
 * store_migrate_to() write nothing to a file that SQLite finds damaged. */
static int (*const open_steps[])(Store *store, Error *reterr) = {
        store_open_directory, find_file,        open_database, check_header,
        store_configure,      store_migrate_to, use_log,       store_check_schema,
        store_history_start,  open_pending,     accept_file,
};

static Store *store_new(const char *path, StoreMode mode) {
        Store *store = calloc(1, sizeof(*store));

        if (!store)
                return NULL;
        *store = (Store){
                .mode = mode,
                .dir_fd = FD_NONE,
                .pending = { .fd = FD_NONE },
                .path = strdup(path),
                .caps = { [STORE_KV] = { STORE_KV_MAX, STORE_KV_BYTES_MAX },
                          [STORE_HISTORY] = { STORE_HISTORY_MAX, STORE_HISTORY_BYTES_MAX },
                          [STORE_AUDIT] = { STORE_AUDIT_MAX, STORE_AUDIT_BYTES_MAX } },
        };
        return store->path ? store : store_free(store);
}

int store_open(const char *path, StoreMode mode, Store **ret, Error *reterr) {
        _cleanup_(store_freep) Store *store = store_new(path, mode);

        if (!store)
                return error_oom(reterr);
        for (size_t i = 0; i < ELEMENTSOF(open_steps); i++) {
                int r = open_steps[i](store, reterr);

                if (r < 0)
                        return r;
        }
        store->made = false;
        *ret = TAKE_PTR(store);
        return 0;
}

void store_on_pending(Store *store, void (*fn)(void *data), void *data) {
        store->pending.fn = fn;
        store->pending.data = data;
        if (fn && store->pending.rows > 0)
                fn(data);
}

void store_rest(Store *store) {
        (void)sqlite3_db_release_memory(store->db);
}

/* Removes an incomplete database, which would be in the way of the next try. */
static void store_unmake(const Store *store) {
        static const char *const suffixes[] = { "", "-journal", "-wal", "-shm" };
        char name[NAME_MAX + 1];

        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
                (void)snprintf(name, sizeof(name), "%s%s", store->name, suffixes[i]);
                (void)unlinkat(store->dir_fd, name, 0);
        }
}

Store *store_free(Store *store) {
        Error ignored;

        if (!store)
                return NULL;
        /* The next process takes the rows that the database does not take now. */
        if (store->mode != STORE_READ)
                (void)store_history_flush(store, &ignored);
        pending_close(store);
        for (size_t module = 0; module < STORE_MODULE_MAX; module++)
                for (size_t i = 0; i < STORE_STATEMENTS_MAX; i++)
                        (void)sqlite3_finalize(store->statements[module][i]);
        (void)sqlite3_close(store->db);
        if (store->made)
                store_unmake(store);
        (void)fd_close(store->dir_fd);
        free(store->name);
        free(store->path);
        free(store);
        return NULL;
}
