/* SPDX-License-Identifier: Apache-2.0 */
/* Contents and names of files in requests and replies. */
#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/path-text.h"
#include "base/utf8.h"
#include "methods/area.h"

/* --- requests --- */

static int refuse_base64(const char *what, Error *error) {
        int r = error_set(error, ERROR_USAGE, 0, "%s is not valid base64", what);

        return error_cure(error, r, "Use RFC 4648: A-Z a-z 0-9 + /, padded, on one line.");
}

int method_take_content(const RpcCall *call, const char *text, char **ret, size_t *ret_length,
                        Error *error) {
        const char *content = rpc_string(call, text), *base64 = rpc_string(call, "base64");
        int r;

        if (!content == !base64) {
                r = error_set(error, ERROR_USAGE, 0, "%s takes either %s or base64",
                              rpc_call_method(call)->name, text);
                return error_cure(error, r, "Put text into %s, or bytes into base64.", text);
        }
        if (base64) {
                r = base64_decode(base64, ret, ret_length);
                return r == -ENOMEM ? error_oom(error) : r < 0 ? refuse_base64("base64", error) : 0;
        }
        *ret = strdup(content);
        *ret_length = strlen(content);
        return *ret ? 0 : error_oom(error);
}

int method_write_content(const Keeper *keeper, RpcCall *call, const FilesWorkKind *kind,
                         const char *path, unsigned mode, bool make_parents, Error *error) {
        _cleanup_free_ char *content = NULL;
        size_t length = 0;
        FilesWork *work;
        int r = method_take_content(call, "content", &content, &length, error);

        if (r == 0)
                r = work_new(keeper->files, path, NULL, NULL, &work, error);
        if (r < 0)
                return r;
        work->content = TAKE_PTR(content);
        work->length = length;
        work->mode = mode;
        work->make_parents = make_parents;
        return work_start(keeper->works, call, kind, work, error);
}

/* --- replies --- */

static void write_missed(JsonWriter *w, const FilesMissed *missed) {
        if (missed->error == 0)
                return;
        json_write_object(w, "missed");
        json_write_name(w, "name", missed->path);
        json_write_string(w, "errno", error_errno_name(-missed->error));
        json_write_end(w);
}

void method_write_next(JsonWriter *w, const char *key, const FilesWork *work) {
        if ((work->more || work->full) && work->last[0])
                json_write_path(w, key, work->last);
        else
                json_write_null(w, key);
        write_missed(w, &work->missed);
}

/* Bytes that a character takes in JSON, at most. */
static size_t written_size(const char *s, size_t sequence) {
        const unsigned char c = (unsigned char)*s;

        if (sequence > 1 && c != 0xc2)
                return sequence;
        return sequence == 1 && c >= ' ' && c != '"' && c != '\\' && c != 0x7f ? 1 : 6;
}

/* Returns how many bytes of the text fit into a reply. The end falls between characters, so that a
 * client that reads the file in ranges gets whole characters. */
static size_t text_that_fits(const char *text, size_t length, bool eof) {
        size_t held = eof ? 0 : utf8_unfinished(text, length), done = 0, size = 0;

        if (held < length)
                length -= held;
        while (done < length) {
                size_t sequence = utf8_sequence(text + done, length - done);

                size += written_size(text + done, sequence);
                if (size > METHOD_ANSWER_MAX)
                        break;
                done += sequence > 0 ? sequence : 1;
        }
        return done;
}

static uint64_t size_of(const Keeper *keeper, const char *path, uint64_t least) {
        FileStat stat = { 0 };
        uint64_t size = least;

        if (files_stat(keeper->files, path, true, &stat, NULL) == 0 && stat.size > least)
                size = stat.size;
        file_stat_clear(&stat);
        return size;
}

