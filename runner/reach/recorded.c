/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that each source of a session is still the file or directory with which the session was
 * made.
 *
 * Theory of operation. A session starts again and again. Between two starts, a command in another
 * sandbox may have put a symlink or another directory at the path of a source. So the session's
 * database holds the kernel's own path of each source and its identity (base/file-id.h). The path
 * is opened without following any symlink, and the identity is compared with the open fd.
 *
 * Editors replace a file by renaming a new one over it, and servers create their sockets again.
 * That is accepted if no sandbox gains by it. The new file must be in the same directory, have the
 * same type and owner, and have no second name. The session itself must not be able to do that
 * (recorded_refuse_renamed()). A tmpfs such as /run is a new one after a boot. Then type and owner
 * must be the same. */
#include "reach/recorded.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"
#include "reach/reach.h"

/* --- errors --- */

/* Returns the name of the session's directory, which is the session's name. */
static const char *session_name(const LaunchPlan *plan) {
        const char *slash = plan->state.source ? strrchr(plan->state.source, '/') : NULL;

        return slash ? slash + 1 : "NAME";
}

static int refuse_source(const LaunchPlan *plan, const PlanMount *mount, const char *why,
                         Error *reterr) {
        char quoted[500];
        int r = error_set(reterr, ERROR_POLICY, 0,
                          "%s: %s has changed since the session was created: %s", mount->origin,
                          str_quote(mount->source, quoted, sizeof(quoted)), why);

        return error_cure(
                reterr, r,
                "If you replaced it yourself, let the session accept the new one: holt rebind "
                "%s\nIf you did not, a command in a sandbox may have done so: restore the old one.",
                session_name(plan));
}

static int recorded_refuse_path(const LaunchPlan *plan, const PlanMount *mount, int errnum,
                                Error *reterr) {
        char quoted[500];
        int r = error_set(reterr, ERROR_POLICY, errnum,
                          "cannot open %s, a source of the session (%s)",
                          str_quote(mount->source, quoted, sizeof(quoted)), mount->origin);

        if (errnum == ELOOP)
                return error_cure(
                        reterr, r,
                        "This path now goes through a symlink, which did not exist when "
                        "the session was created. A command in a sandbox may have made it. "
                        "Restore the old directory; holt follows no symlink here.");
        if (errnum == ENOENT || errnum == ENOTDIR)
                return error_cure(reterr, r,
                                  "Move it back, or create a new session: a session does not "
                                  "follow a source that was renamed. To use another file or "
                                  "directory at this path, create it, and then: holt rebind %s",
                                  session_name(plan));
        return path_cure(mount->source, r, reterr);
}

/* --- opening --- */

