/* SPDX-License-Identifier: Apache-2.0 */
/* Files that holt obeys, and programs that it runs. If the sandbox could change one, it is pinned
 * by a guard, or the run is refused. */
#include "guards/inputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "base/sys.h"
#include "guards/guards.h"
#include "reach/reach.h"
#include "reach/recorded.h"

static int refuse_input(const char *use, const char *path, const Reached *reached, Error *reterr) {
        char quoted[400], inside[400];
        int r;

        if (reached->how == REACH_LINKED) {
                r = error_set(reterr, ERROR_POLICY, EPERM,
                              "%s %s, which has several names (hard links): the command may be "
                              "able to write to one of them",
                              use, str_quote(path, quoted, sizeof(quoted)));
                return error_cure(reterr, r, "Use a copy of the file.");
        }
        r = error_set(reterr, ERROR_POLICY, EPERM,
                      "%s %s, but the command could change it (%s inside)", use,
                      str_quote(path, quoted, sizeof(quoted)),
                      str_quote(reached->inside, inside, sizeof(inside)));
        return error_cure(reterr, r,
                          "Move it to a place where the command cannot write, or make its "
                          "directory read-only: --ro, --workspace-mode ro");
}

/* Refuses a path with "..", although the command cannot change the file at its end: it could move
 * the directory that a ".." starts from, so that the path leads elsewhere. Returns 0 if the
 * absolute path would be refused, too. */
static int refuse_relative(const Reach *reach, const char *use, const char *path,
                           const Reached *reached, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        char absolute[PATH_MAX], quoted[400], inside[400];
        _cleanup_free_ char *word = NULL;
        Reached again;
        int r;

        if (!realpath(path, absolute) || reach_path(reach, absolute, &fd, &again) < 0 || again.how)
                return 0;
        word = str_word(absolute);
        r = error_set(reterr, ERROR_POLICY, EPERM,
                      "%s %s, but the command could move %s, and \"..\" would then lead elsewhere",
                      use, str_quote(path, quoted, sizeof(quoted)),
                      str_quote(reached->inside, inside, sizeof(inside)));
        return error_cure(reterr, r, "Write the absolute path: %s", word ? word : absolute);
}

/* Both files are open, so no other file can get either inode number. */
static bool inputs_is_same_file(int fd, int other) {
        struct stat st, other_st;

        return fstat(fd, &st) == 0 && fstat(other, &other_st) == 0 &&
               st.st_dev == other_st.st_dev && st.st_ino == other_st.st_ino;
}

/* Refuses a file that was replaced after holt had read it, perhaps by a command in another
 * sandbox. */
static int refuse_exchanged(const char *path, Error *reterr) {
        char quoted[400];
        int r = error_set(reterr, ERROR_POLICY, ESTALE,
                          "%s: this file was replaced while holt was starting",
                          str_quote(path, quoted, sizeof(quoted)));

        return error_cure(reterr, r, "Start holt again when no other process changes the file.");
}

/* Guards the path `rest` of the workspace, which must still be the file of fd. */
static int pin_same(LaunchPlan *plan, const PlanMount *workspace, const char *rest, int fd,
                    Error *reterr) {
        const size_t before = plan->guards_count;
        int r = guards_add(plan, workspace, rest, reterr);
        const PlanGuard *guard = r == 0 && plan->guards_count > before ? &plan->guards[before]
                                                                       : NULL;

        if (guard && (!guard->pinned || !inputs_is_same_file(guard->fd, fd)))
                return refuse_exchanged(rest, reterr);
        return r;
}

int inputs_pin(LaunchPlan *plan, const Reach *reach, int fd, Error *reterr) {
        const PlanMount *workspace = plan_workspace(plan);
        const char *rest;
        Reached reached;
        int r = reach_fd(reach, fd, &reached);

        if (r < 0 || !(reached.how & REACH_WRITE) || !workspace || reached.mount != workspace)
                return 0;
        rest = path_rest(reached.inside, workspace->target);
        return rest && rest[0] ? pin_same(plan, workspace, rest, fd, reterr) : 0;
}

/* Keeps the command from changing path. The error message begins with `use`, which tells how holt
 * uses the path. */
static int keep_from_command(LaunchPlan *plan, const Reach *reach, const char *use,
                             const char *path, int input_fd, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE, again_fd = FD_NONE;
        Reached reached;
        int r = reach_path(reach, path, &fd, &reached);

        if (input_fd >= 0 && (r == -ENOENT || (r == 0 && !inputs_is_same_file(fd, input_fd))))
                return refuse_exchanged(path, reterr);
        if (r == -ENOENT && !reached.how)
                return 0;
        if (r == 0 && reached.how) {
                r = inputs_pin(plan, reach, fd, reterr);
                if (r < 0)
                        return r;
                r = reach_path(reach, path, &again_fd, &reached);
                if (r < 0 || !inputs_is_same_file(again_fd, fd))
                        return refuse_exchanged(path, reterr);
        }
        if (r == 0 && !reached.how)
                return 0;
        if (!reached.how)
                return error_set(reterr, ERROR_SETUP, -r,
                                 "cannot find out whether the command could change %s", path);
        r = r == 0 && strstr(path, "..") ? refuse_relative(reach, use, path, &reached, reterr) : 0;
        return r < 0 ? r : refuse_input(use, path, &reached, reterr);
}

int inputs_protect_path(LaunchPlan *plan, const Reach *reach, const char *path, int input_fd,
                        Error *reterr) {
        return keep_from_command(plan, reach, "holt obeys", path, input_fd, reterr);
}

int inputs_protect_files(LaunchPlan *plan, const Reach *reach, const PlanInputs *inputs,
                         Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < inputs->count; i++)
                r = inputs_protect_path(plan, reach, inputs->items[i].path, inputs->items[i].fd,
                                        reterr);
        return r;
}

int inputs_protect_rootfs(LaunchPlan *plan, const Reach *reach, Error *reterr) {
        return plan->rootfs.source
                       ? keep_from_command(plan, reach, "the programs of the command come from",
                                           plan->rootfs.source, plan->rootfs.fd, reterr)
                       : 0;
}

/* Whether the mount table must be read. Reading it costs time, and is rarely needed. */
static bool needs_reach(const LaunchPlan *plan) {
        if (plan->rootfs.source || plan->inputs.count)
                return true;
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan->mounts[i].record && plan->mounts[i].record->renamed)
                        return true;
        return false;
}

static int inputs_protect_all(LaunchPlan *plan, const Reach *reach, ProgramsNear near,
                              Error *reterr) {
        int r = recorded_refuse_renamed(plan, reach, reterr);

        if (r == 0)
                r = inputs_protect_rootfs(plan, reach, reterr);
        if (r == 0)
                r = inputs_protect_files(plan, reach, &plan->inputs, reterr);
        return r < 0 ? r : programs_protect(plan, reach, near, reterr);
}

int inputs_protect(LaunchPlan *plan, Error *reterr) {
        const ProgramsNear near = programs_near(plan);
        _cleanup_(reach_freep) Reach *reach = NULL;
        int r;

        if (near == PROGRAMS_FAR && !needs_reach(plan))
                return 0;
        r = reach_new(plan, &reach, reterr);
        return r < 0 ? r : inputs_protect_all(plan, reach, near, reterr);
}
