/* SPDX-License-Identifier: Apache-2.0 */
/* mount.*: the files below /mnt/files, as a store that has files and no directories of its own. It
 * is the same view as that of files.*, so a link that a command has made there leads to where it
 * would lead it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "session/methods.h"
#include "session/mime.h"
#include "session/receive.h"

#define MOUNT "/mnt/files"

enum { LIMIT_DEFAULT = 100 };

/* --- paths --- */

static const char *relative(const char *path) {
        return path + strspn(path, "/");
}

static bool leads_up(const char *path) {
        for (const char *part = path; *part; part += strspn(part, "/")) {
                size_t length = strcspn(part, "/");

                if (length == 2 && part[0] == '.' && part[1] == '.')
                        return true;
                part += length;
        }
        return false;
}

/* The path inside of what the call is about; owned by the caller. */
static int take_path(const RpcCall *call, char **ret, Error *error) {
        const char *path = relative(rpc_string(call, "path"));
        char quoted[160];
        int r;

        if (path[0] == '\0' || leads_up(path)) {
                r = error_set(error, ERROR_USAGE, 0, "\"%s\" names no file below " MOUNT,
                              str_quote(rpc_string(call, "path"), quoted, sizeof(quoted)));
                return error_cure(error, r,
                                  "A path there, without \"..\"; other files are read and written "
                                  "by files.*.");
        }
        *ret = str_format(MOUNT "/%s", path);
        return *ret ? 0 : error_oom(error);
}

static void write_path(JsonWriter *w, const char *path) {
        json_write_string(w, "mount_relative_path", path);
        json_write_string(w, "sandbox_mount_prefix", MOUNT);
}

static void write_call(const RpcCall *call, JsonWriter *w) {
        write_path(w, relative(rpc_string(call, "path")));
}

/* --- list --- */

typedef struct Listing {
        JsonWriter *writer;
        bool full;
        char last[PATH_MAX];
} Listing;

/* As in RFC 3339: "2026-11-21T18:53:27.042Z" */
static void write_time(JsonWriter *w, const char *key, uint64_t ms) {
        const time_t seconds = (time_t)(ms / 1000);
        char date[40] = "", text[64];
        struct tm tm;

        if (gmtime_r(&seconds, &tm))
                (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
        (void)snprintf(text, sizeof(text), "%s.%03uZ", date, (unsigned)(ms % 1000));
        json_write_string(w, key, text);
}

static int add_item(void *data, const char *name, const FileStat *stat) {
        Listing *listing = data;
        JsonWriter *w = listing->writer;

        listing->full = listing->full || w->length > METHOD_ANSWER_MAX;
        if (listing->full)
                return 0;
        (void)snprintf(listing->last, sizeof(listing->last), "%s", name);
        /* It was a regular file a moment ago. */
        if (stat->type != FILE_REGULAR)
                return 0;
        json_write_object(w, NULL);
        write_path(w, name);
        json_write_uint(w, "size", stat->size);
        write_time(w, "last_modified", stat->modified_ms);
        json_write_string(w, "mime_type", mime_type(name));
        json_write_end(w);
        return 0;
}

static int list(const Keeper *keeper, const RpcCall *call, Listing *listing, bool *ret_more,
                Error *error) {
        const char *prefix = rpc_string(call, "prefix");
        const uint64_t limit = rpc_uint(call, "limit", LIMIT_DEFAULT);
        _cleanup_free_ char *after = NULL;
        int r = method_take_cursor(call, "cursor", &after, error);

        if (r < 0)
                return r;
        if (limit == 0)
                return error_set(error, ERROR_USAGE, 0, "mount.list: limit is from 1 to 500");
        return files_list_below(keeper->files, MOUNT, prefix ? relative(prefix) : "", after, limit,
                                add_item, listing, ret_more, error);
}

int method_mount_list(RpcCall *call, void *data, Error *error) {
        Listing listing = { .writer = rpc_result(call) };
        bool more = false;
        int r;

        json_write_array(listing.writer, "items");
        r = list(data, call, &listing, &more, error);
        if (r < 0) {
                rpc_fail(call, error);
                return 0;
        }
        json_write_end(listing.writer);
        method_write_cursor(listing.writer, "next_cursor",
                            (more || listing.full) && listing.last[0] ? listing.last : NULL);
        rpc_reply(call);
        return 0;
}

/* --- one file --- */

static int upload_content(const Keeper *keeper, RpcCall *call, const char *path, Error *error) {
        _cleanup_free_ char *content = NULL;
        size_t length = 0;
        int r = method_take_content(call, &content, &length, error);

        if (r == 0)
                r = files_write(keeper->files, path, content, length,
                                (unsigned)rpc_uint(call, "mode", 0), true, error);
        if (r < 0)
                return r;
        write_call(call, rpc_result(call));
        json_write_uint(rpc_result(call), "size", length);
        rpc_reply(call);
        return 0;
}

int method_mount_upload(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *path = NULL;
        int r = take_path(call, &path, error);

        if (r < 0)
                return r;
        if (!rpc_bool(call, "fd", false))
                return upload_content(data, call, path, error);
        return receive_start(data, call, path, (unsigned)rpc_uint(call, "mode", 0), true,
                             write_call, error);
}

int method_mount_download(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *path = NULL;
        int r = take_path(call, &path, error);

        if (r < 0)
                return r;
        return rpc_bool(call, "fd", false) ? method_answer_fd(data, call, path, error)
                                           : method_answer_content(data, call, path, error);
}

int method_mount_delete(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        _cleanup_free_ char *path = NULL;
        int r = take_path(call, &path, error);

        if (r == 0)
                r = files_remove(keeper->files, path, true, error);
        if (r < 0)
                return r;
        write_call(call, rpc_result(call));
        rpc_reply(call);
        return 0;
}
