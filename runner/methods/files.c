/* SPDX-License-Identifier: Apache-2.0 */
/* files.*: paths mean the same as for a command inside. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path-text.h"
#include "files/receive.h"
#include "files/staged.h"
#include "methods/area.h"

enum { LIMIT_DEFAULT = 1000 };

static unsigned mode_of(const RpcCall *call) {
        return (unsigned)rpc_uint(call, "mode", 0);
}

/* --- contents --- */

static int method_files_read(RpcCall *call, void *data, Error *error) {
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

static int method_files_write(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_write, answer_size, .ordered = true };

        return method_write_content(data, call, &kind, rpc_string(call, "path"), mode_of(call),
                                    rpc_bool(call, "make_parents", false), error);
}

static int method_files_append(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { run_append, answer_size, .ordered = true };

        return method_write_content(data, call, &kind, rpc_string(call, "path"), 0, false, error);
}

static int method_files_open(RpcCall *call, void *data, Error *error) {
        return method_answer_fd(data, call, rpc_string(call, "path"), error);
}

static int method_files_receive(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        return receive_start(keeper->receives, call, rpc_string(call, "path"), mode_of(call),
                             rpc_bool(call, "make_parents", false), NULL, error);
}

/* --- reading directories --- */

static void write_stat(JsonWriter *w, const FileStat *stat) {
        json_write_string(w, "type", file_type_name(stat->type));
        json_write_uint(w, "size", stat->size);
        json_write_uint(w, "modified_ms", stat->modified_ms);
        json_write_uint(w, "mode", stat->mode);
        json_write_string(w, "target", stat->target);
}

static bool files_method_is_full(FilesWork *work) {
        work->full = work->full || work->list.length > METHOD_ANSWER_MAX;
        return work->full;
}

