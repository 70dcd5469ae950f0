/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories and files of the host a session has, as its database keeps them: the kernel's
 * own path of each, and its identity. reach/recorded.c compares them at every start. */
#pragma once

#include "base/json-write.h"
#include "policy/plan.h"
#include "store/store.h"

/* Puts into plan, made by settings_plan() for the session whose directory is path, what was
 * recorded: the path, instead of the one in the policy, and the identity. A source that has no
 * record, which is new or of an older holt, gets one when it is opened. What lies in the session's
 * own directory needs none. 0, or a negative errno of store_meta_get(); -EINVAL with an ERROR_DATA
 * for a record that holt has not written. */
int sources_read(Store *store, const char *path, LaunchPlan *plan, Error *reterr);
/* Stores the records that have changed since; the sources have to be open. 0 or a negative errno of
 * store_meta_set(). */
int sources_write(Store *store, const LaunchPlan *plan, Error *reterr);

/* Has a session at rest take what is at the paths of its sources now. A path that leads through a
 * symlink is refused as it is at a start. Each source that is another one than before is audited,
 * and added to w, whose array is open, as {target, source}. 0 or a negative errno. */
int sources_rebind(const char *session, JsonWriter *w, Error *reterr);

/* For a plan whose path is the kernel's own: follows no symlink to what the session has in its own
 * directory either. */
void sources_pin_own(const char *path, LaunchPlan *plan);
