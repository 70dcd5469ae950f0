/* SPDX-License-Identifier: Apache-2.0 */
/* files.*: the paths are those that a command inside would use. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path-text.h"
#include "files/receive.h"
#include "files/staged.h"
#include "keeper/methods.h"

enum { LIMIT_DEFAULT = 1000 };

static void reply_nothing(RpcCall *call) {
        (void)rpc_result(call);
        rpc_reply(call);
}

static unsigned mode_of(const RpcCall *call) {
        return (unsigned)rpc_uint(call, "mode", 0);
}

/* --- contents --- */

int method_files_read(RpcCall *call, void *data, Error *error) {
        return method_answer_content(data, call, rpc_string(call, "path"), error);
}

static int run_write(FilesWork *work, Error *error) {
        work->size = work->length;
        return files_write(work->files, work->path, work->content, work->length, work->mode,
                           work->make_parents, error);
}

static int run_append(FilesWork *work, Error *error) {
        return files_append(work->files, work->path, work->content, work->length, &work->size,
                            error);
}

static void answer_size(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        json_write_uint(w, "size", work->size);
}

int method_files_write(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_write, answer_size, .ordered = true };

        return method_write_content(data, call, &kind, rpc_string(call, "path"), mode_of(call),
                                    rpc_bool(call, "make_parents", false), error);
}

int method_files_append(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_append, answer_size, .ordered = true };

        return method_write_content(data, call, &kind, rpc_string(call, "path"), 0, false, error);
}

int method_files_open(RpcCall *call, void *data, Error *error) {
        return method_answer_fd(data, call, rpc_string(call, "path"), error);
}

int method_files_receive(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        return receive_start(keeper->receives, call, rpc_string(call, "path"), mode_of(call),
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

static bool is_full(FilesWork *work) {
        work->full = work->full || work->list.length > METHOD_ANSWER_MAX;
        return work->full;
}

static int add_entry(void *data, const char *name, const FileStat *stat) {
        FilesWork *work = data;
        JsonWriter *w = &work->list;

        if (is_full(work))
                return 0;
        json_write_object(w, NULL);
        json_write_name(w, "name", name);
        write_stat(w, stat);
        json_write_end(w);
        (void)snprintf(work->last, sizeof(work->last), "%s", name);
        return 0;
}

static const char *path_or_cwd(const RpcCall *call) {
        const char *path = rpc_string(call, "path");

        return path ? path : ".";
}

/* to is the name that the page begins behind. */
static int run_list(FilesWork *work, Error *error) {
        int r;

        json_write_array(&work->list, NULL);
        r = files_list(work->files, work->path, work->recursive, work->to ? work->to : "",
                       work->limit, add_entry, work, &work->more, &work->missed, error);
        json_write_end(&work->list);
        return r;
}

static void answer_list(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        json_write_value(w, "entries", &work->list);
        method_write_next(w, "next", work);
}

int method_files_list(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_list, answer_list, .looks = true };
        const Keeper *keeper = data;
        FilesWork *work;
        int r = work_new(keeper->files, path_or_cwd(call), rpc_string(call, "after"), NULL, &work,
                         error);
        if (r < 0)
                return r;
        work->recursive = rpc_bool(call, "recursive", false);
        work->limit = rpc_uint(call, "limit", LIMIT_DEFAULT);
        return work_start(keeper->works, call, &kind, work, error);
}

static int run_glob(FilesWork *work, Error *error) {
        int r;

        json_write_array(&work->list, NULL);
        r = files_glob(work->files, work->path, work->pattern, work->limit, add_entry, work,
                       &work->more, error);
        json_write_end(&work->list);
        return r;
}

static void answer_glob(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        json_write_value(w, "entries", &work->list);
        json_write_bool(w, "more", work->more || work->full);
}

int method_files_glob(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_glob, answer_glob, .looks = true };
        const Keeper *keeper = data;
        FilesWork *work;
        int r = work_new(keeper->files, path_or_cwd(call), NULL, rpc_string(call, "pattern"), &work,
                         error);

        if (r < 0)
                return r;
        work->limit = rpc_uint(call, "limit", LIMIT_DEFAULT);
        return work_start(keeper->works, call, &kind, work, error);
}

