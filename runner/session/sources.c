/* SPDX-License-Identifier: Apache-2.0 */
#include "session/sources.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "base/time.h"
#include "sandbox/prepare.h"
#include "session/at-rest.h"

/* Prefix of keys in the store's meta table; the target follows it. The value is IDENTITY PARENT
 * PATH. PARENT identifies the directory that has a file, or is "-". */
#define META_SOURCE "source:"

static const char *target_of(const PlanMount *mount) {
        return mount->target ? mount->target : "rootfs";
}

/* Returns all mounts in turn, then the system tree, then NULL. */
static const PlanMount *source_at(const LaunchPlan *plan, size_t i) {
        return i < plan->mounts_count    ? &plan->mounts[i]
               : i == plan->mounts_count ? &plan->rootfs
                                         : NULL;
}

static bool needs_record(const PlanMount *mount, const char *path) {
        return plan_mount_shows_host(mount) && mount->source && !path_below(mount->source, path);
}

/* --- reading --- */

static int sources_refuse_record(const PlanMount *mount, Error *reterr) {
        int r = error_set(reterr, ERROR_DATA, 0,
                          "the session's database has a damaged record of the source of %s",
                          target_of(mount));

        return error_cure(reterr, r, "Remove the session and create it again: holt rm.");
}

/* Cuts text into its words, in place. */
static int sources_parse(char *text, PlanMount *mount, Error *reterr) {
        PlanRecord *record = mount->record;
        char *rest = text, *id = strsep(&rest, " "), *parent = rest ? strsep(&rest, " ") : NULL;
        if (!parent || !rest || rest[0] != '/' || file_id_parse(id, &record->id) < 0 ||
            (!streq(parent, "-") && file_id_parse(parent, &record->parent) < 0))
                return sources_refuse_record(mount, reterr);
        free(mount->source);
        mount->source = strdup(rest);
        record->known = true;
        return mount->source ? 0 : error_oom(reterr);
}

static int sources_read_text(Store *store, const char *target, char **ret, Error *reterr) {
        _cleanup_free_ char *name = str_format(META_SOURCE "%s", target);

        return name ? store_meta_get(store, name, ret, reterr) : error_oom(reterr);
}

static int read_one(Store *store, PlanMount *mount, Error *reterr) {
        _cleanup_free_ char *text = NULL;
        int r;

        mount->record = calloc(1, sizeof(*mount->record));
        if (!mount->record)
                return error_oom(reterr);
        mount->record->fd = FD_NONE;
        r = sources_read_text(store, target_of(mount), &text, reterr);
        return r == 0 && text ? sources_parse(text, mount, reterr) : r;
}

static int sources_read(Store *store, const char *path, LaunchPlan *plan, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (needs_record(&plan->mounts[i], path))
                        r = read_one(store, &plan->mounts[i], reterr);
        return r == 0 && needs_record(&plan->rootfs, path) ? read_one(store, &plan->rootfs, reterr)
                                                           : r;
}

int sources_plan(const Settings *settings, Store *store, const char *path, LaunchPlan *ret,
                 Error *reterr) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        int r = settings_plan(settings, path, &plan, reterr);

        if (r == 0)
                r = sources_read(store, path, &plan, reterr);
        if (r < 0)
                return r;
        *ret = plan;
        plan = (LaunchPlan){ 0 };
        return 0;
}

int sources_open(int dir_fd, const char *path, StoreMode mode, Settings *ret_settings,
                 LaunchPlan *ret, Error *reterr) {
        _cleanup_(store_freep) Store *store = NULL;
        int r = settings_open(dir_fd, mode, &store, ret_settings, reterr);

        return r < 0 ? r : sources_plan(ret_settings, store, path, ret, reterr);
}

int sources_write_facts(Store *store, const char *path, JsonWriter *w, Error *reterr) {
        _cleanup_(settings_clear) Settings settings = { 0 };
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        int r = settings_read(store, &settings, reterr);

        if (r == 0)
                r = sources_plan(&settings, store, path, &plan, reterr);
        if (r == 0)
                settings_write_facts(&settings, &plan, false, w);
        return r;
}

void sources_pin_own(const char *path, LaunchPlan *plan) {
        for (size_t i = 0; i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]) &&
                    path_below(plan->mounts[i].source, path))
                        plan->mounts[i].flags |= PLAN_NO_LINKS;
        plan->root.flags |= PLAN_NO_LINKS;
        plan->state.flags |= PLAN_NO_LINKS;
}

/* --- writing --- */

static int write_one(Store *store, const PlanMount *mount, Error *reterr) {
        char id[FILE_ID_TEXT_MAX], parent[FILE_ID_TEXT_MAX];
        const PlanRecord *record = mount->record;
        _cleanup_free_ char *name = str_format(META_SOURCE "%s", target_of(mount));
        _cleanup_free_ char *text = str_format(
                "%s %s %s", file_id_print(&record->id, id),
                record->parent.mode ? file_id_print(&record->parent, parent) : "-", mount->real);

        return name && text ? store_meta_set(store, name, text, reterr) : error_oom(reterr);
}

int sources_write(Store *store, const LaunchPlan *plan, Error *reterr) {
        const PlanMount *mount;
        int r = 0;

        for (size_t i = 0; r == 0 && (mount = source_at(plan, i)); i++)
                if (mount->record && mount->record->changed)
                        r = write_one(store, mount, reterr);
        return r;
}

/* --- rebinding --- */

/* Accepts any file at the path, which is still the recorded one. */
static void sources_forget(PlanMount *mount) {
        if (!mount->record || !mount->record->known)
                return;
        mount->record->known = false;
        mount->flags |= PLAN_NO_LINKS;
}

static void write_source(const PlanMount *mount, JsonWriter *w) {
        json_write_string(w, "target", target_of(mount));
        json_write_string(w, "source", mount->real);
}

static int audit_source(Store *store, const PlanMount *mount, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "grant", "holt rebind");
        write_source(mount, &w);
        json_write_end(&w);
        return json_write_finish(&w) < 0
                       ? error_oom(reterr)
                       : store_audit_add(store, "grant", w.data, time_epoch_ms(), reterr);
}

static int sources_tell(Store *store, const LaunchPlan *plan, JsonWriter *w, Error *reterr) {
        const PlanMount *mount;
        int r = 0;

        for (size_t i = 0; r == 0 && (mount = source_at(plan, i)); i++) {
                if (!mount->record || !mount->record->changed)
                        continue;
                r = audit_source(store, mount, reterr);
                json_write_object(w, NULL);
                write_source(mount, w);
                json_write_end(w);
        }
        return r;
}

static int sources_rebind_plan(Store *store, LaunchPlan *plan, JsonWriter *w, Error *reterr) {
        int r;

        for (size_t i = 0; i < plan->mounts_count; i++)
                sources_forget(&plan->mounts[i]);
        sources_forget(&plan->rootfs);
        r = prepare_try_mounts(plan, reterr);
        if (r < 0)
                return r;
        r = sources_write(store, plan, reterr);
        if (r == 0)
                r = sources_tell(store, plan, w, reterr);
        prepare_close_mounts(plan);
        return r;
}

int sources_rebind(const char *session, JsonWriter *w, Error *reterr) {
        _cleanup_(at_rest_close) AtRest rest = AT_REST_NONE;
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        int r = at_rest_open(session, &rest, reterr);

        if (r < 0)
                return r;
        r = sources_plan(&rest.settings, rest.store, rest.path, &plan, reterr);
        if (r < 0)
                return r;
        return sources_rebind_plan(rest.store, &plan, w, reterr);
}
