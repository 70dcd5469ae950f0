/* SPDX-License-Identifier: Apache-2.0 */

#include "session/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/paths.h"
#include "base/time.h"
#include "outcome/result.h"
#include "policy/layers.h"
#include "policy/load.h"
#include "policy/network-fields.h"
#include "policy/schema.h"
#include "session/directory.h"
#include "session/helpers.h"
#include "session/route-store.h"
#include "session/routes.h"
#include "session/tier.h"

/* Keys in the store's meta table. */
#define META_POLICY "policy"   /* JSON policy document */
#define META_CWD "cwd"         /* absolute path */
#define META_CREATED "created" /* numbers, as in Settings */
#define META_IDLE "idle"
#define META_DEGRADED "degraded"
#define META_TIER "tier"
#define META_OWNED "owned"     /* 1 or 0 */
#define META_PROJECT "project" /* paths of the fields that the project's file set, a line each */

static OnceRule *once_rule_free(OnceRule *once) {
        if (once)
                free(once->rule);
        free(once);
        return NULL;
}

int settings_add_once(Settings *settings, uint32_t id, const char *rule) {
        OnceRule *once = calloc(1, sizeof(*once));

        if (once)
                once->rule = strdup(rule);
        if (!once || !once->rule) {
                (void)once_rule_free(once);
                return -ENOMEM;
        }
        once->id = id;
        list_append(&settings->once, once);
        return 0;
}

void settings_use_once(Settings *settings, uint32_t id) {
        list_each_safe(once, settings->once) {
                if (once->id != id)
                        continue;
                (void)list_remove(&settings->once, once);
                (void)once_rule_free(once);
        }
}

void settings_clear(Settings *settings) {
        list_each_safe(once, settings->once)
                (void)once_rule_free(once);
        policy_clear(&settings->policy);
        free(settings->cwd);
        free(settings->tier);
        plan_inputs_clear(&settings->inputs);
        plan_inputs_clear(&settings->helpers);
        *settings = (Settings){ 0 };
}

/* --- writing --- */

int settings_write_policy(const Settings *settings, Store *store, const char *kind,
                          const StrList *details, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };
        int r = policy_document_print(&settings->policy, &w);

        if (r == 0)
                r = json_write_finish(&w);
        return r < 0 ? error_oom(reterr)
                     : store_meta_set_audited(store, META_POLICY, w.data, kind, details,
                                              time_epoch_ms(), reterr);
}

static int write_number(Store *store, const char *name, uint64_t value, Error *reterr) {
        char number[24];

        (void)snprintf(number, sizeof(number), "%" PRIu64, value);
        return store_meta_set(store, name, number, reterr);
}

/* The policy's document does not say which values the project's file has set. */
static int settings_write_project(const Settings *settings, Store *store, Error *reterr) {
        _cleanup_(strlist_clear) StrList fields = { 0 };
        _cleanup_free_ char *lines = NULL;
        int r = policy_project_fields(&settings->policy, &fields);

        for (size_t i = 0; r == 0 && i < fields.count; i++) {
                char *longer = str_format("%s%s\n", lines ? lines : "", fields.items[i]);

                free(lines);
                lines = longer;
                r = lines ? 0 : -ENOMEM;
        }
        if (r < 0)
                return error_oom(reterr);
        return lines ? store_meta_set(store, META_PROJECT, lines, reterr) : 0;
}

int settings_write(const Settings *settings, Store *store, Error *reterr) {
        const struct {
                const char *name, *value; /* without a value, the pair is left out */
        } texts[] = {
                { META_CWD, settings->cwd },
                { META_TIER, settings->tier },
        };
        const struct {
                const char *name;
                uint64_t value;
        } numbers[] = {
                { META_CREATED, settings->created_ms },
                { META_IDLE, settings->idle },
                { META_DEGRADED, settings->degraded },
                { META_OWNED, settings->owned },
        };
        int r = settings_write_policy(settings, store, NULL, &(StrList){ 0 }, reterr);

        if (r == 0)
                r = settings_write_project(settings, store, reterr);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(texts); i++)
                if (texts[i].value)
                        r = store_meta_set(store, texts[i].name, texts[i].value, reterr);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(numbers); i++)
                r = write_number(store, numbers[i].name, numbers[i].value, reterr);
        return r < 0 ? r : helpers_store(&settings->policy, &settings->helpers, store, reterr);
}

/* --- reading --- */

static int settings_read_number(Store *store, const char *name, uint64_t otherwise, uint64_t *ret,
                                Error *reterr) {
        _cleanup_free_ char *text = NULL;
        int r = store_meta_get(store, name, &text, reterr);

        *ret = otherwise;
        if (r == 0 && text)
                (void)str_to_uint(text, UINT64_MAX / 2, ret);
        return r;
}

static int read_policy(Store *store, Settings *ret, Error *reterr) {
        _cleanup_free_ char *policy = NULL;
        int r = store_meta_get(store, META_POLICY, &policy, reterr);

        if (r == 0)
                r = store_meta_get(store, META_CWD, &ret->cwd, reterr);
        if (r < 0)
                return r;
        if (!policy || !ret->cwd) {
                r = error_set(reterr, ERROR_DATA, 0, "the session's database contains no policy");
                return error_cure(reterr, r,
                                  "It was not made by holt create. Remove the session: holt rm.");
        }
        return policy_load(&ret->policy, policy, strlen(policy), "the session's policy",
                           ORIGIN_CALLER, reterr);
}

