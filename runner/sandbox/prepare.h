/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of launch_prepare(); see prepare.c. */
#pragma once

#include "sandbox/launch.h"

/* Fills the launch from its plan and the host. Root is not given up yet. Returns 0 or a negative
 * errno. */
int prepare_all(Launch *launch, Error *reterr);

/* Steps of prepare_all(), in this order (prepare-mounts.c). */
int prepare_rootfs(LaunchPlan *plan, Error *reterr);
int prepare_mounts(Launch *launch, Error *reterr);
int prepare_report(Launch *launch, Error *reterr);
/* Opens the files of the host that a plan mounts, for a plan that is launched later.
 * prepare_close_mounts() closes them. The errors are those of prepare_mounts(); then no file is
 * open. */
int prepare_try_mounts(LaunchPlan *plan, Error *reterr);
void prepare_close_mounts(LaunchPlan *plan);

/* Opens path inside, if it is in a mount of the plan, with O_PATH and `flags` of open(2). Returns
 * an fd that the caller owns, or a negative errno. -ENXIO: path is in no mount. -EXDEV: a symlink
 * leads out of the mount. */
int prepare_open_inside(const LaunchPlan *plan, const char *path, int flags);