static int add_entry(void *data, const char *name, const FileStat *stat) {
        FilesWork *work = data;
        JsonWriter *w = &work->list;

        if (files_method_is_full(work))
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

/* to is the last name of the previous page. */
static int files_method_run_list(FilesWork *work, Error *error) {
        int r;

        json_write_array(&work->list, NULL);
        r = files_list(work->files, work->path, work->recursive, work->to ? work->to : "",
                       work->limit, add_entry, work, &work->more, &work->missed, error);
        json_write_end(&work->list);
        return r;
}

static void files_method_answer_list(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        json_write_value(w, "entries", &work->list);
        method_write_next(w, "next", work);
}

static int method_files_list(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { files_method_run_list, files_method_answer_list,
                                            .looks = true };
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

static int method_files_glob(RpcCall *call, void *data, Error *error) {
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

        if (files_method_is_full(work))
                return 0;
        json_write_object(w, NULL);
        json_write_name(w, "name", name);
        json_write_uint(w, "line", line);
        json_write_string(w, "text", text);
        json_write_end(w);
        return 0;
}

/* to is the glob for names of files. */
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

static int method_files_grep(RpcCall *call, void *data, Error *error) {
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

static int method_files_stat(RpcCall *call, void *data, Error *error) {
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

static int method_files_exists(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        bool exists = false;
        int r = files_exists(keeper->files, rpc_string(call, "path"), &exists, error);

        if (r < 0)
                return r;
        json_write_bool(rpc_result(call), "exists", exists);
        rpc_reply(call);
        return 0;
}

/* --- changing files --- */

static int method_files_mkdir(RpcCall *call, void *data, Error *error) {
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
                rpc_reply_empty(call);
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

static int method_files_remove(RpcCall *call, void *data, Error *error) {
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

static int method_files_move(RpcCall *call, void *data, Error *error) {
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

static int method_files_copy(RpcCall *call, void *data, Error *error) {
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

/* --- the table --- */

static const RpcParam read_params[] = {
        { "path", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
        { "offset", RPC_UINT, false, 0, "the first byte; default 0" },
        { "length", RPC_UINT, false, FILES_READ_MAX, "bytes at most; default 512 KiB" },
        { "base64", RPC_BOOL, false, 0, "content in base64, not as text" },
};

static const RpcParam write_params[] = {
        { "path", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
        { "content", RPC_STRING, false, 0, "text" },
        { "base64", RPC_STRING, false, 0, "the content as bytes, in base64, instead of as text" },
        { "mode", RPC_UINT, false, 0777,
          "permission bits; default: those of the file, 0644 for a new one" },
        { "make_parents", RPC_BOOL, false, 0, "make the directories above it" },
};

static const RpcParam append_params[] = {
        { "path", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
        { "content", RPC_STRING, false, 0, "text" },
        { "base64", RPC_STRING, false, 0, "the content as bytes, in base64, instead of as text" },
};

static const RpcParam receive_params[] = {
        { "path", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
        { "mode", RPC_UINT, false, 0777,
          "permission bits; default: those of the file, 0644 for a new one" },
        { "make_parents", RPC_BOOL, false, 0, "make the directories above it" },
};

static const RpcParam path_params[] = {
        { "path", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
};

static const RpcParam list_params[] = {
        { "path", RPC_PATH, false, 4096, "a directory; default: the workspace" },
        { "recursive", RPC_BOOL, false, 0, "list all below it, too; no link is followed" },
        { "after", RPC_PATH, false, 4096, "only names behind this one: \"next\" of a page" },
        { "limit", RPC_UINT, false, FILES_LIST_MAX, "number of entries at most; default 1000" },
};

static const RpcParam glob_params[] = {
        { "pattern", RPC_STRING, true, 1024, "such as \"src/**/*.py\", relative to path" },
        { "path", RPC_PATH, false, 4096, "a directory; default: the workspace" },
        { "limit", RPC_UINT, false, FILES_LIST_MAX, "number of entries at most; default 1000" },
};

static const RpcParam grep_params[] = {
        { "pattern", RPC_STRING, true, 1024, "a POSIX extended regular expression" },
        { "path", RPC_PATH, false, 4096, "a directory or a file; default: the workspace" },
        { "ignore_case", RPC_BOOL, false, 0, "letters match in either case" },
        { "glob", RPC_STRING, false, 1024,
          "search only files whose name matches, such as \"*.py\"" },
        { "limit", RPC_UINT, false, FILES_LIST_MAX, "number of lines at most; default 1000" },
};

static const RpcParam stat_params[] = {
        { "path", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
        { "follow", RPC_BOOL, false, 0, "follow a link at the end of the path; default true" },
};

static const RpcParam mkdir_params[] = {
        { "path", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
        { "mode", RPC_UINT, false, 0777, "permission bits; default 0755" },
        { "make_parents", RPC_BOOL, false, 0, "make the directories above it" },
        { "owned", RPC_BOOL, false, 0,
          "remove it when this connection ends, unless files.move has renamed it; its name must "
          "be \".holt-\" and 16 hexadecimal digits" },
};

static const RpcParam remove_params[] = {
        { "path", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
        { "recursive", RPC_BOOL, false, 0, "remove a directory with all that is in it" },
};

static const RpcParam move_params[] = {
        { "from", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
        { "to", RPC_PATH, true, 4096, "its new path" },
        { "replace", RPC_BOOL, false, 0, "replace what is at the new path" },
};

static const RpcParam copy_params[] = {
        { "from", RPC_PATH, true, 4096, "a path inside, relative to the workspace" },
        { "to", RPC_PATH, true, 4096, "path of the copy" },
        { "recursive", RPC_BOOL, false, 0, "copy a directory with all that is in it" },
        { "replace", RPC_BOOL, false, 0, "replace what is at the new path" },
};

static const RpcField entry_fields[] = { METHOD_NAME_FIELDS };
static const RpcShape entry_shape = { .name = "FileEntry",
                                      .help = "an entry of a directory, or a path below it",
                                      RPC_FIELDS(entry_fields),
                                      .base = &method_stat };

static const RpcField list_fields[] = {
        { "entries", RPC_SHAPES, RPC_ALWAYS, "in byte order of names", .shape = &entry_shape },
        { "next", RPC_PATH, RPC_OR_NULL, "the value of \"after\" for the entries that follow" },
        METHOD_MISSED_FIELD,
};
static const RpcShape list_shape = { .name = "FileList", RPC_FIELDS(list_fields) };

static const RpcField glob_fields[] = {
        { "entries", RPC_SHAPES, RPC_ALWAYS, NULL, .shape = &entry_shape },
        { "more", RPC_BOOL, RPC_ALWAYS, "whether there are more" },
};
static const RpcShape found_shape = { .name = "FilesFound", RPC_FIELDS(glob_fields) };

static const RpcField line_fields[] = {
        METHOD_NAME_FIELDS,
        { "line", RPC_UINT, RPC_ALWAYS, "number of the line, from 1" },
        { "text", RPC_STRING, RPC_ALWAYS, "the line, cut if long" },
};
static const RpcShape line_shape = { .name = "MatchingLine",
                                     .help = "a line of a file",
                                     RPC_FIELDS(line_fields) };

static const RpcField grep_fields[] = {
        { "matches", RPC_SHAPES, RPC_ALWAYS, NULL, .shape = &line_shape },
        { "more", RPC_BOOL, RPC_ALWAYS, "whether there are more" },
};
static const RpcShape matches_shape = { .name = "Matches", RPC_FIELDS(grep_fields) };

static const RpcField exists_fields[] = {
        { "exists", RPC_BOOL, RPC_ALWAYS, NULL },
};
static const RpcShape exists_shape = { .name = "Exists", RPC_FIELDS(exists_fields) };

static const RpcField copy_fields[] = {
        { "left_out", RPC_UINT, RPC_ALWAYS, "number of fifos, sockets and devices" },
};
static const RpcShape copied_shape = { .name = "Copied", RPC_FIELDS(copy_fields) };

static const RpcMethod methods[] = {
        {
                .name = "files.read",
                .help = "reads a part of a file; text ends with a whole character",
                RPC_PARAMS(read_params),
                .result = &method_content,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"notes.txt\"}",
                             "{\"content\": \"first line\\n\", \"next\": 11, \"eof\": true,"
                             " \"size\": 11}" },
                .function = method_files_read,
        },
        {
                .name = "files.write",
                .help = "replaces a file in one step, or makes it",
                RPC_PARAMS(write_params),
                .result = &method_size,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"notes.txt\", \"content\": \"first line\\n\"}",
                             "{\"size\": 11}" },
                .function = method_files_write,
        },
        {
                .name = "files.append",
                .help = "adds to the end of a file, or makes it",
                RPC_PARAMS(append_params),
                .result = &method_size,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"notes.txt\", \"content\": \"second line\\n\"}",
                             "{\"size\": 23}" },
                .function = method_files_append,
        },
        {
                .name = "files.open",
                .help = "opens a file, and answers with an fd (SCM_RIGHTS)",
                RPC_PARAMS(path_params),
                .result = &method_opened,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"notes.txt\"}",
                             "{\"size\": 23, \"modified_ms\": 1700000000000, \"mode\": 420}" },
                .function = method_files_open,
        },
        {
                .name = "files.receive",
                .help = "writes a file from the descriptor that comes with the request "
                        "(SCM_RIGHTS)",
                RPC_PARAMS(receive_params),
                .result = &method_size,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"notes.txt\"}", "{\"size\": 23}" },
                .function = method_files_receive,
        },
        {
                .name = "files.list",
                .help = "lists a directory",
                RPC_PARAMS(list_params),
                .result = &list_shape,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \".\"}",
                             "{\"entries\": [{\"name\": \"notes.txt\", \"type\": \"file\","
                             " \"size\": 12, \"modified_ms\": 1700000000000, \"mode\": 420,"
                             " \"target\": null}], \"next\": null}" },
                .function = method_files_list,
        },
        {
                .name = "files.glob",
                .help = "lists the paths that match a pattern",
                RPC_PARAMS(glob_params),
                .result = &found_shape,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"pattern\": \"*.txt\"}",
                             "{\"entries\": [{\"name\": \"notes.txt\", \"type\": \"file\","
                             " \"size\": 12, \"modified_ms\": 1700000000000, \"mode\": 420,"
                             " \"target\": null}], \"more\": false}" },
                .function = method_files_glob,
        },
        {
                .name = "files.grep",
                .help = "finds lines that match a regular expression, in all files that are not "
                        "binary",
                RPC_PARAMS(grep_params),
                .result = &matches_shape,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"pattern\": \"^first\"}",
                             "{\"matches\": [{\"name\": \"notes.txt\", \"line\": 1, \"text\":"
                             " \"first line\"}], \"more\": false}" },
                .function = method_files_grep,
        },
        {
                .name = "files.stat",
                .help = "describes the file at a path",
                RPC_PARAMS(stat_params),
                .result = &method_stat,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"notes.txt\"}",
                             "{\"type\": \"file\", \"size\": 12, \"modified_ms\":"
                             " 1700000000000, \"mode\": 420, \"target\": null}" },
                .function = method_files_stat,
        },
        {
                .name = "files.exists",
                .help = "says whether a path exists",
                RPC_PARAMS(path_params),
                .result = &exists_shape,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"notes.txt\"}", "{\"exists\": true}" },
                .function = method_files_exists,
        },
        {
                .name = "files.mkdir",
                .help = "makes a directory",
                RPC_PARAMS(mkdir_params),
                .result = &rpc_nothing,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"src\", \"make_parents\": true}", "{}" },
                .function = method_files_mkdir,
        },
        {
                .name = "files.link",
                .help = "makes a symlink",
                RPC_PARAMS(method_link_params),
                .result = &rpc_nothing,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"latest\", \"target\": \"v2\"}", "{}" },
                .function = method_files_link,
        },
        {
                .name = "files.remove",
                .help = "removes a file or a directory; follows no link",
                RPC_PARAMS(remove_params),
                .result = &rpc_nothing,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"src\", \"recursive\": true}", "{}" },
                .function = method_files_remove,
        },
        {
                .name = "files.move",
                .help = "renames a file or a directory",
                RPC_PARAMS(move_params),
                .result = &rpc_nothing,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"from\": \"notes.txt\", \"to\": \"old.txt\"}", "{}" },
                .function = method_files_move,
        },
        {
                .name = "files.copy",
                .help = "copies a file, a link or a directory",
                RPC_PARAMS(copy_params),
                .result = &copied_shape,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"from\": \"notes.txt\", \"to\": \"copy.txt\"}",
                             "{\"left_out\": 0}" },
                .function = method_files_copy,
        },
};
const MethodArea method_files_area = { methods, ELEMENTSOF(methods) };
