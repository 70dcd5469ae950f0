/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of a session, fixed when it was created and stored in its database (store_meta_set()).
 * Its keeper follows them; verbs that only read load them while the session is at rest. */
#pragma once

#include "base/json-write.h"
#include "policy/plan.h"
#include "store/store.h"

#define SETTINGS_IDLE_DEFAULT UINT64_C(600000000) /* usec */

/* A grant for one connection, of a live session. */
typedef struct OnceRule {
        struct OnceRule *next;
        uint32_t id; /* Its number for holt-egress. */
        char *rule;  /* Owned. */
} OnceRule;

typedef struct Settings {
        Policy policy;
        char *cwd;           /* Directory for the policy's relative paths; owned. */
        uint64_t created_ms; /* Milliseconds since the epoch. */
        OnceRule *once;      /* One-time grants that are not used yet; owned, not stored. */
        uint64_t idle;       /* usec without use until the session stops; 0 means never. */
        unsigned degraded;   /* LAYER_BITs of --allow-degraded. */
        bool owned;          /* The session ends with its creator (session/owner.h). */
        PlanInputs inputs;   /* Policy files of a session being created; not stored. */
        PlanInputs helpers;  /* Texts of bridge.helpers, in the same order; stored. */
        char *tier;          /* Name of the tier that set its size, or NULL; owned. */
} Settings;

void settings_clear(Settings *settings);

/* Opens the database of the session whose directory is dir_fd. Errors are those of store_open(). */
int settings_open_store(int dir_fd, StoreMode mode, Store **ret, Error *reterr);
/* Does the same, and reads the settings into ret_settings (zeroed), which the caller clears even on
 * failure. */
int settings_open(int dir_fd, StoreMode mode, Store **ret, Settings *ret_settings, Error *reterr);

/* Returns 0, or a negative errno of store_meta_set(). */
int settings_write(const Settings *settings, Store *store, Error *reterr);
/* Writes only the policy, with an event in the audit for each detail: all or nothing. Returns 0, or
 * a negative errno of store_meta_set_audited(). */
int settings_write_policy(const Settings *settings, Store *store, const char *kind,
                          const StrList *details, Error *reterr);
/* Reads settings into ret (zeroed), which the caller clears even on failure. Returns 0; -EINVAL
 * with an ERROR_DATA if the database is not a session's; or a negative errno of store_meta_get() or
 * policy_load(). */
int settings_read(Store *store, Settings *ret, Error *reterr);

/* Adds a one-time grant. Returns 0 or -ENOMEM. */
int settings_add_once(Settings *settings, uint32_t id, const char *rule);
/* Removes the one-time grant with this number, if there is one. */
void settings_use_once(Settings *settings, uint32_t id);

/* Makes the plan of the session whose directory is path (absolute). Errors are those of
 * plan_make(). */
int settings_plan(const Settings *settings, const char *path, LaunchPlan *ret, Error *reterr);

/* Writes members of an object for a live session or one at rest. They are created_ms, idle_us,
 * preset, tier, cpus, owned, directory, cwd, mounts, limits, routes, allow_degraded. */
void settings_write_facts(const Settings *settings, const LaunchPlan *plan, bool live,
                          JsonWriter *w);