static int add_match(void *data, const char *name, uint64_t line, const char *text) {
        FilesWork *work = data;
        JsonWriter *w = &work->list;

        if (is_full(work))
                return 0;
        json_write_object(w, NULL);
        json_write_name(w, "name", name);
        json_write_uint(w, "line", line);
        json_write_string(w, "text", text);
        json_write_end(w);
        return 0;
}

/* to is the glob of the files' names. */
static int run_grep(FilesWork *work, Error *error) {
        int r;

        json_write_array(&work->list, NULL);
        r = files_grep(work->files, work->path, work->pattern, work->ignore_case, work->to,
                       work->limit, add_match, work, &work->more, error);
        json_write_end(&work->list);
        return r;
}

static void answer_grep(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        json_write_value(w, "matches", &work->list);
        json_write_bool(w, "more", work->more || work->full);
}

int method_files_grep(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_grep, answer_grep, .looks = true };
        const Keeper *keeper = data;
        FilesWork *work;
        int r = work_new(keeper->files, path_or_cwd(call), rpc_string(call, "glob"),
                         rpc_string(call, "pattern"), &work, error);

        if (r < 0)
                return r;
        work->ignore_case = rpc_bool(call, "ignore_case", false);
        work->limit = rpc_uint(call, "limit", LIMIT_DEFAULT);
        return work_start(keeper->works, call, &kind, work, error);
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
        const char *path = rpc_string(call, "path");
        Keeper *keeper = data;
        int r;

        if (rpc_bool(call, "owned", false))
                r = staged_make(keeper->staged, rpc_call_connection(call), path, mode_of(call),
                                error);
        else
                r = files_mkdir(keeper->files, path, mode_of(call),
                                rpc_bool(call, "make_parents", false), error);
        if (r == 0)
                reply_nothing(call);
        return r;
}

static void answer_nothing(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        (void)work;
        (void)w;
}

static int run_remove(FilesWork *work, Error *error) {
        return files_remove(work->files, work->path, work->recursive, error);
}

int method_files_remove(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_remove, answer_nothing };
        const Keeper *keeper = data;
        FilesWork *work;
        int r = work_new(keeper->files, rpc_string(call, "path"), NULL, NULL, &work, error);

        if (r < 0)
                return r;
        work->recursive = rpc_bool(call, "recursive", false);
        return work_start(keeper->works, call, &kind, work, error);
}

static int run_move(FilesWork *work, Error *error) {
        return files_move(work->files, work->path, work->to, work->replace, error);
}

int method_files_move(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_move, answer_nothing };
        const Keeper *keeper = data;
        FilesWork *work;
        int r = work_new(keeper->files, rpc_string(call, "from"), rpc_string(call, "to"), NULL,
                         &work, error);

        if (r < 0)
                return r;
        work->replace = rpc_bool(call, "replace", false);
        return work_start(keeper->works, call, &kind, work, error);
}

static int run_copy(FilesWork *work, Error *error) {
        return files_copy(work->files, work->path, work->to, work->recursive, work->replace,
                          &work->left_out, error);
}

static void answer_copy(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        json_write_uint(w, "left_out", work->left_out);
}

int method_files_copy(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_copy, answer_copy };
        const Keeper *keeper = data;
        FilesWork *work;
        int r = work_new(keeper->files, rpc_string(call, "from"), rpc_string(call, "to"), NULL,
                         &work, error);

        if (r < 0)
                return r;
        work->recursive = rpc_bool(call, "recursive", false);
        work->replace = rpc_bool(call, "replace", false);
        return work_start(keeper->works, call, &kind, work, error);
}
