/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/beneath.h"
#include "base/path-text.h"
#include "base/paths.h"
#include "base/strings.h"
#include "base/sys.h"
#include "cli/ask.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/shown.h"
#include "files/copy.h"
#include "keeper/connect.h"
#include "session/live.h"

enum { BUFFER_SIZE = 128 * 1024 };

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
                r = session_find_keeper(session, dir_fd, ret_fd, reterr);
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

/* --- out of the session --- */

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

static const struct {
        int errnum;
        const char *cure;
} cures[] = {
        { ENOENT, "This is a path on the host, relative to your working directory. For a path in a "
                  "session, write NAME:PATH with holt cp." },
        { EISDIR, "Copy directories with holt cp -r." },
        { ENOTDIR, "A part of the path is not a directory." },
        { EACCES, "Its permissions refuse you access." },
        { ENOSPC, "The disk is full." },
        { ENXIO, "holt reads and writes a FIFO or socket only as \"-\", with < or >, because its "
                 "other end may be unused." },
        { EAGAIN, "A process has a lease on it (fcntl(2), F_SETLEASE): end that process." },
        { ELOOP, "The path contains a symlink in a directory that commands in the session can "
                 "write. holt follows no symlink there." },
};

static int transfer_refuse(const char *doing, const char *path, int r, Error *reterr) {
        char quoted[1024];

        (void)error_set(reterr, r == -ENOENT ? ERROR_MISSING : ERROR_SETUP, -r, "cannot %s \"%s\"",
                        doing, str_quote(path, quoted, sizeof(quoted)));
        if (r == -ENOENT && streq(doing, "write"))
                return error_cure(reterr, r,
                                  "The directory does not exist: make it, or correct the path.");
        for (size_t i = 0; i < ELEMENTSOF(cures); i++)
                if (cures[i].errnum == -r)
                        return error_cure(reterr, r, "%s", cures[i].cure);
        return r;
}

/* The new file that is being written. The signal handler removes it. */
static NewFile *volatile unfinished;

static void transfer_on_signal(int number) {
        NewFile *file = unfinished;

        if (file && file->unfinished.name[0])
                (void)unlinkat(file->place.dir_fd, file->unfinished.name, 0);
        (void)raise(number);
}

static void clean_up_on_signals(void) {
        static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
        const struct sigaction action = { .sa_handler = transfer_on_signal,
                                          .sa_flags = (int)SA_RESETHAND | SA_NODEFER };

        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                (void)sigaction(numbers[i], &action, NULL);
}

static mode_t get_umask(void) {
        mode_t mask = umask(0);

        (void)umask(mask);
        return mask;
}

int transfer_open_own(RpcClient *client, const char *path, int flags) {
        _cleanup_(strlist_clear) StrList writable = { 0 };
        _cleanup_(rpc_message_clear) RpcMessage show = RPC_MESSAGE_NONE;
        _cleanup_free_ char *full = NULL;
        char cwd[PATH_MAX];
        JsonWriter w = { 0 };
        int r;

        if (!getcwd(cwd, sizeof(cwd)))
                return -errno;
        full = path_join(cwd, path);
        json_write_object(&w, NULL);
        r = transfer_call(client, "session.show", &w, FD_NONE, &show, NULL);
        if (r == 0)
                r = full ? ask_writable(show.result, &writable) : -ENOMEM;
        return r < 0 ? r : beneath_open(full, &writable, flags, 0);
}

/* Returns the number of stdin, stdout or stderr that is this file and is open in that way, or
 * FD_NONE. */