static int open_no_links(const char *path, int flags) {
        int fd = sys_openat2(AT_FDCWD, path, (uint64_t)(unsigned)(O_PATH | O_CLOEXEC | flags), 0,
                             RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

        return fd < 0 ? -errno : fd;
}

/* Opens the parent directory of an absolute path. *ret_name is the last name, borrowed from
 * path. */
static int recorded_open_parent(const char *path, const char **ret_name) {
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *parent = slash > path ? strndup(path, (size_t)(slash - path))
                                                   : strdup("/");

        *ret_name = slash + 1;
        return parent ? open_no_links(parent, O_DIRECTORY) : -ENOMEM;
}

/* Opens a file through its directory, so that the file is in the directory whose identity is
 * compared. */
static int recorded_open_file(const PlanMount *mount, FileId *ret_parent, int *ret_fd) {
        const char *name;
        _cleanup_close_ int parent_fd = recorded_open_parent(mount->source, &name);
        int r = parent_fd < 0 ? parent_fd : file_id_get(parent_fd, ret_parent);

        if (r < 0)
                return r;
        *ret_fd = sys_open_beneath(parent_fd, name, O_PATH);
        return *ret_fd < 0 ? -errno : 0;
}

/* --- comparing --- */

static bool is_same_or_anew(const FileId *before, const FileId *now) {
        return file_id_compare(before, now) == FILE_ID_SAME || file_id_is_anew(before, now);
}

/* Whether others may not read the file. Processes in root's sandboxes can read a source, and a
 * process that can rename a file cannot always read it. Such a process must not be able to show the
 * file to another sandbox. */
static bool recorded_is_private(const struct stat *st) {
        return geteuid() == 0 && !(st->st_mode & S_IROTH);
}

/* Returns the reason why a new file, which is no directory, may not take the place of the recorded
 * one, or NULL. */
static const char *why_not_replaced(const PlanRecord *record, const struct stat *st,
                                    const FileId *parent) {
        if (record->parent.mode == 0 || !is_same_or_anew(&record->parent, parent))
                return "it is in another directory";
        if (st->st_uid != record->id.uid)
                return "it is another file with another owner";
        return st->st_nlink != 1 ? "it is another file with several names (hard links)" : NULL;
}

/* Returns the reason why a new file or directory may not take the place of the recorded one, or
 * NULL. */
static const char *recorded_why_not(const PlanRecord *record, const struct stat *st,
                                    const FileId *parent, const FileId *now, FileIdChange change) {
        const bool directory = now->mode == S_IFDIR;
        const char *why;

        if (change == FILE_ID_TYPE)
                return record->id.mode == S_IFDIR ? "it was a directory, but is not any more"
                       : directory                ? "it was not a directory, but is one now"
                                                  : "its type is different (inode(7))";
        if (change == FILE_ID_SYSTEM && !file_id_is_anew(&record->id, now))
                return "it is on another file system";
        if (directory && change != FILE_ID_SYSTEM)
                return "it is another directory";
        why = directory ? NULL : why_not_replaced(record, st, parent);
        return !why && recorded_is_private(st)
                       ? "it was replaced by a file that other users may not read"
                       : why;
}

static int recorded_compare(const LaunchPlan *plan, PlanMount *mount, int fd, const FileId *parent,
                            Error *reterr) {
        PlanRecord *record = mount->record;
        FileIdChange change;
        const char *why;
        struct stat st;
        FileId now = { 0 };
        int r = fstat(fd, &st) < 0 ? -errno : file_id_get(fd, &now);

        if (r < 0)
                return recorded_refuse_path(plan, mount, -r, reterr);
        change = file_id_compare(&record->id, &now);
        if (change == FILE_ID_SAME)
                return 0;
        why = recorded_why_not(record, &st, parent, &now, change);
        if (why)
                return refuse_source(plan, mount, why, reterr);
        record->id = now;
        record->parent = *parent;
        record->changed = true;
        record->renamed = now.mode != S_IFDIR;
        return 0;
}

int recorded_open(const LaunchPlan *plan, PlanMount *mount, int *ret_fd, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        FileId parent = { 0 };
        int r = 0;

        if (mount->record->parent.mode)
                r = recorded_open_file(mount, &parent, &fd);
        else
                fd = open_no_links(mount->source, 0);
        if (r < 0 || fd < 0)
                return recorded_refuse_path(plan, mount, r < 0 ? -r : -fd, reterr);
        r = recorded_compare(plan, mount, fd, &parent, reterr);
        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

/* --- recording --- */

int recorded_open_unlinked(const LaunchPlan *plan, const PlanMount *mount, int *ret_fd,
                           Error *reterr) {
        int fd = open_no_links(mount->source, 0);

        if (fd < 0)
                return recorded_refuse_path(plan, mount, -fd, reterr);
        *ret_fd = fd;
        return 0;
}

/* Whether the path still leads to the source; the next start has only the path. It does not if the
 * source is a pipe, was removed, or lies below another mount. */
static int recorded_check_path(const PlanMount *mount) {
        _cleanup_close_ int fd = mount->real[0] == '/' ? open_no_links(mount->real, 0) : -ENOENT;
        FileId id;
        int r = fd < 0 ? fd : file_id_get(fd, &id);

        return r == 0 && file_id_compare(&mount->record->id, &id) != FILE_ID_SAME ? -ENOENT : r;
}

static int recorded_refuse_record(const PlanMount *mount, int r, Error *reterr) {
        char quoted[500];

        r = error_set(
                reterr, ERROR_POLICY, -r,
                "%s: a session must find its source again, but the path %s does not lead to it",
                mount->origin, str_quote(mount->real, quoted, sizeof(quoted)));
        return error_cure(reterr, r, "Pass a directory or file that has a path of its own.");
}

int recorded_note(PlanMount *mount, Error *reterr) {
        PlanRecord *record = mount->record;
        const char *name;
        const FileId before = record->id;
        int r = file_id_get(mount->fd, &record->id);

        if (r == 0 && record->id.mode != S_IFDIR && mount->real[0] == '/') {
                _cleanup_close_ int parent_fd = recorded_open_parent(mount->real, &name);

                r = parent_fd < 0 ? parent_fd : file_id_get(parent_fd, &record->parent);
        }
        if (r == 0)
                r = recorded_check_path(mount);
        if (r < 0)
                return recorded_refuse_record(mount, r, reterr);
        record->changed = before.mode == 0 || file_id_compare(&before, &record->id) != FILE_ID_SAME;
        return 0;
}

/* --- files that were replaced --- */

int recorded_refuse_renamed(const LaunchPlan *plan, const Reach *reach, Error *reterr) {
        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];
                _cleanup_close_ int fd = FD_NONE;
                Reached reached = { 0 };
                int r;

                if (!mount->record || !mount->record->renamed)
                        continue;
                r = reach_path(reach, mount->source, &fd, &reached);
                if (r < 0)
                        return recorded_refuse_path(plan, mount, -r, reterr);
                if (reached.how & REACH_REPLACE)
                        return refuse_source(plan, mount,
                                             "it is another file, and the session itself could "
                                             "have put it there",
                                             reterr);
        }
        return 0;
}
