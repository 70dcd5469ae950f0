/* SPDX-License-Identifier: Apache-2.0 */
/* The library: how it is set up, and what its errors mean. */
#include "store/store-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- set up --- */

/* SQLite's own makes an absolute path by lstat(2) of each part of it and follows links as it goes
 * (os_unix.c, unixFullPathname): from /proc/self/fd/N it would get to a path that the keeper may
 * not walk, and that another may rename. store_open() gives one that is absolute and stays true. */
static int sqlite_file_full_path(sqlite3_vfs *vfs, const char *name, int size, char *out) {
        size_t length = strlen(name);

        (void)vfs;
        if (length >= (size_t)size)
                return SQLITE_CANTOPEN;
        memcpy(out, name, length + 1);
        return SQLITE_OK;
}

static int sqlite_file_configure(void) {
        int rc = sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);

        /* Each costs memory that a keeper has for as long as its session lives: counters, pages and
         * slots that are set aside at the start. */
        rc = rc ? rc : sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
        rc = rc ? rc : sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
        rc = rc ? rc : sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
        rc = rc ? rc : sqlite3_config(SQLITE_CONFIG_MMAP_SIZE, (sqlite3_int64)0, (sqlite3_int64)0);
        /* A path is never a URI, whatever the library was built with. */
        rc = rc ? rc : sqlite3_config(SQLITE_CONFIG_URI, 0);
        return rc ? rc : sqlite3_initialize();
}

int store_library(const char **ret_vfs, Error *reterr) {
        static sqlite3_vfs vfs;
        const sqlite3_vfs *found;
        int rc = vfs.zName ? SQLITE_OK : sqlite_file_configure();

        if (rc == SQLITE_NOMEM)
                return error_oom(reterr);
        found = rc == SQLITE_OK ? sqlite3_vfs_find("unix") : NULL;
        if (!found)
                return error_set(reterr, ERROR_SETUP, 0, "SQLite cannot be set up: %s",
                                 sqlite3_errstr(rc));
        if (!vfs.zName) {
                char byte;

                vfs = *found;
                vfs.pNext = NULL;
                vfs.zName = "holt";
                vfs.xFullPathname = sqlite_file_full_path;
                (void)sqlite3_vfs_register(&vfs, 0);
                /* It reads /dev/urandom the first time, which the keeper later may not open. */
                sqlite3_randomness(sizeof(byte), &byte);
        }
        *ret_vfs = vfs.zName;
        return 0;
}

/* --- errors --- */

#define CURE_DISK "Make room on that file system, or in the quota on it, and try again."
/* A log that belongs to another file would be taken for the copy's. */
#define CURE_DATA                                                                                  \
        "Remove the session and make it anew; or put a copy of the file back in its place, once "  \
        "what lies beside it with -wal and -shm at its end is gone.\n"                             \
        "What can still be read of it is printed by: sqlite3 FILE .recover"

