/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a session's host directories and files in its database: the kernel's own path of each,
 * and its identity. reach/recorded.c compares them at every start. */
#pragma once

#include "base/json-write.h"
#include "session/settings.h"

/* Makes the plan of the session whose directory is path, with these records. Each recorded path
 * replaces the one in the policy. A source without a record is new or from an older holt; it gets
 * one when it is opened. Sources in the session's own directory need none. The caller clears *ret.
 * Returns 0; a negative errno of settings_plan() or store_meta_get(); or -EINVAL with an ERROR_DATA
 * for a record that holt has not written. */
int sources_plan(const Settings *settings, Store *store, const char *path, LaunchPlan *ret,
                 Error *reterr);
/* Does the same for the session whose directory, path, is open as dir_fd. Reads the settings into
 * ret_settings (zeroed), which the caller clears even on failure. */
int sources_open(int dir_fd, const char *path, StoreMode mode, Settings *ret_settings,
                 LaunchPlan *ret, Error *reterr);
/* Does the same as settings_write_facts(), from the database of the session whose directory is
 * path. Returns 0 or a negative errno. */
int sources_write_facts(Store *store, const char *path, JsonWriter *w, Error *reterr);
/* Stores the records that have changed since sources_plan(). The sources must be open. Returns 0 or
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
