/* SPDX-License-Identifier: Apache-2.0 */
#include "files/staged.h"

#include <errno.h>
#include <string.h>

#include "files/copy.h"
#include "files/temporaries.h"

struct Staged {
        Staged *next;
        const RpcConnection *connection;
        char *path;
};

static const char *name_of(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static void drop(Staged **at) {
        Staged *staged = *at;

        *at = staged->next;
        free(staged->path);
        free(staged);
}

/* Those that have their place by now, or are gone; how many are left. */
static size_t drop_settled(Keeper *keeper) {
        size_t left = 0;

        for (Staged **at = &keeper->staged; *at;) {
                bool there = true;

                if (files_exists(keeper->files, (*at)->path, &there, NULL) == 0 && !there) {
                        temporary_end(keeper->files, name_of((*at)->path));
                        drop(at);
                } else {
                        at = &(*at)->next;
                        left++;
                }
        }
        return left;
}

static int check(Keeper *keeper, const char *path, Error *reterr) {
        int r;

        if (!temporary_is_name(name_of(path))) {
                r = error_set(reterr, ERROR_USAGE, 0, "files.mkdir: not the name of an owned one");
                return error_cure(reterr, r, "Its name is \".holt-\" and 16 hexadecimal digits.");
        }
        if (drop_settled(keeper) < STAGED_MAX)
                return 0;
        (void)error_set(reterr, ERROR_LIMIT, 0, "%d owned directories are there already",
                        STAGED_MAX);
        return error_cure(reterr, -EBUSY, "files.move gives one its place.");
}

static int make(const Keeper *keeper, const char *path, unsigned mode, Error *reterr) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        bool noted = false;
        int r;

        /* The note of one that is there is another's. */
        (void)files_exists(keeper->files, path, &noted, NULL);
        noted = !noted && files_place(keeper->files, path, false, &place) == 0;
        if (noted)
                temporary_begin(keeper->files, place.dir_fd, place.name);
        r = files_mkdir(keeper->files, path, mode, false, reterr);
        if (r < 0 && noted)
                temporary_end(keeper->files, place.name);
        return r;
}

int staged_make(Keeper *keeper, const RpcConnection *connection, const char *path, unsigned mode,
                Error *reterr) {
        _cleanup_free_ Staged *staged = calloc(1, sizeof(*staged));
        _cleanup_free_ char *copy = strdup(path);
        int r = staged && copy ? check(keeper, path, reterr) : error_oom(reterr);

        if (r == 0)
                r = make(keeper, path, mode, reterr);
        if (r < 0)
                return r;
        *staged = (Staged){ keeper->staged, connection, TAKE_PTR(copy) };
        keeper->staged = TAKE_PTR(staged);
        return 0;
}

/* to is the name under which it goes. What can't go now does with the next keeper. */
static int run_discard(FilesWork *work, Error *error) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        int r = files_place(work->files, work->path, false, &place);

        if (r < 0)
                return r;
        temporary_begin(work->files, place.dir_fd, name_of(work->to));
        r = files_move(work->files, work->path, work->to, false, error);
        if (r == 0 || r == -ENOENT)
                temporary_end(work->files, name_of(work->path));
        if (r == 0)
                r = files_remove(work->files, work->to, true, error);
        if (r == 0 || r == -ENOENT)
                temporary_end(work->files, name_of(work->to));
        return r;
}

static void discard(const Keeper *keeper, const char *path) {
        static const FilesWorkKind kind = { .run = run_discard };
        char name[32];
        _cleanup_free_ char *to = NULL;
        FilesWork *work;
        Error ignored;

        new_file_name(name);
        to = str_format("%.*s%s", (int)(name_of(path) - path), path, name);
        if (to && work_new(keeper->files, path, to, NULL, &work, &ignored) == 0)
                (void)work_start(keeper->works, NULL, &kind, work, &ignored);
}

void staged_forget(Keeper *keeper, const RpcConnection *connection) {
        for (Staged **at = &keeper->staged; *at;) {
                if ((*at)->connection != connection) {
                        at = &(*at)->next;
                        continue;
                }
                discard(keeper, (*at)->path);
                drop(at);
        }
}