/* Looked up by the extended code first, then by the primary one. */
static const struct {
        int code;
        ErrorKind kind;
        int errnum; /* where the system has said none */
        const char *text;
        const char *cure;
} results[] = {
        { SQLITE_CORRUPT, ERROR_DATA, 0, "the database is damaged", CURE_DATA },
        { SQLITE_NOTADB, ERROR_DATA, 0, "it is no database", CURE_DATA },
        /* Longer than anything that we write. */
        { SQLITE_TOOBIG, ERROR_DATA, 0, "the database is damaged", CURE_DATA },
        /* No statement of ours is wrong by itself: tables or columns are not those we made. */
        { SQLITE_ERROR, ERROR_DATA, 0, "the database is not as holt made it", CURE_DATA },
        { SQLITE_CONSTRAINT, ERROR_DATA, 0, "the database is not as holt made it", CURE_DATA },
        { SQLITE_MISMATCH, ERROR_DATA, 0, "the database is not as holt made it", CURE_DATA },
        { SQLITE_FULL, ERROR_LIMIT, ENOSPC, "the disk is full", CURE_DISK },
        { SQLITE_BUSY, ERROR_BUSY, EBUSY, "another process is writing it",
          "Try again once it has finished." },
        { SQLITE_LOCKED, ERROR_BUSY, EBUSY, "another process is writing it",
          "Try again once it has finished." },
        { SQLITE_PROTOCOL, ERROR_BUSY, EBUSY, "other processes are opening it",
          "Try again once they have finished." },
        { SQLITE_IOERR_SHMSIZE, ERROR_LIMIT, ENOSPC, "the disk is full", CURE_DISK },
        { SQLITE_READONLY_DBMOVED, ERROR_MISSING, ENOENT, "the file has been removed",
          "End the session, and start it again." },
        { SQLITE_READONLY, ERROR_SETUP, EACCES, "it may only be read",
          "Give its owner the right to write it and its directory." },
        { SQLITE_PERM, ERROR_SETUP, EACCES, "it may not be opened", "" },
        { SQLITE_AUTH, ERROR_SETUP, EACCES, "it may not be opened", "" },
        { SQLITE_CANTOPEN, ERROR_SETUP, EIO, "it cannot be opened",
          "Its directory has to be there, and writable." },
        { SQLITE_IOERR, ERROR_SETUP, EIO, "the disk does not work as it should",
          "Look at what the kernel says of the disk: dmesg" },
};

static size_t result_row(int rc) {
        for (size_t i = 0; i < ELEMENTSOF(results); i++)
                if (results[i].code == rc)
                        return i;
        return ELEMENTSOF(results);
}

static bool is_no_memory(int rc) {
        return (rc & 0xff) == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM;
}

/* What the system has said of a failed read, write or sync: the log's, or else the file's.
 * sqlite3_system_errno() does not have it where a commit has failed. */
static int file_errno(const Store *store) {
        static const int files[] = { SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER };
        int errnum = 0;

        for (size_t i = 0; i < ELEMENTSOF(files) && errnum == 0; i++) {
                sqlite3_file *file = NULL;

                if (sqlite3_file_control(store->db, "main", files[i], &file) == SQLITE_OK && file &&
                    file->pMethods)
                        (void)file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &errnum);
        }
        return errnum;
}

static int system_errno(const Store *store, int rc) {
        if (!store->db)
                return 0;
        switch (rc & 0xff) {
        case SQLITE_IOERR:
                return file_errno(store);
        case SQLITE_CANTOPEN:
                return sqlite3_system_errno(store->db);
        default:
                return 0;
        }
}

int store_error(const Store *store, int rc, const char *what, Error *reterr) {
        int errnum = system_errno(store, rc), r;
        size_t i;

        if (is_no_memory(rc))
                return error_oom(reterr);
        if (errnum == ENOSPC || errnum == EDQUOT)
                rc = SQLITE_FULL;
        i = result_row(rc);
        if (i == ELEMENTSOF(results))
                i = result_row(rc & 0xff);
        if (i == ELEMENTSOF(results))
                return error_set(reterr, ERROR_SETUP, errnum, "cannot %s in %s: SQLite says: %s",
                                 what, store->path, sqlite3_errstr(rc));
        r = error_set(reterr, results[i].kind, errnum > 0 ? errnum : results[i].errnum,
                      "cannot %s in %s: %s", what, store->path, results[i].text);
        return error_cure(reterr, r, "%s", results[i].cure);
}

int store_damaged(const Store *store, Error *reterr, const char *fmt, ...) {
        _cleanup_free_ char *text = NULL;
        va_list args;

        va_start(args, fmt);
        text = str_vformat(fmt, args);
        va_end(args);
        if (!text)
                return error_oom(reterr);
        return error_cure(reterr, error_set(reterr, ERROR_DATA, 0, "%s %s", store->path, text),
                          "%s", CURE_DATA);
}
