/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of files.* that only read. Paths mean the same as for a command inside. */
#include <errno.h>
#include <stdio.h>

#include "base/path-text.h"
#include "methods/area.h"

enum { LIMIT_DEFAULT = 1000 };

/* --- contents --- */

static int method_files_read(RpcCall *call, void *data, Error *error) {
        return method_answer_content(data, call, rpc_string(call, "path"), error);
}

static int method_files_open(RpcCall *call, void *data, Error *error) {
        return method_answer_fd(data, call, rpc_string(call, "path"), error);
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

/* work->to is the last name of the previous page. */
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

/* work->to is the glob for names of files. */
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

/* --- the table --- */

static const RpcParam read_params[] = {
        METHOD_PATH("path"),
        METHOD_PART,
};

static const RpcParam path_params[] = {
        METHOD_PATH("path"),
};

static const RpcParam list_params[] = {
        { "path", RPC_PATH, false, 4096, "a directory; default: the workspace" },
        { "recursive", RPC_BOOL, false, 0,
          "list everything below it, too, without following symlinks" },
        { "after", RPC_PATH, false, 4096,
          "only names after this one: \"next\" of the previous page" },
        { "limit", RPC_UINT, false, FILES_LIST_MAX, "maximum number of entries; default 1000" },
};

static const RpcParam glob_params[] = {
        { "pattern", RPC_STRING, true, 1024, "pattern such as \"src/**/*.py\", relative to path" },
        { "path", RPC_PATH, false, 4096, "a directory; default: the workspace" },
        { "limit", RPC_UINT, false, FILES_LIST_MAX, "maximum number of entries; default 1000" },
};

static const RpcParam grep_params[] = {
        { "pattern", RPC_STRING, true, 1024, "a POSIX extended regular expression" },
        { "path", RPC_PATH, false, 4096, "a directory or a file; default: the workspace" },
        { "ignore_case", RPC_BOOL, false, 0, "ignore the case of letters" },
        { "glob", RPC_STRING, false, 1024,
          "search only files whose name matches, such as \"*.py\"" },
        { "limit", RPC_UINT, false, FILES_LIST_MAX, "maximum number of lines; default 1000" },
};

static const RpcParam stat_params[] = {
        METHOD_PATH("path"),
        { "follow", RPC_BOOL, false, 0, "follow a symlink at the end of the path; default true" },
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
        { "entries", RPC_SHAPES, RPC_ALWAYS, "the paths that match", .shape = &entry_shape },
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
        { "matches", RPC_SHAPES, RPC_ALWAYS, "the lines that match", .shape = &line_shape },
        { "more", RPC_BOOL, RPC_ALWAYS, "whether there are more" },
};
static const RpcShape matches_shape = { .name = "Matches", RPC_FIELDS(grep_fields) };

static const RpcField exists_fields[] = {
        { "exists", RPC_BOOL, RPC_ALWAYS, "whether the path exists" },
};
static const RpcShape exists_shape = { .name = "Exists", RPC_FIELDS(exists_fields) };

#define EXAMPLE_ENTRY                                                                              \
        "{\"name\": \"notes.txt\", \"type\": \"file\", \"size\": 12,"                              \
        " \"modified_ms\": 1700000000000, \"mode\": 420, \"target\": null}"

static const RpcMethod methods[] = {
        {
                .name = "files.read",
                .help = "reads a part of a file; text ends with a complete character",
                RPC_PARAMS(read_params),
                .result = &method_content,
                METHOD_READS_FILES,
                .example = { "{\"path\": \"notes.txt\"}",
                             "{\"content\": \"first line\\n\", \"next\": 11, \"eof\": true,"
                             " \"size\": 11}" },
                .function = method_files_read,
        },
        {
                .name = "files.open",
                .help = "opens a file, and returns an fd of it (SCM_RIGHTS)",
                RPC_PARAMS(path_params),
                .result = &method_opened,
                METHOD_READS_FILES,
                .example = { "{\"path\": \"notes.txt\"}",
                             "{\"size\": 23, \"modified_ms\": 1700000000000, \"mode\": 420}" },
                .function = method_files_open,
        },
        {
                .name = "files.list",
                .help = "lists a directory",
                RPC_PARAMS(list_params),
                .result = &list_shape,
                METHOD_READS_FILES,
                .example = { "{\"path\": \".\"}",
                             "{\"entries\": [" EXAMPLE_ENTRY "], \"next\": null}" },
                .function = method_files_list,
        },
        {
                .name = "files.glob",
                .help = "lists the paths that match a pattern",
                RPC_PARAMS(glob_params),
                .result = &found_shape,
                METHOD_READS_FILES,
                .example = { "{\"pattern\": \"*.txt\"}",
                             "{\"entries\": [" EXAMPLE_ENTRY "], \"more\": false}" },
                .function = method_files_glob,
        },
        {
                .name = "files.grep",
                .help = "finds lines that match a regular expression, in all files that are not "
                        "binary",
                RPC_PARAMS(grep_params),
                .result = &matches_shape,
                METHOD_READS_FILES,
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
                METHOD_READS_FILES,
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
                METHOD_READS_FILES,
                .example = { "{\"path\": \"notes.txt\"}", "{\"exists\": true}" },
                .function = method_files_exists,
        },
};
const MethodArea method_files_area = { methods, ELEMENTSOF(methods) };
