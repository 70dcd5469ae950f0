/* SPDX-License-Identifier: Apache-2.0 */
/* The methods of files.* that change files. Paths mean the same as for a command inside. */
#include "files/receive.h"
#include "files/staged.h"
#include "methods/area.h"

static unsigned mode_of(const RpcCall *call) {
        return (unsigned)rpc_uint(call, "mode", 0);
}

/* --- contents --- */

static int files_run_write(FilesWork *work, Error *error) {
        work->size = work->length;
        return files_write(work->files, work->path, work->content, work->length, work->mode,
                           work->make_parents, error);
}

static int files_run_append(FilesWork *work, Error *error) {
        return files_append(work->files, work->path, work->content, work->length, &work->size,
                            error);
}

static void files_answer_size(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        json_write_uint(w, "size", work->size);
}

static int method_files_write(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { files_run_write, files_answer_size, .ordered = true };

        return method_write_content(data, call, &kind, rpc_string(call, "path"), mode_of(call),
                                    rpc_bool(call, "make_parents", false), error);
}

static int method_files_append(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { files_run_append, files_answer_size, .ordered = true };

        return method_write_content(data, call, &kind, rpc_string(call, "path"), 0, false, error);
}

static int method_files_receive(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;

        return receive_start(keeper->receives, call, rpc_string(call, "path"), mode_of(call),
                             rpc_bool(call, "make_parents", false), NULL, error);
}

/* --- directories, links and names --- */

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

static int method_files_link(RpcCall *call, void *data, Error *error) {
        const Keeper *keeper = data;
        int r = files_link(keeper->files, rpc_string(call, "path"), rpc_string(call, "target"),
                           error);

        if (r == 0)
                rpc_reply_empty(call);
        return r;
}

static void files_answer_nothing(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        (void)work;
        (void)w;
}

static int files_run_remove(FilesWork *work, Error *error) {
        return files_remove(work->files, work->path, work->recursive, error);
}

static int method_files_remove(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { files_run_remove, files_answer_nothing };
        const Keeper *keeper = data;
        FilesWork *work;
        int r = work_new(keeper->files, rpc_string(call, "path"), NULL, NULL, &work, error);

        if (r < 0)
                return r;
        work->recursive = rpc_bool(call, "recursive", false);
        return work_start(keeper->works, call, &kind, work, error);
}

static int files_run_move(FilesWork *work, Error *error) {
        return files_move(work->files, work->path, work->to, work->replace, error);
}

/* Makes the work of a method with the parameters from, to and replace. */
static int files_work_pair(const RpcCall *call, const Keeper *keeper, FilesWork **ret,
                           Error *error) {
        int r = work_new(keeper->files, rpc_string(call, "from"), rpc_string(call, "to"), NULL, ret,
                         error);

        if (r == 0)
                (*ret)->replace = rpc_bool(call, "replace", false);
        return r;
}

static int method_files_move(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { files_run_move, files_answer_nothing };
        const Keeper *keeper = data;
        FilesWork *work;
        int r = files_work_pair(call, keeper, &work, error);

        return r == 0 ? work_start(keeper->works, call, &kind, work, error) : r;
}

static int files_run_copy(FilesWork *work, Error *error) {
        return files_copy(work->files, work->path, work->to, work->recursive, work->replace,
                          &work->left_out, error);
}

static void files_answer_copy(const RpcCall *call, const FilesWork *work, JsonWriter *w) {
        (void)call;
        json_write_uint(w, "left_out", work->left_out);
}

static int method_files_copy(RpcCall *call, void *data, Error *error) {
        static const FilesWorkKind kind = { files_run_copy, files_answer_copy };
        const Keeper *keeper = data;
        FilesWork *work;
        int r = files_work_pair(call, keeper, &work, error);

        if (r < 0)
                return r;
        work->recursive = rpc_bool(call, "recursive", false);
        return work_start(keeper->works, call, &kind, work, error);
}

/* --- the table --- */

static const RpcParam write_params[] = {
        METHOD_PATH("path"),
        METHOD_CONTENT,
        METHOD_MODE,
        METHOD_MAKE_PARENTS,
};

static const RpcParam append_params[] = {
        METHOD_PATH("path"),
        METHOD_CONTENT,
};

