/* SPDX-License-Identifier: Apache-2.0 */
#include "files/staged.h"

#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "files/copy.h"
#include "files/unfinished.h"

typedef struct StagedOne {
        struct StagedOne *next;
        const RpcConnection *connection;
        char *path;
        Unfinished unfinished;
} StagedOne;

struct Staged {
        Files *files;
        Works *works;
        StagedOne *first;
};

static const char *staged_name(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static void staged_drop(Staged *all, StagedOne *staged) {
        (void)list_remove(&all->first, staged);
        unfinished_leave(&staged->unfinished);
        free(staged->path);
        free(staged);
}

/* Forgets directories that have their place, or no longer exist. Returns how many are left. */
static size_t staged_drop_settled(Staged *all) {
        size_t left = 0;

        list_each_safe(staged, all->first) {
                bool there = true;

                if (files_exists(all->files, staged->path, &there, NULL) == 0 && !there) {
                        unfinished_end(&staged->unfinished);
                        staged_drop(all, staged);
                } else {
                        left++;
                }
        }
        return left;
}

static int staged_check(Staged *all, const char *path, Error *reterr) {
        int r;

        if (!unfinished_is_name(staged_name(path))) {
                r = error_set(reterr, ERROR_USAGE, 0,
                              "files.mkdir: the name of an owned directory is invalid");
                return error_cure(reterr, r, "Use \".holt-\" and 16 hexadecimal digits.");
        }
        if (staged_drop_settled(all) < STAGED_MAX)
                return 0;
        (void)error_set(reterr, ERROR_LIMIT, 0, "%d owned directories exist already", STAGED_MAX);
        return error_cure(reterr, -EBUSY, "Give one its place by files.move.");
}

/* Returns true if nothing is at the path yet. *ret is then the note of the new directory. */
static bool staged_begin(const Staged *all, const char *path, FilesPlace *place, Unfinished *ret) {
        bool there = true;

        if (files_exists(all->files, path, &there, NULL) < 0 || there ||
            files_place(all->files, path, false, place) < 0)
                return false;
        unfinished_begin(&all->files->notes, place->dir_fd, place->name, ret);
        return true;
}

static int staged_make_directory(const Staged *all, const char *path, unsigned mode,
                                 Unfinished *ret, Error *reterr) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        _cleanup_close_ int fd = FD_NONE;
        const bool noted = staged_begin(all, path, &place, ret);
        int r = files_mkdir(all->files, path, mode, false, reterr);

        if (r < 0) {
                unfinished_end(ret);
                return r;
        }
        if (noted)
                fd = files_child(place.dir_fd, place.name);
        if (fd >= 0)
                unfinished_made(ret, fd);
        return 0;
}

int staged_make(Staged *all, const RpcConnection *connection, const char *path, unsigned mode,
                Error *reterr) {
        _cleanup_free_ StagedOne *staged = calloc(1, sizeof(*staged));
        _cleanup_free_ char *copy = strdup(path);
        Unfinished unfinished = UNFINISHED_NONE;
        int r = staged && copy ? staged_check(all, path, reterr) : error_oom(reterr);

        if (r == 0)
                r = staged_make_directory(all, path, mode, &unfinished, reterr);
        if (r < 0)
                return r;
        *staged = (StagedOne){ NULL, connection, TAKE_PTR(copy), unfinished };
        list_push(&all->first, TAKE_PTR(staged));
        return 0;
}

/* Both names have a note meanwhile, so that a killed keeper leaves neither. A directory that cannot
 * be removed now keeps its note for the next keeper. */
static int staged_run_discard(FilesWork *work, Error *error) {
        _cleanup_(files_place_clear) FilesPlace from = FILES_PLACE_NONE;
        _cleanup_(unfinished_leave) Unfinished moved = UNFINISHED_NONE;
        _cleanup_close_ int fd = FD_NONE;
        FilesPlace to = FILES_PLACE_NONE; /* The destination in from's directory. */
        int r = files_place(work->files, work->path, false, &from);

        (void)error;
        if (r == 0)
                r = fd = files_child(from.dir_fd, from.name);
        if (r >= 0) {
                unfinished_begin(&work->files->notes, from.dir_fd, NULL, &moved);
                unfinished_made(&moved, fd);
                to.dir_fd = from.dir_fd;
                (void)strcpy(to.name, moved.name);
                r = files_rename(&from, &to, false);
        }
        if (r == 0 || r == -ENOENT)
                unfinished_end(&work->unfinished);
        if (r == 0)
                r = files_remove_tree(to.dir_fd, to.name);
        if (r == 0 || r == -ENOENT)
                unfinished_end(&moved);
        return r;
}

static void staged_discard(const Staged *all, StagedOne *staged) {
        static const FilesWorkKind kind = { .run = staged_run_discard };
        FilesWork *work;
        Error ignored;

        if (work_new(all->files, staged->path, NULL, NULL, &work, &ignored) < 0)
                return;
        work->unfinished = staged->unfinished;
        staged->unfinished = UNFINISHED_NONE;
        (void)work_start(all->works, NULL, &kind, work, &ignored);
}

int staged_new(Files *files, Works *works, Staged **ret, Error *reterr) {
        Staged *all = calloc(1, sizeof(*all));

        if (!all)
                return error_oom(reterr);
        *all = (Staged){ .files = files, .works = works };
        *ret = all;
        return 0;
}

Staged *staged_free(Staged *all) {
        while (all && all->first)
                staged_drop(all, all->first);
        free(all);
        return NULL;
}

void staged_forget(Staged *all, const RpcConnection *connection) {
        list_each_safe(staged, all->first) {
                if (staged->connection != connection)
                        continue;
                staged_discard(all, staged);
                staged_drop(all, staged);
        }
}
