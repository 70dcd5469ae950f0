/* SPDX-License-Identifier: Apache-2.0 */
/* Files that holt obeys and programs that it runs: the command must not change them. */
#pragma once

#include "reach/reach.h"

/* Protects the files that holt obeys: the plan's inputs, and holt's own programs if they lie in
 * a writable mount. Those in the workspace get a guard. Returns 0, -EPERM with an ERROR_POLICY
 * if the sandbox could change one nevertheless, or another negative errno. Call it after
 * guards_prepare(). */
int inputs_protect(LaunchPlan *plan, Error *reterr);
/* Does the same as inputs_protect() for one path. reach belongs to this plan, whose mounts are
 * open. input_fd is the file that holt has read, or FD_NONE. Returns -ESTALE if the path no longer
 * leads to that file. */
int inputs_protect_path(LaunchPlan *plan, const struct Reach *reach, const char *path, int input_fd,
                        Error *reterr);
/* Does the same as inputs_protect_path() for each of these files. */
int inputs_protect_files(LaunchPlan *plan, const struct Reach *reach, const PlanInputs *inputs,
                         Error *reterr);
/* Does the same as inputs_protect_path() for the system tree, unless it is the host's. */
int inputs_protect_rootfs(LaunchPlan *plan, const struct Reach *reach, Error *reterr);
/* Guards the open file or directory fd if it lies in the workspace. A guard does not protect other
 * writable mounts, or symlinks on the way to the file. So look the path up again. */
int inputs_pin(LaunchPlan *plan, const struct Reach *reach, int fd, Error *reterr);

/* Whether the sandbox may change holt's own programs, or create one in a place where holt looks for
 * it. This is a first answer without the mount table (programs.c). */
typedef enum ProgramsNear {
        PROGRAMS_FAR,
        PROGRAMS_ASK, /* Only the mount table can tell. */
        PROGRAMS_NEAR,
} ProgramsNear;
ProgramsNear programs_near(const LaunchPlan *plan);
/* Calls inputs_protect_path() for each program. If a program does not exist, the directory in which
 * it would lie is guarded. */
int programs_protect(LaunchPlan *plan, const struct Reach *reach, ProgramsNear near, Error *reterr);
