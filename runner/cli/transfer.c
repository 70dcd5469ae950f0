/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path-text.h"
#include "base/paths.h"
#include "base/strings.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "keeper/connect.h"
#include "session/live.h"

/* --- requests --- */

/* Makes a client of fd, which it takes over, and sends a first request. If that is answered, the
 * keeper or reader stays for later requests. */
static int transfer_greet(int fd, RpcClient **ret, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        RpcClient *client = NULL;
        int r = rpc_client_new(fd, &client, reterr);

        if (r == 0)
                r = rpc_client_call(client, "session.show", NULL, NULL, 0, &message, reterr);
        if (r == 0)
                *ret = client;
        else
                rpc_client_free(client);
        return r;
}

int transfer_open(const char *session, RpcClient **ret, Error *reterr) {
        unsigned tries = 0;
        int fd, r;

        do {
                r = keeper_connect(session, &fd, reterr);
                if (r == 0)
                        r = transfer_greet(fd, ret, reterr);
        } while (keeper_may_retry(r, &tries));
        return r;
}

/* Connects to the keeper if the session is live, and starts a reader otherwise. */
static int connect_to_read(const char *session, int *ret_fd, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE;
        pid_t ignored;
        int r = session_open(session, &dir_fd, NULL, reterr);

        if (r == 0)
                r = session_find_keeper(session, dir_fd, FIND_TIME, ret_fd, reterr);
        return r == -ENOENT && dir_fd >= 0 ? reader_start(session, dir_fd, ret_fd, &ignored, reterr)
                                           : r;
}

/* After any failure, transfer_open() tries again, and reports the reason. */
int transfer_open_to_read(const char *session, RpcClient **ret, Error *reterr) {
        int fd;

        if (connect_to_read(session, &fd, NULL) == 0 && transfer_greet(fd, ret, NULL) == 0)
                return 0;
        return transfer_open(session, ret, reterr);
}

JsonWriter transfer_path(const char *path) {
        JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_path(&w, "path", path);
        return w;
}

int transfer_call(RpcClient *client, const char *method, JsonWriter *params, int fd,
                  RpcMessage *ret, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        int r;

        json_write_end(params);
        r = json_write_finish(params) < 0
                    ? error_oom(reterr)
                    : rpc_client_call(client, method, params, &fd, fd >= 0, &message, reterr);
        json_write_clear(params);
        if (r == 0 && ret) {
                *ret = message;
                message = (RpcMessage)RPC_MESSAGE_NONE;
        }
        return r;
}

/* --- one operation --- */

enum { OPERANDS_SHOWN = 16 };

/* Writes the operands. If there are many, writes the first ones, and the last one, which is the
 * destination. */
static void write_operands(const char *const *operands, JsonWriter *w) {
        size_t count = 0;

        while (operands[count])
                count++;
        json_write_array(w, "operands");
        for (size_t i = 0; i < count; i++)
                if (i < OPERANDS_SHOWN || i + 1 == count)
                        json_write_string(w, NULL, operands[i]);
                else if (i == OPERANDS_SHOWN)
                        json_write_string(w, NULL, "...");
        json_write_end(w);
}

void transfer_begin(RpcClient *client, const char *name, const char *const *operands) {
        JsonWriter w = { 0 };
        Error error;

        json_write_object(&w, NULL);
        json_write_string(&w, "name", name);
        write_operands(operands, &w);
        if (transfer_call(client, "history.begin", &w, FD_NONE, NULL, &error) < 0 &&
            (error.errnum == ENOSPC || error.errnum == EDQUOT))
                report_unrecorded(error.text, stderr);
        progress_begin();
}

void transfer_end(RpcClient *client, int r, const Error *error) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        JsonWriter w = { 0 };
        Error ignored;

        progress_end();
        json_write_object(&w, NULL);
        json_write_bool(&w, "success", r >= 0);
        if (r < 0) {
                json_write_string(&w, "kind", error_kind_name(error->kind));
                if (error->errnum > 0)
                        json_write_string(&w, "errno", error_errno_name(error->errnum));
                json_write_string(&w, "error", error->text);
        }
        if (transfer_call(client, "history.end", &w, FD_NONE, &message, &ignored) == 0)
                report_unrecorded(json_member_text(message.result, "unrecorded"), stderr);
}

