/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the routes of a session, which are stored in its policy. */
#pragma once

#include "base/json.h"
#include "session/settings.h"

/* Makes an item of bridge.routes: from the name of a known provider, or from an object. Exactly one
 * of them is not NULL. The caller owns *ret. Returns 0, -EINVAL (ERROR_USAGE or ERROR_POLICY), or
 * -ENOMEM. */
int route_item_make(const char *provider, const JsonValue *object, char **ret, Error *reterr);

/* Adds to ret the names of the variables that commands get by the item. Returns 0 or -ENOMEM. */
int route_item_variables(const char *item, StrList *ret);

/* Stores one more route. The whole policy is checked first. On failure, nothing is changed. Returns
 * 0; -EEXIST with an ERROR_EXISTS; or a negative errno of routes_plan() or settings_write_policy().
 */
int route_store_add(Settings *settings, Store *store, const char *item, Error *reterr);
/* Removes the route of this name. Returns 0; -ENOENT with an ERROR_MISSING; or a negative errno of
 * settings_write_policy(). */
int route_store_remove(Settings *settings, Store *store, const char *name, Error *reterr);
/* The same for a session at rest. They also return -EWOULDBLOCK if the session is live. */
int route_add_at_rest(const char *session, const char *item, Error *reterr);
int route_remove_at_rest(const char *session, const char *name, Error *reterr);

/* Returns why a live session cannot take the route now, or NULL. text: the route in the form that
 * holt-gateway reads. item: the same route in the policy. Static. */
const char *route_waits(const char *text, const char *item);

/* Writes the array "routes", one object for each route of the policy, without the sources of
 * credentials. plan: that of the live session, or NULL. */
void route_store_write(const Policy *policy, const LaunchPlan *plan, JsonWriter *w);
/* Does the same from the database of a session. Returns 0 or a negative errno. */
int route_store_write_at_rest(Store *store, JsonWriter *w, Error *reterr);

/* Makes a sealed memory file with those variables of the caller that the route reads as
 * credentials, for holt-gateway alone. *ret is FD_NONE if there are none. Returns 0; -EINVAL with
 * an ERROR_USAGE if a variable is unset; or another negative errno. */
int route_secrets_pack(const char *item, int *ret, Error *reterr);

/* Returns whether the plan of a live session has a route of this name. */
bool route_is_live(const LaunchPlan *plan, const char *name);
