/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the history that are on the disk, but not in the database yet.
 *
 * Theory of operation. A transaction of SQLite takes a tenth of the time of a short command, and
 * the command's reply would wait for it. So a row is appended to NAME-pending by a single write,
 * and the database later takes many rows at once (store_history_flush()). The row survives the end
 * of this process as it would in the database.
 *
 * A record has the id that its row will have. If the database already has that id, a process moved
 * the row and ended before it could empty the file. A record that is truncated, damaged or out of
 * sequence ends the valid part of the file: nobody got a reply for the records after it.
 *
 * The file appears with a process's first row and exists until the process ends. If its rows could
 * not be moved, it stays. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "store/store-internal.h"

enum {
        ROWS_MAX = 64, /* takes a millisecond or two to write */
        BYTES_MAX = 256 << 10,
        RECORD_TEXTS_MAX = 3 * (STORE_TEXT_MAX + 1),
};

/* The header of a record. Its three texts follow, each with a NUL. */
typedef struct Record {
        uint64_t check; /* checksum of the rest of the record */
        uint64_t id;
        uint64_t started_ms, ended_ms;
        uint32_t name, params, result; /* bytes, including the NUL; 0 if the text is missing */
        uint32_t padding;
} Record;

/* FNV-1a. */
static uint64_t pending_checksum(const char *record, size_t size) {
        uint64_t hash = 0xcbf29ce484222325;

        for (size_t i = sizeof(uint64_t); i < size; i++)
                hash = (hash ^ (uint8_t)record[i]) * 0x100000001b3;
        return hash;
}

static size_t record_size(const Record *record) {
        return sizeof(*record) + (size_t)record->name + record->params + record->result;
}

static bool pending_is_text(const char *text, uint32_t size) {
        return size > 0 && strnlen(text, size) == size - 1;
}

/* Reads the record at text, which has length bytes. Returns the record's size, or 0 if it is not a
 * valid record. */
static size_t read_record(const char *text, size_t length, StoreHistory *ret) {
        const char *name = text + sizeof(Record), *params, *result;
        Record record;
        size_t size;

        if (length < sizeof(record))
                return 0;
        memcpy(&record, text, sizeof(record));
        size = record_size(&record);
        if (size > length || pending_checksum(text, size) != record.check)
                return 0;
        params = name + record.name;
        result = params + record.params;
        if (!pending_is_text(name, record.name) || !pending_is_text(params, record.params) ||
            (record.result > 0 && !pending_is_text(result, record.result)))
                return 0;
        *ret = (StoreHistory){ .id = record.id,
                               .name = name,
                               .params = params,
                               .result = record.result > 0 ? result : NULL,
                               .started_ms = record.started_ms,
                               .ended_ms = record.ended_ms };
        return size;
}

size_t pending_read(const Pending *pending, size_t at, StoreHistory *ret) {
        size_t size = read_record(pending->text + at, pending->length - at, ret);

        assert(size > 0); /* pending_open() and pending_add() accept only valid records */
        return size;
}

/* --- adding --- */

static uint32_t text_size(const char *text) {
        return text ? (uint32_t)strlen(text) + 1 : 0;
}

static void write_record(char *at, const Record *record, const StoreHistory *row) {
        char *text = at + sizeof(*record);
        uint64_t check;

        memcpy(at, record, sizeof(*record));
        memcpy(text, row->name, record->name);
        memcpy(text + record->name, row->params, record->params);
        if (row->result)
                memcpy(text + record->name + record->params, row->result, record->result);
        check = pending_checksum(at, record_size(record));
        memcpy(at, &check, sizeof(check));
}

static int pending_open_file(Pending *pending, int flags) {
        pending->fd = openat(pending->dir_fd, pending->name,
                             flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        return pending->fd < 0 ? -errno : 0;
}

bool pending_is_full(const Pending *pending) {
        return pending->rows >= ROWS_MAX || pending->length >= BYTES_MAX;
}

int pending_add(Pending *pending, const StoreHistory *row) {
        const Record record = { .id = row->id,
                                .started_ms = row->started_ms,
                                .ended_ms = row->ended_ms,
                                .name = text_size(row->name),
                                .params = text_size(row->params),
                                .result = text_size(row->result) };
        const size_t size = record_size(&record);
        int r = pending->fd < 0 ? pending_open_file(pending, O_RDWR | O_CREAT | O_EXCL) : 0;
        char *grown;

        if (r < 0)
                return r;
        grown = realloc(pending->text, pending->length + size);
        if (!grown)
                return -ENOMEM;
        pending->text = grown;
        write_record(grown + pending->length, &record, row);
        /* The next row overwrites a truncated one. */
        if (pwrite(pending->fd, grown + pending->length, size, (off_t)pending->length) !=
            (ssize_t)size)
                return -ENOSPC;
        pending->length += size;
        if (pending->rows++ == 0 && pending->fn)
                pending->fn(pending->data);
        return 0;
}

void pending_empty(Pending *pending) {
        free(pending->text);
        pending->text = NULL;
        pending->length = pending->rows = 0;
        if (pending->fd >= 0)
                (void)!ftruncate(pending->fd, 0);
}

/* --- opening and closing --- */

/* Keeps the valid records, as long as their ids continue those of the database. */
static void keep_whole(Pending *pending, uint64_t *last) {
        uint64_t previous = 0;
        size_t at = 0, size;
        StoreHistory row;

        while ((size = read_record(pending->text + at, pending->length - at, &row)) > 0) {
                if (row.id != previous + 1 && (at > 0 || row.id > *last + 1))
                        break;
                previous = row.id;
                at += size;
                pending->rows++;
        }
        pending->length = at;
        if (previous > *last)
                *last = previous;
}

static int read_file(Store *store, Error *reterr) {
        Pending *pending = &store->pending;
        struct stat st;
        ssize_t n;

        if (fstat(pending->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                (void)error_set(reterr, ERROR_DATA, 0, "%s-pending is not a regular file",
                                store->path);
                return error_cure(reterr, -EINVAL, "Move it away: holt makes a new one.");
        }
        /* No process writes more than this. */
        if (st.st_size > BYTES_MAX + (off_t)sizeof(Record) + RECORD_TEXTS_MAX)
                st.st_size = BYTES_MAX + (off_t)sizeof(Record) + RECORD_TEXTS_MAX;
        pending->text = malloc((size_t)st.st_size + 1);
        if (!pending->text)
                return error_oom(reterr);
        n = pread(pending->fd, pending->text, (size_t)st.st_size, 0);
        if (n < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot read %s-pending", store->path);
        pending->length = (size_t)n;
        return 0;
}

int pending_open(Store *store, Error *reterr) {
        Pending *pending = &store->pending;
        int r;

        pending->dir_fd = store->dir_fd;
        pending->name = str_format("%s-pending", store->name);
        if (!pending->name)
                return error_oom(reterr);
        r = pending_open_file(pending, store->mode == STORE_READ ? O_RDONLY : O_RDWR);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return error_set(reterr, ERROR_SETUP, -r, "cannot open %s-pending", store->path);
        r = read_file(store, reterr);
        if (r == 0)
                keep_whole(pending, &store->history_last);
        else
                pending->fd = fd_close(pending->fd); /* its rows are kept */
        return r;
}

void pending_close(Store *store) {
        Pending *pending = &store->pending;

        if (store->mode != STORE_READ && pending->fd >= 0 && pending->length == 0)
                (void)unlinkat(pending->dir_fd, pending->name, 0);
        pending->fd = fd_close(pending->fd);
        free(pending->text);
        free(pending->name);
}