/* --- names --- */

char *transfer_name(const char *path) {
        size_t end = strlen(path), start;

        while (end > 0 && path[end - 1] == '/')
                end--;
        for (start = end; start > 0 && path[start - 1] != '/';)
                start--;
        return end > start ? strndup(path + start, end - start) : strdup(".");
}

char *transfer_entry_name(const JsonValue *entry) {
        const JsonValue *raw = json_member(entry, "raw"), *name = json_member(entry, "name");
        const char *text = raw ? json_string(raw) : json_string(name);
        char *path = NULL;

        return text && path_from_text(text, &path) == 0 ? path : NULL;
}

bool transfer_is_directory(RpcClient *client, const char *path) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        JsonWriter w = transfer_path(path);
        const char *type = NULL;

        if (transfer_call(client, "files.stat", &w, FD_NONE, &message, NULL) == 0)
                type = json_string(json_member(message.result, "type"));
        return type && streq(type, "directory");
}

static int refuse_directory(const char *path, Error *reterr) {
        char quoted[1024];
        int r = error_set(reterr, ERROR_MISSING, ENOENT, "the directory \"%s\" does not exist",
                          str_quote(path, quoted, sizeof(quoted)));

        return error_cure(reterr, r, "To make it: holt files NAME mkdir --parents %s", quoted);
}

int transfer_cure_parents(int r, const char *path, Error *reterr) {
        return r != -ENOENT || path_is_tilde(path)
                       ? r
                       : error_cure(reterr, r,
                                    "Make the directory first: holt files NAME mkdir --parents "
                                    "DIRECTORY");
}

int transfer_target(RpcClient *client, const char *path, const char *name, char **ret,
                    Error *reterr) {
        _cleanup_free_ char *last = transfer_name(name);
        const size_t length = strlen(path);
        const bool ends = length > 0 && path[length - 1] == '/';
        char *target;

        if (!last)
                return error_oom(reterr);
        if (length == 0)
                target = TAKE_PTR(last);
        else if (transfer_is_directory(client, path))
                target = str_format("%s%s%s", path, ends ? "" : "/", last);
        else if (ends)
                return refuse_directory(path, reterr);
        else
                target = strdup(path);
        if (!target)
                return error_oom(reterr);
        *ret = target;
        return 0;
}

int transfer_put_target(RpcClient *client, const char *path, const char *file, const char *cure,
                        char **ret, Error *reterr) {
        int r;

        if (!streq(file, "-") || (path[0] && !transfer_is_directory(client, path)))
                return transfer_target(client, path, file, ret, reterr);
        r = error_set(reterr, ERROR_USAGE, 0, "input from stdin has no file name");
        return error_cure(reterr, r, "Name the new file: %s", cure);
}

/* --- files of the session --- */

int transfer_open_file(RpcClient *client, const char *path, int *ret_fd, unsigned *ret_mode,
                       Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        JsonWriter w = transfer_path(path);
        uint64_t mode = 0;
        int r = transfer_call(client, "files.open", &w, FD_NONE, &message, reterr);

        if (r < 0)
                return r;
        (void)json_uint(json_member(message.result, "mode"), 07777, &mode);
        *ret_fd = TAKE_FD(message.fds[0]);
        *ret_mode = (unsigned)mode;
        return 0;
}

int transfer_put_fd(RpcClient *client, int fd, const char *path, unsigned mode, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        JsonWriter w = transfer_path(path);
        uint64_t size = 0;
        int r;

        if (mode)
                json_write_uint(&w, "mode", mode & 0777);
        progress_file(fd);
        r = transfer_call(client, "files.receive", &w, fd, &message, reterr);
        if (r == 0)
                (void)json_uint(json_member(message.result, "size"), JSON_INTEGER_MAX, &size);
        progress_done(r == 0, size);
        return transfer_cure_parents(r, path, reterr);
}

int transfer_put(RpcClient *client, const char *file, const char *path, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        struct stat st = { 0 };
        int r;

        if (streq(file, "-"))
                return transfer_put_fd(client, STDIN_FILENO, path, 0, reterr);
        r = transfer_open_input(client, file, &fd, &st, reterr);
        if (r < 0)
                return r;
        return transfer_put_fd(client, fd, path, S_ISREG(st.st_mode) ? st.st_mode : 0, reterr);
}
