/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that were recorded when a session was made. */
#pragma once

#include "policy/plan.h"
#include "reach/reach.h"

/* Opens such a source without following any symlink, and compares it with the record (recorded.c).
 * *ret_fd is O_PATH and owned by the caller. Returns 0, -EINVAL with an ERROR_POLICY that tells the
 * difference, or a negative errno of openat2(2). */
int recorded_open(const LaunchPlan *plan, PlanMount *mount, int *ret_fd, Error *reterr);
/* The same for a source with PLAN_NO_LINKS, which has no record to compare with. */
int recorded_open_unlinked(const LaunchPlan *plan, const PlanMount *mount, int *ret_fd,
                           Error *reterr);
/* Fills the record of a source that was just opened. Returns 0 or a negative errno. */
int recorded_note(PlanMount *mount, Error *reterr);
/* Refuses a file that was renamed over a recorded one, if the session itself could do that. reach
 * belongs to this plan, whose mounts are open. Returns 0, or -EINVAL with an ERROR_POLICY. */
int recorded_refuse_renamed(const LaunchPlan *plan, const Reach *reach, Error *reterr);
