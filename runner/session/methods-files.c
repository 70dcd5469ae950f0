/* SPDX-License-Identifier: Apache-2.0 */
/* files.*: the paths are those that a command inside would use. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session/methods.h"
#include "session/receive.h"

enum { LIMIT_DEFAULT = 1000 };

static void reply_nothing(RpcCall *call) {
        (void)rpc_result(call);
        rpc_reply(call);
}

static void reply_size(RpcCall *call, uint64_t size) {
        json_write_uint(rpc_result(call), "size", size);
        rpc_reply(call);
}

static unsigned mode_of(const RpcCall *call) {
        return (unsigned)rpc_uint(call, "mode", 0);
}

/* --- contents --- */

int method_files_read(RpcCall *call, void *data, Error *error) {
        return method_answer_content(data, call, rpc_string(call, "path"), error);
}

int method_files_write(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        _cleanup_free_ char *content = NULL;
        size_t length = 0;
        int r = method_take_content(call, &content, &length, error);

        if (r == 0)
                r = files_write(keeper->files, rpc_string(call, "path"), content, length,
                                mode_of(call), rpc_bool(call, "make_parents", false), error);
        if (r == 0)
                reply_size(call, length);
        return r;
}

int method_files_append(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        _cleanup_free_ char *content = NULL;
        size_t length = 0;
        int r = method_take_content(call, &content, &length, error);

        if (r == 0)
                r = files_append(keeper->files, rpc_string(call, "path"), content, length, error);
        if (r == 0)
                reply_size(call, length);
        return r;
}

int method_files_open(RpcCall *call, void *data, Error *error) {
        return method_answer_fd(data, call, rpc_string(call, "path"), error);
}

int method_files_receive(RpcCall *call, void *data, Error *error) {
        return receive_start(data, call, rpc_string(call, "path"), mode_of(call),
                             rpc_bool(call, "make_parents", false), NULL, error);
}

/* --- what is there --- */

static void write_stat(JsonWriter *w, const FileStat *stat) {
        json_write_string(w, "type", file_type_name(stat->type));
        json_write_uint(w, "size", stat->size);
        json_write_uint(w, "modified_ms", stat->modified_ms);
        json_write_uint(w, "mode", stat->mode);
        json_write_string(w, "target", stat->target);
}

typedef struct Listing {
        JsonWriter *writer;
        bool full;           /* the answer has no room for more */
        char last[PATH_MAX]; /* "" of none */
} Listing;

static bool listing_full(Listing *listing) {
        listing->full = listing->full || listing->writer->length > METHOD_ANSWER_MAX;
        return listing->full;
}

static int add_entry(void *data, const char *name, const FileStat *stat) {
        Listing *listing = data;
        JsonWriter *w = listing->writer;

        if (listing_full(listing))
                return 0;
        json_write_object(w, NULL);
        json_write_string(w, "name", name);
        write_stat(w, stat);
        json_write_end(w);
        (void)snprintf(listing->last, sizeof(listing->last), "%s", name);
        return 0;
}

static const char *path_or_cwd(const RpcCall *call) {
        const char *path = rpc_string(call, "path");

        return path ? path : ".";
}

int method_files_list(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        Listing listing = { .writer = rpc_result(call) };
        _cleanup_free_ char *after = NULL;
        bool more = false;
        int r = method_take_cursor(call, "after", &after, error);

        json_write_array(listing.writer, "entries");
        if (r == 0)
                r = files_list(keeper->files, path_or_cwd(call), rpc_bool(call, "recursive", false),
                               after, rpc_uint(call, "limit", LIMIT_DEFAULT), add_entry, &listing,
                               &more, error);
        if (r < 0) {
                rpc_fail(call, error);
                return 0;
        }
        json_write_end(listing.writer);
        method_write_cursor(listing.writer, "next",
                            (more || listing.full) && listing.last[0] ? listing.last : NULL);
        rpc_reply(call);
        return 0;
}

int method_files_glob(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        Listing listing = { .writer = rpc_result(call) };
        bool more = false;
        int r;

        json_write_array(listing.writer, "entries");
        r = files_glob(keeper->files, path_or_cwd(call), rpc_string(call, "pattern"),
                       rpc_uint(call, "limit", LIMIT_DEFAULT), add_entry, &listing, &more, error);
        if (r < 0) {
                rpc_fail(call, error);
                return 0;
        }
        json_write_end(listing.writer);
        json_write_bool(listing.writer, "more", more || listing.full);
        rpc_reply(call);
        return 0;
}

static int add_match(void *data, const char *name, uint64_t line, const char *text) {
        Listing *listing = data;
        JsonWriter *w = listing->writer;

        if (listing_full(listing))
                return 0;
        json_write_object(w, NULL);
        json_write_string(w, "name", name);
        json_write_uint(w, "line", line);
        json_write_string(w, "text", text);
        json_write_end(w);
        return 0;
}

int method_files_grep(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        Listing listing = { .writer = rpc_result(call) };
        bool more = false;
        int r;

        json_write_array(listing.writer, "matches");
        r = files_grep(keeper->files, path_or_cwd(call), rpc_string(call, "pattern"),
                       rpc_bool(call, "ignore_case", false), rpc_string(call, "glob"),
                       rpc_uint(call, "limit", LIMIT_DEFAULT), add_match, &listing, &more, error);
        if (r < 0) {
                rpc_fail(call, error);
                return 0;
        }
        json_write_end(listing.writer);
        json_write_bool(listing.writer, "more", more || listing.full);
        rpc_reply(call);
        return 0;
}

int method_files_stat(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        FileStat stat = { 0 };
        int r = files_stat(keeper->files, rpc_string(call, "path"), rpc_bool(call, "follow", true),
                           &stat, error);

        if (r < 0)
                return r;
        write_stat(rpc_result(call), &stat);
        file_stat_clear(&stat);
        rpc_reply(call);
        return 0;
}

int method_files_exists(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        bool exists = false;
        int r = files_exists(keeper->files, rpc_string(call, "path"), &exists, error);

        if (r < 0)
                return r;
        json_write_bool(rpc_result(call), "exists", exists);
        rpc_reply(call);
        return 0;
}

/* --- changing it --- */

int method_files_mkdir(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        int r = files_mkdir(keeper->files, rpc_string(call, "path"), mode_of(call),
                            rpc_bool(call, "make_parents", false), error);

        if (r == 0)
                reply_nothing(call);
        return r;
}

int method_files_remove(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        int r = files_remove(keeper->files, rpc_string(call, "path"),
                             rpc_bool(call, "recursive", false), error);

        if (r == 0)
                reply_nothing(call);
        return r;
}

int method_files_move(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        int r = files_move(keeper->files, rpc_string(call, "from"), rpc_string(call, "to"),
                           rpc_bool(call, "replace", false), error);

        if (r == 0)
                reply_nothing(call);
        return r;
}

int method_files_copy(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        uint64_t left_out = 0;
        int r = files_copy(keeper->files, rpc_string(call, "from"), rpc_string(call, "to"),
                           rpc_bool(call, "recursive", false), rpc_bool(call, "replace", false),
                           &left_out, error);

        if (r < 0)
                return r;
        json_write_uint(rpc_result(call), "left_out", left_out);
        rpc_reply(call);
        return 0;
}
