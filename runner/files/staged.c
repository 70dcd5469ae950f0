/* SPDX-License-Identifier: Apache-2.0 */
#include "files/staged.h"

#include <errno.h>
#include <string.h>

#include "files/copy.h"
#include "files/temporaries.h"

typedef struct StagedOne {
        struct StagedOne *next;
        const RpcConnection *connection;
        char *path;
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

static void staged_drop(StagedOne **at) {
        StagedOne *staged = *at;

        *at = staged->next;
        free(staged->path);
        free(staged);
}

/* Those that have their place by now, or are gone; how many are left. */
static size_t staged_drop_settled(Staged *all) {
        size_t left = 0;

        for (StagedOne **at = &all->first; *at;) {
                bool there = true;

                if (files_exists(all->files, (*at)->path, &there, NULL) == 0 && !there) {
                        temporary_end(all->files, staged_name((*at)->path));
                        staged_drop(at);
                } else {
                        at = &(*at)->next;
                        left++;
                }
        }
        return left;
}

static int staged_check(Staged *all, const char *path, Error *reterr) {
        int r;

        if (!temporary_is_name(staged_name(path))) {
                r = error_set(reterr, ERROR_USAGE, 0, "files.mkdir: not the name of an owned one");
                return error_cure(reterr, r, "Its name is \".holt-\" and 16 hexadecimal digits.");
        }
        if (staged_drop_settled(all) < STAGED_MAX)
                return 0;
        (void)error_set(reterr, ERROR_LIMIT, 0, "%d owned directories are there already",
                        STAGED_MAX);
        return error_cure(reterr, -EBUSY, "files.move gives one its place.");
}

static int staged_make_directory(const Staged *all, const char *path, unsigned mode,
                                 Error *reterr) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        bool noted = false;
        int r;

        /* The note of one that is there is another's. */
        (void)files_exists(all->files, path, &noted, NULL);
        noted = !noted && files_place(all->files, path, false, &place) == 0;
        if (noted)
                temporary_begin(all->files, place.dir_fd, place.name);
        r = files_mkdir(all->files, path, mode, false, reterr);
        if (r < 0 && noted)
                temporary_end(all->files, place.name);
        return r;
}

int staged_make(Staged *all, const RpcConnection *connection, const char *path, unsigned mode,
                Error *reterr) {
        _cleanup_free_ StagedOne *staged = calloc(1, sizeof(*staged));
        _cleanup_free_ char *copy = strdup(path);
        int r = staged && copy ? staged_check(all, path, reterr) : error_oom(reterr);

        if (r == 0)
                r = staged_make_directory(all, path, mode, reterr);
        if (r < 0)
                return r;
        *staged = (StagedOne){ all->first, connection, TAKE_PTR(copy) };
        all->first = TAKE_PTR(staged);
        return 0;
}

/* to is the name under which it goes. What can't go now does with the next keeper. */
static int staged_run_discard(FilesWork *work, Error *error) {
        _cleanup_(files_place_clear) FilesPlace place = FILES_PLACE_NONE;
        int r = files_place(work->files, work->path, false, &place);

        if (r < 0)
                return r;
        temporary_begin(work->files, place.dir_fd, staged_name(work->to));
        r = files_move(work->files, work->path, work->to, false, error);
        if (r == 0 || r == -ENOENT)
                temporary_end(work->files, staged_name(work->path));
        if (r == 0)
                r = files_remove(work->files, work->to, true, error);
        if (r == 0 || r == -ENOENT)
                temporary_end(work->files, staged_name(work->to));
        return r;
}

static void staged_discard(const Staged *all, const char *path) {
        static const FilesWorkKind kind = { .run = staged_run_discard };
        char name[32];
        _cleanup_free_ char *to = NULL;
        FilesWork *work;
        Error ignored;

        new_file_name(name);
        to = str_format("%.*s%s", (int)(staged_name(path) - path), path, name);
        if (to && work_new(all->files, path, to, NULL, &work, &ignored) == 0)
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
                staged_drop(&all->first);
        free(all);
        return NULL;
}

void staged_forget(Staged *all, const RpcConnection *connection) {
        for (StagedOne **at = &all->first; *at;) {
                if ((*at)->connection != connection) {
                        at = &(*at)->next;
                        continue;
                }
                staged_discard(all, (*at)->path);
                staged_drop(at);
        }
}