static int settings_read_project(Store *store, Policy *policy, Error *reterr) {
        _cleanup_free_ char *lines = NULL;
        char *rest = NULL;
        int r = store_meta_get(store, META_PROJECT, &lines, reterr);

        if (r < 0 || !lines)
                return r;
        for (const char *path = strtok_r(lines, "\n", &rest); r == 0 && path;
             path = strtok_r(NULL, "\n", &rest))
                r = policy_note_project(policy, path);
        return r < 0 ? error_oom(reterr) : 0;
}

int settings_read(Store *store, Settings *ret, Error *reterr) {
        uint64_t degraded = 0, owned = 0;
        const struct {
                const char *name;
                uint64_t otherwise, *ret;
        } numbers[] = {
                { META_CREATED, 0, &ret->created_ms },
                { META_IDLE, SETTINGS_IDLE_DEFAULT, &ret->idle },
                { META_DEGRADED, 0, &degraded },
                { META_OWNED, 0, &owned },
        };
        int r = read_policy(store, ret, reterr);

        if (r == 0)
                r = settings_read_project(store, &ret->policy, reterr);
        if (r == 0)
                r = helpers_load(&ret->policy, store, &ret->helpers, reterr);
        if (r == 0)
                r = store_meta_get(store, META_TIER, &ret->tier, reterr);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(numbers); i++)
                r = settings_read_number(store, numbers[i].name, numbers[i].otherwise,
                                         numbers[i].ret, reterr);
        ret->degraded = (unsigned)degraded;
        ret->owned = owned;
        return r;
}

int settings_plan(const Settings *settings, const char *path, LaunchPlan *ret, Error *reterr) {
        const PlanContext context = { .cwd = settings->cwd,
                                      .session = path,
                                      .degraded = settings->degraded };

        int r = plan_make(&settings->policy, &context, ret, reterr);

        if (r < 0)
                return r;
        ret->cpus = tier_cpus(settings->tier);
        r = routes_prepare(&settings->policy, ret, false, reterr);
        if (r == 0)
                r = helpers_plan(&settings->policy, &settings->helpers, ret, reterr);
        if (r < 0)
                plan_clear(ret);
        return r;
}

/* --- facts for clients --- */

/* A live session continues with a source that was renamed on the host. */
static void write_moved(const PlanMount *mount, JsonWriter *w) {
        char path[PATH_MAX];

        if (mount->record && mount->record->fd >= 0 && path_of_fd(mount->record->fd, path) == 0 &&
            !streq(path, mount->source))
                json_write_string(w, "moved_to", path);
}

static void write_mounts(const LaunchPlan *plan, JsonWriter *w) {
        json_write_array(w, "mounts");
        for (size_t i = 0; i < plan->mounts_count; i++) {
                const PlanMount *mount = &plan->mounts[i];

                if (!plan_mount_shows_host(mount))
                        continue;
                json_write_object(w, NULL);
                json_write_string(w, "target", mount->target);
                json_write_string(w, "source", mount->source);
                json_write_bool(w, "read_only", mount->flags & PLAN_READ_ONLY);
                write_moved(mount, w);
                json_write_end(w);
        }
        json_write_end(w);
}

static void settings_write_texts(JsonWriter *w, const char *key, const StrList *texts) {
        json_write_array(w, key);
        for (size_t i = 0; i < texts->count; i++)
                json_write_string(w, NULL, texts->items[i]);
        json_write_end(w);
}

static void settings_write_network(const Settings *settings, const LaunchPlan *plan,
                                   JsonWriter *w) {
        json_write_object(w, "network");
        json_write_string(w, "mode", network_modes[plan->network]);
        settings_write_texts(w, "allow", &plan->net_allow);
        json_write_array(w, "once");
        for (const OnceRule *once = settings->once; once; once = once->next)
                json_write_string(w, NULL, once->rule);
        json_write_end(w);
        settings_write_texts(w, "publish", &plan->net_publish);
        settings_write_texts(w, "import", &plan->net_import);
        json_write_end(w);
}

void settings_write_facts(const Settings *settings, const LaunchPlan *plan, bool live,
                          JsonWriter *w) {
        const PlanMount *workspace = plan_workspace(plan);

        json_write_uint(w, "created_ms", settings->created_ms);
        json_write_uint(w, "idle_us", settings->idle);
        json_write_string(w, "preset", settings->policy.preset);
        json_write_string(w, "tier", settings->tier);
        json_write_uint_or_null(w, "cpus", tier_cpus(settings->tier));
        json_write_bool(w, "owned", settings->owned);
        json_write_string(w, "directory", plan->state.source);
        json_write_string(w, "cwd", plan->cwd);
        json_write_string(w, "workspace", workspace ? workspace->source : NULL);
        write_mounts(plan, w);
        result_write_limits(w, plan);
        settings_write_network(settings, plan, w);
        route_store_write(&settings->policy, live ? plan : NULL, w);
        json_write_array(w, "allow_degraded");
        for (Layer layer = LAYER_USER; layer < LAYER_MAX; layer++)
                if (settings->degraded & LAYER_BIT(layer))
                        json_write_string(w, NULL, layer_table[layer].name);
        json_write_end(w);
}

/* --- the database --- */

int settings_open_store(int dir_fd, StoreMode mode, Store **ret, Error *reterr) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/" SESSION_DATABASE, dir_fd);
        return store_open(path, mode, ret, reterr);
}

int settings_open(int dir_fd, StoreMode mode, Store **ret, Settings *ret_settings, Error *reterr) {
        int r = settings_open_store(dir_fd, mode, ret, reterr);

        if (r == 0)
                r = settings_read(*ret, ret_settings, reterr);
        return r;
}