int method_answer_content(const Keeper *keeper, RpcCall *call, const char *path, Error *error) {
        const uint64_t offset = rpc_uint(call, "offset", 0);
        const bool base64 = rpc_bool(call, "base64", false);
        _cleanup_free_ char *data = NULL, *text = NULL;
        size_t length = 0, given;
        bool eof = false;
        JsonWriter *w;
        int r = files_read(keeper->files, path, offset, rpc_uint(call, "length", FILES_READ_MAX),
                           &data, &length, &eof, error);

        if (r < 0)
                return r;
        given = base64 ? length : text_that_fits(data, length, eof);
        text = base64 ? base64_encode(data, length) : NULL;
        if (base64 && !text)
                return error_oom(error);
        w = rpc_result(call);
        if (base64)
                json_write_string(w, "content", text);
        else
                json_write_bytes(w, "content", data, given);
        json_write_uint(w, "next", offset + given);
        json_write_bool(w, "eof", eof && given == length);
        json_write_uint(w, "size", size_of(keeper, path, eof ? 0 : offset + given));
        rpc_reply(call);
        return 0;
}

int method_answer_fd(const Keeper *keeper, RpcCall *call, const char *path, Error *error) {
        _cleanup_close_ int fd = FD_NONE;
        struct stat st;
        FileStat stat;
        JsonWriter *w;
        int r = files_open_read(keeper->files, path, &fd, error);

        if (r == 0 && fstat(fd, &st) < 0)
                r = error_set(error, ERROR_SETUP, errno, "cannot examine the opened file");
        if (r < 0)
                return r;
        files_stat_fill(&st, &stat);
        w = rpc_result(call);
        json_write_uint(w, "size", stat.size);
        json_write_uint(w, "modified_ms", stat.modified_ms);
        json_write_uint(w, "mode", stat.mode);
        rpc_reply_fds(call, &fd, 1);
        return 0;
}

/* --- shapes --- */

static const RpcField content_fields[] = {
        { "content", RPC_STRING, RPC_ALWAYS, "text, or base64" },
        { "next", RPC_UINT, RPC_ALWAYS, "offset of the next part" },
        { "eof", RPC_BOOL, RPC_ALWAYS, "whether the file ends here" },
        { "size", RPC_UINT, RPC_ALWAYS, "size of the file, in bytes" },
};
const RpcShape method_content = { .name = "FileContent", RPC_FIELDS(content_fields) };

static const RpcField missed_fields[] = {
        METHOD_NAME_FIELDS,
        { "errno", RPC_STRING, RPC_ALWAYS, "why: \"EACCES\", \"E2BIG\" or \"ENAMETOOLONG\"" },
};
const RpcShape method_missed = { .name = "Missed",
                                 .help = "a directory that could not be listed",
                                 RPC_FIELDS(missed_fields) };

static const RpcField size_fields[] = {
        { "size", RPC_UINT, RPC_ALWAYS, "size of the file, in bytes" },
};
const RpcShape method_size = { .name = "FileSize", RPC_FIELDS(size_fields) };

static const RpcField opened_fields[] = {
        { "size", RPC_UINT, RPC_ALWAYS, "size of the file, in bytes" },
        { "modified_ms", RPC_UINT, RPC_ALWAYS,
          "time of the last change, in milliseconds since the epoch" },
        { "mode", RPC_UINT, RPC_ALWAYS, "permission bits" },
};
const RpcShape method_opened = { .name = "FileOpened", RPC_FIELDS(opened_fields) };

static const char *const types[] = { "file", "directory", "link", "other", NULL };
static_assert(ELEMENTSOF(types) == FILE_TYPE_MAX + 1, "every type is listed");

static const RpcField stat_fields[] = {
        { "type", RPC_STRING, RPC_ALWAYS, "type of the file", .values = types },
        { "size", RPC_UINT, RPC_ALWAYS, "in bytes" },
        { "modified_ms", RPC_UINT, RPC_ALWAYS,
          "time of the last change, in milliseconds since the epoch" },
        { "mode", RPC_UINT, RPC_ALWAYS, "permission bits" },
        { "target", RPC_STRING, RPC_OR_NULL, "the target of a link" },
};
const RpcShape method_stat = { .name = "FileStat", RPC_FIELDS(stat_fields) };
