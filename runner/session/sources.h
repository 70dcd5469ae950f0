/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a session's host directories and files in its database: the kernel's own path of each,
 * and its identity. reach/recorded.c compares them at every start. */
#pragma once

#include "base/json-write.h"
#include "policy/plan.h"
#include "store/store.h"

/* Adds the records to plan, which settings_plan() made for the session whose directory is path.
 * Each recorded path replaces the one in the policy. A source without a record is new or from an
 * older holt; it gets one when it is opened. Sources in the session's own directory need none.
 * Returns 0, a negative errno of store_meta_get(), or -EINVAL with an ERROR_DATA for a record that
 * holt has not written. */
int sources_read(Store *store, const char *path, LaunchPlan *plan, Error *reterr);
/* Stores the records that have changed since sources_read(). The sources must be open. Returns 0 or
 * a negative errno of store_meta_set(). */
int sources_write(Store *store, const LaunchPlan *plan, Error *reterr);

/* Makes a session at rest accept the files that are at the paths of its sources now. A path that
 * leads through a symlink is refused, just as it is at a start. Each source that differs from
 * before is audited, and added to w, whose array is open, as {target, source}. Returns 0 or a
 * negative errno. */
int sources_rebind(const char *session, JsonWriter *w, Error *reterr);

/* Forbids symlinks to sources in the session's own directory too. path must be the kernel's own
 * name of that directory. */
void sources_pin_own(const char *path, LaunchPlan *plan);
