/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that were recorded when a session was made. */
#pragma once

#include "policy/plan.h"
#include "reach/reach.h"

/* Opens a source that was recorded when the session was made, without following any symlink, and
 * compares it (recorded.c). *ret_fd is O_PATH and the caller's. 0; -EINVAL with an
 * ERROR_POLICY that says how it differs; or a negative errno of openat2(2). */
int recorded_open(const LaunchPlan *plan, PlanMount *mount, int *ret_fd, Error *reterr);
/* The same for a source with PLAN_NO_LINKS, which is compared with nothing. */
int recorded_open_unlinked(const LaunchPlan *plan, const PlanMount *mount, int *ret_fd,
                           Error *reterr);
/* Fills the record of a source that has just been opened. 0 or a negative errno. */
int recorded_note(PlanMount *mount, Error *reterr);
/* Refuses a file that was renamed over a recorded one, if the session itself can do that. reach is
 * of this plan, whose mounts are open. 0, or -EINVAL with an ERROR_POLICY. */
int recorded_refuse_renamed(const LaunchPlan *plan, const Reach *reach, Error *reterr);
