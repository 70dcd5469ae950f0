/* SPDX-License-Identifier: Apache-2.0 */
#include "files/temporaries.h"
#include "keeper/keeper.h"

/* What can't go now is tried again by the next keeper. */
static int run_sweep(FilesWork *work, Error *error) {
        (void)error;
        for (size_t i = 0; i < work->names.count; i++)
                (void)temporary_remove(work->files, work->names.items[i]);
        return 0;
}

/* Looked up at once: what is noted from now on is somebody's who lives. */
int keeper_sweep_temporaries(Keeper *keeper, Error *reterr) {
        static const FilesWorkKind kind = { .run = run_sweep };
        _cleanup_(strlist_clear) StrList names = { 0 };
        FilesWork *work;
        int r;

        files_note_in(keeper->files, keeper->plan.state.fd);
        if (temporaries_list(keeper->files, &names) < 0 || names.count == 0)
                return 0;
        r = work_new(keeper->files, "/", NULL, NULL, &work, reterr);
        if (r < 0)
                return r;
        work->names = names;
        names = (StrList){ 0 };
        return work_start(keeper->works, NULL, &kind, work, reterr);
}