static const RpcParam receive_params[] = {
        METHOD_PATH("path"),
        METHOD_MODE,
        METHOD_MAKE_PARENTS,
};

static const RpcParam mkdir_params[] = {
        METHOD_PATH("path"),
        { "mode", RPC_UINT, false, 0777, "permission bits; default 0755" },
        METHOD_MAKE_PARENTS,
        { "owned", RPC_BOOL, false, 0,
          "remove the directory when this connection ends, unless files.move has renamed it; its "
          "name must be \".holt-\" and 16 hexadecimal digits" },
};

static const RpcParam link_params[] = {
        METHOD_PATH("path"),
        { "target", RPC_PATH, true, 4096, "the symlink's target, which need not exist" },
};

static const RpcParam remove_params[] = {
        METHOD_PATH("path"),
        { "recursive", RPC_BOOL, false, 0, "remove a directory with everything in it" },
};

static const RpcParam move_params[] = {
        METHOD_PATH("from"),
        { "to", RPC_PATH, true, 4096, "the new path" },
        { "replace", RPC_BOOL, false, 0, "replace a file at the new path" },
};

static const RpcParam copy_params[] = {
        METHOD_PATH("from"),
        { "to", RPC_PATH, true, 4096, "path of the copy" },
        { "recursive", RPC_BOOL, false, 0, "copy a directory with everything in it" },
        { "replace", RPC_BOOL, false, 0, "replace a file at the new path" },
};

static const RpcField copy_fields[] = {
        { "left_out", RPC_UINT, RPC_ALWAYS,
          "number of FIFOs, sockets and devices that were not copied" },
};
static const RpcShape copied_shape = { .name = "Copied", RPC_FIELDS(copy_fields) };

static const RpcMethod methods[] = {
        {
                .name = "files.write",
                .help = "creates a file, or replaces it in one step",
                RPC_PARAMS(write_params),
                METHOD_WRITES_FILE,
                .example = { "{\"path\": \"notes.txt\", \"content\": \"first line\\n\"}",
                             "{\"size\": 11}" },
                .function = method_files_write,
        },
        {
                .name = "files.append",
                .help = "appends to a file, or creates it",
                RPC_PARAMS(append_params),
                METHOD_WRITES_FILE,
                .example = { "{\"path\": \"notes.txt\", \"content\": \"second line\\n\"}",
                             "{\"size\": 23}" },
                .function = method_files_append,
        },
        {
                .name = "files.receive",
                .help = "writes a file from the descriptor that comes with the request "
                        "(SCM_RIGHTS)",
                RPC_PARAMS(receive_params),
                METHOD_WRITES_FILE,
                .example = { "{\"path\": \"notes.txt\"}", "{\"size\": 23}" },
                .function = method_files_receive,
        },
        {
                .name = "files.mkdir",
                .help = "creates a directory",
                RPC_PARAMS(mkdir_params),
                METHOD_CHANGES_FILES,
                .example = { "{\"path\": \"src\", \"make_parents\": true}", "{}" },
                .function = method_files_mkdir,
        },
        {
                .name = "files.link",
                .help = "creates a symlink",
                RPC_PARAMS(link_params),
                METHOD_CHANGES_FILES,
                .example = { "{\"path\": \"latest\", \"target\": \"v2\"}", "{}" },
                .function = method_files_link,
        },
        {
                .name = "files.remove",
                .help = "removes a file or a directory, without following symlinks",
                RPC_PARAMS(remove_params),
                METHOD_CHANGES_FILES,
                .example = { "{\"path\": \"src\", \"recursive\": true}", "{}" },
                .function = method_files_remove,
        },
        {
                .name = "files.move",
                .help = "renames a file or a directory",
                RPC_PARAMS(move_params),
                METHOD_CHANGES_FILES,
                .example = { "{\"from\": \"notes.txt\", \"to\": \"old.txt\"}", "{}" },
                .function = method_files_move,
        },
        {
                .name = "files.copy",
                .help = "copies a file, a symlink or a directory",
                RPC_PARAMS(copy_params),
                .result = &copied_shape,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"from\": \"notes.txt\", \"to\": \"copy.txt\"}",
                             "{\"left_out\": 0}" },
                .function = method_files_copy,
        },
};
const MethodArea method_files_write_area = { methods, ELEMENTSOF(methods) };
