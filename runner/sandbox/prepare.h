/* SPDX-License-Identifier: Apache-2.0 */
/* launch_prepare() in parts; see prepare.c. */
#pragma once

#include "sandbox/launch.h"

/* Fills the launch from its plan and the host; as root nothing has been given up yet. */
int prepare_all(Launch *launch, Error *reterr);

/* In this order, of prepare_all() (prepare-mounts.c). */
int prepare_rootfs(LaunchPlan *plan, Error *reterr);
int prepare_mounts(Launch *launch, Error *reterr);
int prepare_report(Launch *launch, Error *reterr);
/* Opens what a plan mounts of the host, until prepare_close_mounts(): for whoever makes a plan that
 * is launched later. The errors are those of prepare_mounts(); nothing is open then. */
int prepare_try_mounts(LaunchPlan *plan, Error *reterr);
void prepare_close_mounts(LaunchPlan *plan);

/* Opens what is at path inside, where that is in a mount of the plan, with O_PATH and the other
 * flags of open(2): an fd that the caller owns, -ENXIO where it is in none, -EXDEV where a link
 * leads out of the mount, or another negative errno. */
int prepare_open_inside(const LaunchPlan *plan, const char *path, int flags);
