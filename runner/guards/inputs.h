/* SPDX-License-Identifier: Apache-2.0 */
/* Files that holt obeys and programs that it runs: the command must not change them. */
#pragma once

#include "reach/reach.h"

/* Keeps from the sandbox what holt obeys: the plan's inputs, and holt's own programs if they lie in
 * a writable mount. What lies in the workspace gets a guard. 0; -EPERM with an ERROR_POLICY if the
 * sandbox could change it nevertheless; or another negative errno. After guards_prepare(). */
int inputs_protect(LaunchPlan *plan, Error *reterr);
/* The same for one path. reach is of this plan, whose mounts are open. input_fd: the file that has
 * been read, or FD_NONE; -ESTALE if the path does not lead there any more. */
int inputs_protect_path(LaunchPlan *plan, const struct Reach *reach, const char *path, int input_fd,
                        Error *reterr);
/* The same for the system tree, if it is not the host's. */
int inputs_protect_rootfs(LaunchPlan *plan, const struct Reach *reach, Error *reterr);
/* Guards the open file or directory fd if it lies in the workspace. A guard does not reach other
 * writable mounts, or symlinks on the way to the file: look the path up again. */
int inputs_pin(LaunchPlan *plan, const struct Reach *reach, int fd, Error *reterr);

/* Whether the sandbox may change holt's own programs, or make one where holt would look for it; as
 * far as it can be said without the mount table (programs.c). */
typedef enum ProgramsNear {
        PROGRAMS_FAR,
        PROGRAMS_ASK, /* the mount table has to be asked */
        PROGRAMS_NEAR,
} ProgramsNear;
ProgramsNear programs_near(const LaunchPlan *plan);
/* inputs_protect_path() of each of them. If one does not exist, the directory is guarded that it
 * would lie in. */
int programs_protect(LaunchPlan *plan, const struct Reach *reach, ProgramsNear near, Error *reterr);
