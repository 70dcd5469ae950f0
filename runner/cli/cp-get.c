/* SPDX-License-Identifier: Apache-2.0 */
/* holt cp -r of a directory out of a session. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys.h"
#include "cli/cp-internal.h"
#include "cli/links.h"
#include "cli/progress.h"
#include "cli/transfer.h"
#include "files/copy.h"

/* Opens the directory of name without following a symlink, and sets *ret_last to the last part of
 * name. The copy may lie where a command can write, such as in a workspace, and the command may
 * have made a link. */
static int cp_open_above(int dir_fd, const char *name, const char **ret_last) {
        const char *slash = strrchr(name, '/');
        _cleanup_free_ char *above = slash ? strndup(name, (size_t)(slash - name)) : strdup(".");
        int fd;

        if (!above)
                return -ENOMEM;
        *ret_last = slash ? slash + 1 : name;
        fd = sys_open_beneath(dir_fd, above, O_PATH | O_DIRECTORY);
        return fd < 0 ? -errno : fd;
}

static int refuse_making(const char *what, const char *name, int r, Error *reterr) {
        char quoted[1024];

        return error_set(reterr, ERROR_SETUP, -r, "cannot make %s \"%s\"", what,
                         str_quote(name, quoted, sizeof(quoted)));
}

static int get_file(Cp *cp, const char *path, int dir_fd, const char *name, unsigned mode,
                    Error *reterr) {
        _cleanup_close_ int source_fd = FD_NONE, above_fd = FD_NONE, fd = FD_NONE;
        const char *last;
        uint64_t length = 0;
        unsigned ignored;
        int r = transfer_open_file(cp->client, path, &source_fd, &ignored, reterr);

        if (r < 0)
                return r;
        r = above_fd = cp_open_above(dir_fd, name, &last);
        if (r >= 0) {
                fd = openat(above_fd, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            mode);
                progress_file(source_fd);
                r = fd < 0 ? -errno : files_copy_contents(source_fd, fd, &length);
                progress_done(r == 0, length);
        }
        return r < 0 ? refuse_making("the file", name, r, reterr) : 0;
}

static int get_empty(int dir_fd, const char *name, unsigned mode, Error *reterr) {
        const char *last;
        _cleanup_close_ int above_fd = cp_open_above(dir_fd, name, &last);
        int r = above_fd < 0 ? above_fd : 0;

        if (r == 0 && mkdirat(above_fd, last, mode | 0700) < 0)
                r = -errno;
        return r < 0 ? refuse_making("the directory", name, r, reterr) : 0;
}

/* Makes a symlink. Later writes of the copy do not follow it; see cp_open_above(). */
static int get_link(Cp *cp, int dir_fd, const char *name, const JsonValue *entry, Error *reterr) {
        const char *last;
        _cleanup_close_ int above_fd = cp_open_above(dir_fd, name, &last);
        int r = above_fd < 0 ? above_fd : link_get(entry, name, above_fd, last);

        if (r == 1)
                copied_leave_out(&cp->copied, true, name);
        return r < 0 ? refuse_making("the link", name, r, reterr) : 0;
}

static int get_entry(Cp *cp, const char *path, int dir_fd, const JsonValue *entry, Error *reterr) {
        const char *type = json_member_text(entry, "type");
        _cleanup_free_ char *name = transfer_entry_name(entry);
        _cleanup_free_ char *source = name ? str_format("%s/%s", path, name) : NULL;
        uint64_t mode = 0;

        if (!source)
                return error_oom(reterr);
        if (cp->made && cp_is_own(name, cp->made))
                return 0;
        if (!streq(type, "file") && !streq(type, "directory") && !streq(type, "link")) {
                copied_leave_out(&cp->copied, false, name);
                return 0;
        }
        copied_came_out(&cp->copied, source, name);
        if (streq(type, "link"))
                return get_link(cp, dir_fd, name, entry, reterr);
        (void)json_uint(json_member(entry, "mode"), 07777, &mode);
        return streq(type, "file")
                       ? get_file(cp, source, dir_fd, name, (unsigned)mode & 0777, reterr)
                       : get_empty(dir_fd, name, (unsigned)mode & 0777, reterr);
}