static int find_own(const struct stat *st, int flags) {
        struct stat own;

        for (int fd = 0; fd <= 2; fd++) {
                const int mode = fcntl(fd, F_GETFL) & O_ACCMODE;

                if (fstat(fd, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino &&
                    (mode == (flags & O_ACCMODE) || mode == O_RDWR))
                        return fd;
        }
        return FD_NONE;
}

/* Opens the file of an O_PATH fd. Opening a FIFO waits for its other end, and a command may have
 * made it. So a FIFO with a name is opened only if holt has it open already, such as /dev/stdin. A
 * pipe without a name, such as a shell's <(...), has another end. */
static int open_stream(int path_fd, const struct stat *st, int flags) {
        char path[PATH_MAX];
        const bool waits = S_ISSOCK(st->st_mode) || S_ISFIFO(st->st_mode);
        int r = path_of_fd(path_fd, path), fd = waits ? find_own(st, flags) : FD_NONE;

        if (r < 0)
                return r;
        if (waits && fd < 0 && path[0] == '/')
                return -ENXIO;
        /* Opening it again would fail if another user has made it. */
        if (fd >= 0)
                return fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (S_ISREG(st->st_mode)) /* otherwise a lease that a command holds would make holt wait */
                flags |= O_NONBLOCK;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
        fd = open(path, flags | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int transfer_place(RpcClient *client, const char *path, FilesPlace *ret) {
        _cleanup_free_ char *copy = strdup(path);
        char *slash = copy ? strrchr(copy, '/') : NULL;
        const char *name = slash ? slash + 1 : copy, *directory = slash ? copy : ".";

        if (!copy)
                return -ENOMEM;
        if (slash)
                *slash = '\0';
        if (name[0] == '\0' || strlen(name) > NAME_MAX)
                return name[0] ? -ENAMETOOLONG : -EISDIR;
        (void)strcpy(ret->name, name);
        ret->dir_fd = transfer_open_own(client, slash == copy ? "/" : directory,
                                        O_PATH | O_DIRECTORY);
        return ret->dir_fd < 0 ? ret->dir_fd : 0;
}

/* Writes a new file beside the old one, and then renames it over the old one. */
static int transfer_replace(RpcClient *client, int source_fd, const char *path, unsigned mode) {
        _cleanup_(new_file_clear) NewFile file = NEW_FILE_NONE;
        uint64_t length = 0;
        int r = transfer_place(client, path, &file.place);

        if (r == 0)
                r = new_file_make(&file);
        if (r < 0)
                return r;
        unfinished = &file;
        clean_up_on_signals();
        progress_file(source_fd);
        r = files_copy_contents(source_fd, file.fd, &length);
        if (r == 0)
                r = new_file_settle(&file, mode, true);
        progress_done(r == 0, length);
        unfinished = NULL;
        return r;
}

static int write_zeros(int fd, uint64_t length) {
        static const char zeros[64 * 1024];
        int r = 0;

        for (uint64_t part; r == 0 && length > 0; length -= part) {
                part = length < sizeof(zeros) ? length : sizeof(zeros);
                r = sys_write_all(fd, zeros, (size_t)part);
        }
        return r;
}

/* Returns whether a hole can be made in fd: not if others append to it (O_APPEND). */
static bool takes_holes(int fd) {
        struct stat st;
        int flags = fcntl(fd, F_GETFL);

        return flags >= 0 && !(flags & O_APPEND) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Leaves a hole in a regular file. If the file has data there, it is overwritten by zeros. */
static int write_hole(int fd, uint64_t length) {
        const off_t at = lseek(fd, 0, SEEK_CUR);
        uint64_t old;
        struct stat st;
        off_t end;
        int r;

        if (at < 0 || fstat(fd, &st) < 0)
                return -errno;
        old = st.st_size > at ? (uint64_t)(st.st_size - at) : 0;
        r = write_zeros(fd, old < length ? old : length);
        if (r < 0 || old >= length)
                return r;
        if (__builtin_add_overflow(at, length, &end))
                return -EFBIG;
        return ftruncate(fd, end) < 0 || lseek(fd, end, SEEK_SET) < 0 ? -errno : 0;
}

/* Copies a hole at the source's current offset, if it has one. Otherwise a file of holes, which
 * costs a command nothing, would fill the caller's disk. */
static int copy_hole(int source_fd, int fd, uint64_t *length) {
        const off_t at = lseek(source_fd, 0, SEEK_CUR);
        off_t data = at < 0 ? -1 : lseek(source_fd, at, SEEK_DATA);
        struct stat st;
        int r;

        if (data < 0 && errno == ENXIO && at >= 0 && fstat(source_fd, &st) == 0)
                data = st.st_size;
        if (data <= at) /* no hole here, or the file system does not report holes */
                return at < 0 || lseek(source_fd, at, SEEK_SET) >= 0 ? 0 : -errno;
        r = write_hole(fd, (uint64_t)(data - at));
        if (r == 0 && lseek(source_fd, data, SEEK_SET) < 0)
                r = -errno;
        *length += (uint64_t)(data - at);
        return r;
}

/* Writes to a file that cannot be replaced: a pipe, a terminal, a device, or a file that is
 * stdout. */
static int write_to(int source_fd, int fd) {
        _cleanup_free_ char *buffer = malloc(BUFFER_SIZE);
        const bool holes = takes_holes(fd);
        int r = buffer ? 0 : -ENOMEM;
        uint64_t length = 0;
        ssize_t n = 1;

        while (r == 0 && n != 0) {
                r = holes ? copy_hole(source_fd, fd, &length) : 0;
                if (r < 0)
                        break;
                n = read(source_fd, buffer, BUFFER_SIZE);
                if (n < 0 && errno != EINTR)
                        return -errno;
                r = n > 0 ? shown_write(fd, buffer, (size_t)n) : 0;
                length += n > 0 ? (uint64_t)n : 0;
        }
        progress_done(r == 0, length);
        return r;
}

static int save_to(RpcClient *client, int source_fd, int there_fd) {
        _cleanup_close_ int fd = FD_NONE;
        char real[PATH_MAX];
        struct stat st;
        int r;

        if (fstat(there_fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (S_ISREG(st.st_mode)) {
                /* A link of the caller stays, and its target is replaced. */
                r = path_of_fd(there_fd, real);
                return r < 0 ? r : transfer_replace(client, source_fd, real, st.st_mode);
        }
        fd = open_stream(there_fd, &st, O_WRONLY);
        return fd < 0 ? fd : write_to(source_fd, fd);
}

static int transfer_save(RpcClient *client, int source_fd, unsigned mode, const char *path) {
        _cleanup_close_ int there_fd = transfer_open_own(client, path, O_PATH);

        if (there_fd == -ENOENT)
                return transfer_replace(client, source_fd, path, mode & ~get_umask());
        return there_fd < 0 ? there_fd : save_to(client, source_fd, there_fd);
}

int transfer_own_output(const char *file) {
        static const struct {
                const char *file;
                int fd;
        } outputs[] = {
                { "-", STDOUT_FILENO },
                { "/dev/stdout", STDOUT_FILENO },
                { "/dev/fd/1", STDOUT_FILENO },
                { "/proc/self/fd/1", STDOUT_FILENO },
                { "/dev/stderr", STDERR_FILENO },
                { "/dev/fd/2", STDERR_FILENO },
                { "/proc/self/fd/2", STDERR_FILENO },
        };

        for (size_t i = 0; i < ELEMENTSOF(outputs); i++)
                if (streq(file, outputs[i].file))
                        return outputs[i].fd;
        return FD_NONE;
}

int transfer_get(RpcClient *client, const char *path, const char *file, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        int r, own_fd = transfer_own_output(file);
        unsigned mode = 0;

        r = transfer_open_file(client, path, &fd, &mode, reterr);
        if (r < 0)
                return r;
        r = own_fd >= 0 ? write_to(fd, own_fd) : transfer_save(client, fd, mode, file);
        return r < 0 ? transfer_refuse("write", file, r, reterr) : 0;
}

/* --- into the session --- */

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

int transfer_open_input(RpcClient *client, const char *file, int *ret_fd, struct stat *ret_st,
                        Error *reterr) {
        _cleanup_close_ int path_fd = transfer_open_own(client, file, O_PATH);
        int fd;

        if (path_fd < 0 || fstat(path_fd, ret_st) < 0)
                return transfer_refuse("read", file, path_fd < 0 ? path_fd : -errno, reterr);
        if (S_ISDIR(ret_st->st_mode))
                return transfer_refuse("read", file, -EISDIR, reterr);
        fd = open_stream(path_fd, ret_st, O_RDONLY);
        if (fd < 0)
                return transfer_refuse("read", file, fd, reterr);
        *ret_fd = fd;
        return 0;
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
