/* SPDX-License-Identifier: Apache-2.0 */
/* mount.*: the files below /mnt/files, as a flat store without directories. The view is the same as
 * that of files.*, so a symlink that a command has made there leads to the same file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/path-text.h"
#include "files/mime.h"
#include "files/receive.h"
#include "methods/area.h"

#define MOUNT "/mnt/files"

enum { LIMIT_DEFAULT = 100 };

/* --- paths --- */

/* Strips a leading "/" from a path below /mnt/files, or /mnt/files from a path as a command has
 * it. */
static const char *mount_method_relative(const char *path) {
        const size_t mount = sizeof(MOUNT) - 1;

        if (str_starts(path, MOUNT) && (path[mount] == '/' || !path[mount]))
                path += mount;
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

/* Takes the path inside of the call's file; owned by the caller. */
static int take_path(const RpcCall *call, char **ret, Error *error) {
        const char *path = mount_method_relative(rpc_string(call, "path"));
        char quoted[160];
        int r;

        if (path[0] == '\0' || leads_up(path)) {
                r = error_set(error, ERROR_USAGE, 0,
                              "\"%s\" is not the path of a file below " MOUNT,
                              str_quote(rpc_string(call, "path"), quoted, sizeof(quoted)));
                return error_cure(
                        error, r,
                        "Pass a path below it, without \"..\". For other files, use files.*.");
        }
        *ret = str_format(MOUNT "/%s", path);
        return *ret ? 0 : error_oom(error);
}

static void write_path(JsonWriter *w, const char *path) {
        json_write_name(w, "mount_relative_path", path);
        json_write_string(w, "sandbox_mount_prefix", MOUNT);
}

static void write_call(const RpcCall *call, JsonWriter *w) {
        write_path(w, mount_method_relative(rpc_string(call, "path")));
}

/* --- list --- */

/* Writes a time by RFC 3339: "2026-11-21T18:53:27.042Z". */
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
        FilesWork *work = data;
        JsonWriter *w = &work->list;

        work->full = work->full || w->length > METHOD_ANSWER_MAX;
        if (work->full)
                return 0;
        (void)snprintf(work->last, sizeof(work->last), "%s", name);
        /* The file was regular a moment ago, and has been replaced since. */
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

/* work->pattern is the prefix, and work->to is the last path of the previous page. */
static int mount_method_run_list(FilesWork *work, Error *error) {
        int r;

        json_write_array(&work->list, NULL);
        r = files_list_below(work->files, MOUNT, work->pattern, work->to ? work->to : "",
                             work->limit, add_item, work, &work->more, &work->missed, error);
        json_write_end(&work->list);
        return r;
}

static void mount_method_answer_list(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        json_write_value(w, "items", &work->list);
        method_write_next(w, "next_cursor", work);
}

static int method_mount_list(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { mount_method_run_list, mount_method_answer_list,
                                            .looks = true };
        const Keeper *keeper = data;
        const char *prefix = rpc_string(call, "prefix");
        const uint64_t limit = rpc_uint(call, "limit", LIMIT_DEFAULT);
        FilesWork *work;
        int r = work_new(keeper->files, MOUNT, rpc_string(call, "cursor"),
                         prefix ? mount_method_relative(prefix) : "", &work, error);
        if (r < 0)
                return r;
        work->limit = limit;
        return work_start(keeper->works, call, &kind, work, error);
}

/* --- one file --- */

static int run_upload(FilesWork *work, Error *error) {
        return files_write(work->files, work->path, work->content, work->length, work->mode, true,
                           error);
}

static void answer_upload(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        write_call(call, w);
        json_write_uint(w, "size", work->length);
}

static int method_mount_upload(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_upload, answer_upload, .ordered = true };
        const Keeper *keeper = data;
        const unsigned mode = (unsigned)rpc_uint(call, "mode", 0);
        _cleanup_free_ char *path = NULL;
        int r = take_path(call, &path, error);

        if (r < 0)
                return r;
        if (!rpc_bool(call, "fd", false))
                return method_write_content(data, call, &kind, path, mode, true, error);
        return receive_start(keeper->receives, call, path, mode, true, write_call, error);
}

static int method_mount_download(RpcCall *call, void *data, Error *error) {
        _cleanup_free_ char *path = NULL;
        int r = take_path(call, &path, error);

        if (r < 0)
                return r;
        return rpc_bool(call, "fd", false) ? method_answer_fd(data, call, path, error)
                                           : method_answer_content(data, call, path, error);
}

static int run_delete(FilesWork *work, Error *error) {
        return files_remove(work->files, work->path, true, error);
}

static void answer_delete(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)work;
        write_call(call, w);
}

static int method_mount_delete(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_delete, answer_delete };
        const Keeper *keeper = data;
        _cleanup_free_ char *path = NULL;
        FilesWork *work;
        int r = take_path(call, &path, error);

        if (r == 0)
                r = work_new(keeper->files, path, NULL, NULL, &work, error);
        return r < 0 ? r : work_start(keeper->works, call, &kind, work, error);
}

/* --- the table --- */

#define MOUNT_PATH                                                                                 \
        {                                                                                          \
                "path", RPC_PATH, true, 4000,                                                      \
                        "path below /mnt/files, absolute or relative to /mnt/files"                \
        }

