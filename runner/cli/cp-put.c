/* SPDX-License-Identifier: Apache-2.0 */
/* holt cp -r of a directory into a session. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path-text.h"
#include "base/sys.h"
#include "cli/cp-internal.h"
#include "cli/links.h"
#include "cli/transfer.h"
#include "files/unfinished.h"
#include "files/walk.h"

typedef struct Putting {
        Cp *cp;
        const char *temporary; /* owned by the caller: path in the session */
        Error *reterr;
} Putting;

static int cp_make_directory(Cp *cp, const char *path, unsigned mode, bool owned, Error *reterr) {
        JsonWriter w = transfer_path(path);

        /* The directory must be filled first, so its owner gets all rights. A directory that
         * refuses its own owner is rare. */
        json_write_uint(&w, "mode", (mode & 0777) | 0700);
        json_write_bool(&w, "owned", owned);
        return transfer_cure_parents(
                transfer_call(cp->client, "files.mkdir", &w, FD_NONE, NULL, reterr), path, reterr);
}

static int refuse_entry(const WalkEntry *entry, int r, Error *reterr) {
        char quoted[1024];

        return error_set(reterr, ERROR_SETUP, -r, "cannot read \"%s\"",
                         str_quote(entry->path, quoted, sizeof(quoted)));
}

static int refuse_itself(Error *reterr) {
        int r = error_set(reterr, ERROR_USAGE, EINVAL, "cannot copy a directory into itself");

        return error_cure(reterr, r,
                          "The destination in the session lies in that directory of the host. "
                          "Choose one outside of it.");
}

static int put_link(const Putting *putting, const WalkEntry *entry, const char *path) {
        int r = link_put(putting->cp->client, entry, path, putting->reterr);

        if (r == 1)
                copied_leave_out(&putting->cp->copied, true, entry->path);
        return r < 0 ? r : WALK_ON;
}

static int put_entry(void *data, const WalkEntry *entry) {
        const Putting *putting = data;
        _cleanup_free_ char *path = str_format("%s/%s", putting->temporary, entry->path);
        _cleanup_close_ int fd = FD_NONE;
        struct stat st;
        int r;

        if (!path)
                return error_oom(putting->reterr);
        if (cp_is_own(entry->name, strrchr(putting->temporary, '/')
                                           ? strrchr(putting->temporary, '/') + 1
                                           : putting->temporary))
                return refuse_itself(putting->reterr);
        if (entry->type == DT_LNK)
                return put_link(putting, entry, path);
        if (entry->type != DT_DIR && entry->type != DT_REG) {
                copied_leave_out(&putting->cp->copied, false, entry->path);
                return WALK_ON;
        }
        fd = sys_open_beneath(entry->dir_fd, entry->name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0)
                return refuse_entry(entry, -errno, putting->reterr);
        if (S_ISREG(st.st_mode))
                return transfer_put_fd(putting->cp->client, fd, path, st.st_mode, putting->reterr);
        /* Another process has replaced the entry. A FIFO may have no end, so it is not read. */
        if (!S_ISDIR(st.st_mode)) {
                copied_leave_out(&putting->cp->copied, false, entry->path);
                return WALK_ON;
        }
        r = cp_make_directory(putting->cp, path, st.st_mode, false, putting->reterr);
        return r < 0 ? r : WALK_DOWN;
}

static int put_tree(Cp *cp, int dir_fd, const char *temporary, Error *reterr) {
        Putting putting = { cp, temporary, reterr };
        FilesMissed missed = { 0 };
        int r;

        /* The error is set first, because walk_tree() may fail without an error text. */
        (void)error_set(reterr, ERROR_SETUP, 0, "cannot read the directory");
        r = walk_tree(dir_fd, put_entry, &putting, &missed);
        return r == 0 && missed.error != 0
                       ? cp_refuse_missed(missed.path, -missed.error, true, reterr)
                       : r;
}

static int move_into_place(Cp *cp, const char *temporary, const char *target, Error *reterr) {
        JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_path(&w, "from", temporary);
        json_write_path(&w, "to", target);
        return transfer_call(cp->client, "files.move", &w, FD_NONE, NULL, reterr);
}

static void remove_temporary(Cp *cp, const char *temporary) {
        JsonWriter w = transfer_path(temporary);

        json_write_bool(&w, "recursive", true);
        (void)transfer_call(cp->client, "files.remove", &w, FD_NONE, NULL, NULL);
}

/* Returns a new temporary name in the directory of target. */
static char *cp_beside(const char *target) {
        const char *slash = strrchr(target, '/');
        char name[UNFINISHED_NAME_SIZE];

        unfinished_name(name);
        return str_format("%.*s%s", slash ? (int)(slash + 1 - target) : 0, target, name);
}

int cp_put_directory(Cp *cp, const char *directory, const char *target, Error *reterr) {
        _cleanup_close_ int fd = transfer_open_own(cp->client, directory, O_RDONLY | O_DIRECTORY);
        _cleanup_free_ char *temporary = cp_beside(target);
        struct stat st;
        int r;

        if (!temporary)
                return error_oom(reterr);
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_set(reterr, ERROR_SETUP, fd < 0 ? -fd : errno, "cannot read \"%s\"",
                                 directory);
        r = cp_make_directory(cp, temporary, st.st_mode, true, reterr);
        if (r < 0)
                return r;
        r = put_tree(cp, fd, temporary, reterr);
        if (r == 0)
                r = move_into_place(cp, temporary, target, reterr);
        if (r < 0)
                remove_temporary(cp, temporary);
        return r == -EEXIST ? cp_refuse_existing(target, reterr) : r;
}
