/* SPDX-License-Identifier: Apache-2.0 */
/* What a session was made to be, as its database has it (store_meta_set()). Its keeper goes by it,
 * and verbs that only look read it while the session is at rest. */
#pragma once

#include "base/json-write.h"
#include "policy/plan.h"
#include "store/store.h"

#define SETTINGS_IDLE_DEFAULT UINT64_C(600000000) /* usec */

typedef struct Settings {
        Policy policy;
        char *cwd;           /* what the policy's relative paths are relative to; owned */
        uint64_t created_ms; /* since the epoch */
        uint64_t idle;       /* usec without use until it is stopped; 0 for never */
        unsigned degraded;   /* LAYER_BITs of --allow-degraded */
        bool owned;          /* it goes with who made it (session/owner.h) */
        PlanInputs inputs;   /* of a session being made: the policy files, which are not stored */
        char *tier;          /* by whose name its size was given, or NULL; owned */
} Settings;

void settings_clear(Settings *settings);

/* Opens the database of the session whose directory is dir_fd. The errors are those of
 * store_open().
 */
int settings_open_store(int dir_fd, StoreMode mode, Store **ret, Error *reterr);
/* The same, and reads its settings into ret, which is zeroed; the caller clears it in any case. */
int settings_open(int dir_fd, StoreMode mode, Store **ret, Settings *ret_settings, Error *reterr);

/* 0, or a negative errno of store_meta_set(). */
int settings_write(const Settings *settings, Store *store, Error *reterr);
/* ret is zeroed. 0; -EINVAL with an ERROR_DATA where the database is no session's; or a negative
 * errno of store_meta_get(), policy_load(). What is in ret is the caller's in any case. */
int settings_read(Store *store, Settings *ret, Error *reterr);

/* The plan of a session whose directory is path, absolute. As plan_make(). */
int settings_plan(const Settings *settings, const char *path, LaunchPlan *ret, Error *reterr);

/* Members of an object, the same whether the session is live or at rest: created_ms, idle_us,
 * preset, tier, cpus, owned, directory, cwd, mounts, limits, allow_degraded. */
void settings_write_facts(const Settings *settings, const LaunchPlan *plan, JsonWriter *w);