static const RpcParam list_params[] = {
        { "prefix", RPC_PATH, false, 4000,
          "only paths that start with this prefix, which may begin with /mnt/files/" },
        { "cursor", RPC_PATH, false, 4096, "\"next_cursor\" of the previous page" },
        { "limit", RPC_UINT, false, 500, "maximum number of items; default 100", .min = 1 },
};

static const RpcParam upload_params[] = {
        MOUNT_PATH,
        METHOD_CONTENT,
        { "fd", RPC_BOOL, false, 0,
          "read the content from the descriptor that comes with the request (SCM_RIGHTS)" },
        METHOD_MODE,
};

static const RpcParam download_params[] = {
        MOUNT_PATH,
        METHOD_PART,
        { "fd", RPC_BOOL, false, 0,
          "answer with an fd of the file (SCM_RIGHTS) instead of its content" },
};

static const RpcParam delete_params[] = {
        MOUNT_PATH,
};

static const RpcField path_fields[] = {
        { "mount_relative_path", RPC_STRING, RPC_ALWAYS, "relative to /mnt/files" },
        { "raw", RPC_PATH, RPC_SOMETIMES, "the path, if its bytes are not UTF-8" },
        { "sandbox_mount_prefix", RPC_STRING, RPC_ALWAYS, "/mnt/files" },
};
static const RpcShape mount_path_shape = { .name = "MountPath", RPC_FIELDS(path_fields) };

static const RpcField item_fields[] = {
        { "size", RPC_UINT, RPC_ALWAYS, "in bytes" },
        { "last_modified", RPC_STRING, RPC_ALWAYS, "the time, in the form of RFC 3339" },
        { "mime_type", RPC_STRING, RPC_ALWAYS, "guessed from the file's name" },
};
static const RpcShape item_shape = { .name = "MountItem",
                                     .help = "a file below /mnt/files",
                                     RPC_FIELDS(item_fields),
                                     .base = &mount_path_shape };

static const RpcField list_fields[] = {
        { "items", RPC_SHAPES, RPC_ALWAYS, "in byte order of paths", .shape = &item_shape },
        { "next_cursor", RPC_PATH, RPC_OR_NULL, "the value of \"cursor\" for the next page" },
        METHOD_MISSED_FIELD,
};
static const RpcShape list_shape = { .name = "MountList", RPC_FIELDS(list_fields) };

static const RpcField upload_fields[] = {
        { "size", RPC_UINT, RPC_ALWAYS, "in bytes" },
};
static const RpcShape uploaded_shape = { .name = "MountUploaded",
                                         RPC_FIELDS(upload_fields),
                                         .base = &mount_path_shape };

static const RpcField download_fields[] = {
        { "size", RPC_UINT, RPC_ALWAYS, "size of the file, in bytes" },
        { "content", RPC_STRING, RPC_SOMETIMES, "without \"fd\": text, or base64" },
        { "next", RPC_UINT, RPC_SOMETIMES, "without \"fd\": offset of the next part" },
        { "eof", RPC_BOOL, RPC_SOMETIMES, "without \"fd\": whether this is the end" },
        { "modified_ms", RPC_UINT, RPC_SOMETIMES,
          "with \"fd\": time of the last change, in milliseconds since the epoch" },
        { "mode", RPC_UINT, RPC_SOMETIMES, "with \"fd\": permission bits" },
};
static const RpcShape downloaded_shape = { .name = "MountDownloaded", RPC_FIELDS(download_fields) };

static const RpcMethod methods[] = {
        {
                .name = "mount.list",
                .help = "lists files below /mnt/files",
                RPC_PARAMS(list_params),
                .result = &list_shape,
                METHOD_READS_FILES,
                .example = { "{\"prefix\": \"a\"}",
                             "{\"items\": [{\"mount_relative_path\": \"a.txt\","
                             " \"sandbox_mount_prefix\": \"/mnt/files\", \"size\": 12,"
                             " \"last_modified\": \"2026-01-02T03:04:05.006Z\","
                             " \"mime_type\": \"text/plain\"}], \"next_cursor\": null}" },
                .function = method_mount_list,
        },
        {
                .name = "mount.upload",
                .help = "writes a file below /mnt/files, and creates missing parent directories",
                RPC_PARAMS(upload_params),
                .result = &uploaded_shape,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"a.txt\", \"content\": \"first line\\n\"}",
                             "{\"mount_relative_path\": \"a.txt\","
                             " \"sandbox_mount_prefix\": \"/mnt/files\", \"size\": 11}" },
                .function = method_mount_upload,
        },
        {
                .name = "mount.download",
                .help = "reads a file below /mnt/files, or a part of it",
                RPC_PARAMS(download_params),
                .result = &downloaded_shape,
                METHOD_READS_FILES,
                .example = { "{\"path\": \"a.txt\"}",
                             "{\"content\": \"first line\\n\", \"next\": 11, \"eof\": true,"
                             " \"size\": 11}" },
                .function = method_mount_download,
        },
        {
                .name = "mount.delete",
                .help = "removes a file or a directory below /mnt/files",
                RPC_PARAMS(delete_params),
                .result = &mount_path_shape,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"a.txt\"}",
                             "{\"mount_relative_path\": \"a.txt\","
                             " \"sandbox_mount_prefix\": \"/mnt/files\"}" },
                .function = method_mount_delete,
        },
};
const MethodArea method_mount_area = { methods, ELEMENTSOF(methods) };
