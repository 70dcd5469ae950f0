/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up the SQLite library, and translates its errors. */
#include "store/store-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- set up --- */

/* Replaces SQLite's own xFullPathname, which calls lstat(2) for each part of a path and follows
 * links (os_unix.c, unixFullPathname). It would turn /proc/self/fd/N into a path that the keeper
 * may not walk, and that another process may rename. store_open() gives a path that is absolute and
 * stays valid. */
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

        /* Counters, preallocated pages and preallocated slots would cost memory for the whole life
         * of a keeper. */
        rc = rc ? rc : sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
        rc = rc ? rc : sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
        rc = rc ? rc : sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
        rc = rc ? rc : sqlite3_config(SQLITE_CONFIG_MMAP_SIZE, (sqlite3_int64)0, (sqlite3_int64)0);
        /* A path is never a URI, however the library was built. */
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
                /* The first use reads /dev/urandom, which the keeper cannot open later. */
                sqlite3_randomness(sizeof(byte), &byte);
        }
        *ret_vfs = vfs.zName;
        return 0;
}

/* --- errors --- */

#define CURE_DISK "Free space on that file system or in your quota, and try again."
/* SQLite would take the log of another file for the copy's own. */
#define CURE_DATA                                                                                  \
        "Remove the session and create it again. Or restore the file from a copy, after you have " \
        "removed the files beside it that end in -wal and -shm.\nTo print what can still be "      \
        "read: sqlite3 FILE .recover"

/* SQLite's codes: the extended code is looked up first, then the primary one. */
static const struct {
        int code;
        ErrorKind kind;
        int errnum; /* used if the system gave none */
        const char *text;
        const char *cure;
} results[] = {
        { SQLITE_CORRUPT, ERROR_DATA, 0, "the database is damaged", CURE_DATA },
        { SQLITE_NOTADB, ERROR_DATA, 0, "the file is not a database", CURE_DATA },
        /* holt writes nothing of that length. */
        { SQLITE_TOOBIG, ERROR_DATA, 0, "the database is damaged", CURE_DATA },
        /* holt's statements are correct, so the tables or columns must differ from those that holt
         * made. */
        { SQLITE_ERROR, ERROR_DATA, 0, "the database does not have the form that holt gives it",
          CURE_DATA },
        { SQLITE_CONSTRAINT, ERROR_DATA, 0,
          "the database does not have the form that holt gives it", CURE_DATA },
        { SQLITE_MISMATCH, ERROR_DATA, 0, "the database does not have the form that holt gives it",
          CURE_DATA },
        { SQLITE_FULL, ERROR_LIMIT, ENOSPC, "the disk is full", CURE_DISK },
        { SQLITE_BUSY, ERROR_BUSY, EBUSY, "another process is writing it",
          "Try again once it has finished." },
        { SQLITE_LOCKED, ERROR_BUSY, EBUSY, "another process is writing it",
          "Try again once it has finished." },
        { SQLITE_PROTOCOL, ERROR_BUSY, EBUSY, "other processes are opening it",
          "Try again once they have finished." },
        { SQLITE_IOERR_SHMSIZE, ERROR_LIMIT, ENOSPC, "the disk is full", CURE_DISK },
        { SQLITE_READONLY_DBMOVED, ERROR_MISSING, ENOENT, "the file was removed",
          "Stop the session, and start it again." },
        { SQLITE_READONLY, ERROR_SETUP, EACCES, "it is read-only",
          "Let its owner write it and its directory." },
        { SQLITE_PERM, ERROR_SETUP, EACCES, "permission to open it is denied", "" },
        { SQLITE_AUTH, ERROR_SETUP, EACCES, "permission to open it is denied", "" },
        { SQLITE_CANTOPEN, ERROR_SETUP, EIO, "it cannot be opened",
          "Its directory must exist and be writable." },
        { SQLITE_IOERR, ERROR_SETUP, EIO, "the disk reported an error",
          "Read the kernel's messages about the disk: dmesg" },
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

/* Returns the errno of a failed read, write or sync: the log's, or else the file's. After a failed
 * commit, sqlite3_system_errno() does not have it. */
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
                return error_set(reterr, ERROR_SETUP, errnum, "cannot %s in %s: SQLite reports: %s",
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
