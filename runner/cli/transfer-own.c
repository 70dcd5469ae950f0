/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the caller's own files, for copies in both directions. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/beneath.h"
#include "base/paths.h"
#include "base/strings.h"
#include "base/sys.h"
#include "cli/ask.h"
#include "cli/transfer.h"

/* --- errors --- */

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

int transfer_refuse(const char *doing, const char *path, int r, Error *reterr) {
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

/* --- opening --- */

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

/* Opening a FIFO waits for its other end, and a command may have made the FIFO. So a FIFO with a
 * name is opened only if holt has it open already, such as /dev/stdin. A pipe without a name, such
 * as a shell's <(...), has another end. */
int transfer_open_stream(int path_fd, const struct stat *st, int flags) {
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

int transfer_open_input(RpcClient *client, const char *file, int *ret_fd, struct stat *ret_st,
                        Error *reterr) {
        _cleanup_close_ int path_fd = transfer_open_own(client, file, O_PATH);
        int fd;

        if (path_fd < 0 || fstat(path_fd, ret_st) < 0)
                return transfer_refuse("read", file, path_fd < 0 ? path_fd : -errno, reterr);
        if (S_ISDIR(ret_st->st_mode))
                return transfer_refuse("read", file, -EISDIR, reterr);
        fd = transfer_open_stream(path_fd, ret_st, O_RDONLY);
        if (fd < 0)
                return transfer_refuse("read", file, fd, reterr);
        *ret_fd = fd;
        return 0;
}

/* --- standard streams --- */

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