/* Fails if the session could not list an entry. */
static int check_missed(const JsonValue *missed, Error *reterr) {
        _cleanup_free_ char *name = missed ? transfer_entry_name(missed) : NULL;

        if (!missed)
                return 0;
        return cp_refuse_missed(name ? name : "",
                                streq(json_member_text(missed, "errno"), "EACCES") ? EACCES : E2BIG,
                                false, reterr);
}

static int get_page(Cp *cp, const char *path, int dir_fd, char **after, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        JsonWriter w = transfer_path(path);
        const char *next;
        int r;

        json_write_bool(&w, "recursive", true);
        json_write_uint(&w, "limit", FILES_LIST_MAX);
        if (*after)
                json_write_string(&w, "after", *after);
        r = transfer_call(cp->client, "files.list", &w, FD_NONE, &message, reterr);
        if (r < 0)
                return r;
        for (const JsonValue *entry = json_first(json_member(message.result, "entries"));
             r == 0 && entry; entry = json_next(entry))
                r = get_entry(cp, path, dir_fd, entry, reterr);
        if (r == 0)
                r = check_missed(json_member(message.result, "missed"), reterr);
        next = json_string(json_member(message.result, "next"));
        free(*after);
        *after = next ? strdup(next) : NULL;
        return r == 0 && next && !*after ? error_oom(reterr) : r;
}

static int get_tree(Cp *cp, const char *path, int dir_fd, Error *reterr) {
        _cleanup_free_ char *after = NULL;
        int r;

        do
                r = get_page(cp, path, dir_fd, &after, reterr);
        while (r == 0 && after);
        return r;
}

/* Makes a directory with a temporary name beside the place. Somebody may replace it before it is
 * opened, but sys_open_beneath() follows no link. */
static int make_beside(const Cp *cp, const FilesPlace *place, Unfinished *ret, int *ret_fd) {
        int fd;

        unfinished_begin(&cp->notes, place->dir_fd, NULL, ret);
        if (mkdirat(place->dir_fd, ret->name, 0777) < 0)
                return -errno;
        fd = sys_open_beneath(place->dir_fd, ret->name, O_PATH | O_DIRECTORY);
        if (fd < 0)
                return -errno;
        unfinished_made(ret, fd);
        *ret_fd = fd;
        return 0;
}

static void cp_discard(const FilesPlace *made, int fd, Unfinished *unfinished) {
        if (files_remove_opened(made->dir_fd, made->name, fd) == 0)
                unfinished_end(unfinished);
}

int cp_get_directory(Cp *cp, const char *path, const char *target, Error *reterr) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        _cleanup_close_ int dir_fd = FD_NONE;
        _cleanup_(unfinished_leave) Unfinished unfinished = UNFINISHED_NONE;
        FilesPlace made = FILES_PLACE_NONE; /* its dir_fd is borrowed from place */
        const bool known = cp->copied.repository;
        int r = transfer_place(cp->client, target, &place);

        if (r == 0)
                r = make_beside(cp, &place, &unfinished, &dir_fd);
        if (r < 0) {
                unfinished_end(&unfinished);
                return refuse_making("the directory", target, r, reterr);
        }
        made.dir_fd = place.dir_fd;
        (void)strcpy(made.name, unfinished.name);
        cp->made = made.name;
        r = get_tree(cp, path, dir_fd, reterr);
        cp->made = NULL;
        if (r == 0) {
                r = files_rename(&made, &place, false);
                if (r == -EEXIST)
                        (void)cp_refuse_existing(target, reterr);
                else if (r < 0)
                        (void)refuse_making("the directory", target, r, reterr);
        }
        if (r == 0) {
                unfinished_end(&unfinished);
                return 0;
        }
        cp_discard(&made, dir_fd, &unfinished);
        if (!known)
                free(TAKE_PTR(cp->copied.repository));
        return r;
}
