/* SPDX-License-Identifier: Apache-2.0 */
#include "files/unfinished.h"
#include "keeper/keeper.h"

static int unfinished_place(void *data, const char *path, FilesPlace *ret) {
        return files_place(data, path, false, ret);
}

/* Files that cannot be removed now are left to the next keeper. */
static int unfinished_run(FilesWork *work, Error *error) {
        (void)error;
        unfinished_sweep(&work->files->notes, &work->names, unfinished_place, work->files);
        return 0;
}

/* This keeper has the session's lock, so the makers of these notes are dead. It has no notes of its
 * own before it serves. */
int keeper_sweep_unfinished(Keeper *keeper, Error *reterr) {
        static const FilesWorkKind kind = { .run = unfinished_run };
        _cleanup_(strlist_clear) StrList names = { 0 };
        FilesWork *work;
        int r;

        files_note_in(keeper->files, keeper->plan.state.fd);
        if (unfinished_list(&keeper->files->notes, &names) < 0 || names.count == 0)
                return 0;
        r = work_new(keeper->files, "/", NULL, NULL, &work, reterr);
        if (r < 0)
                return r;
        work->names = names;
        names = (StrList){ 0 };
        return work_start(keeper->works, NULL, &kind, work, reterr);
}
