/* SPDX-License-Identifier: Apache-2.0 */
#include "session/found.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "session/directory.h"
#include "session/sources.h"

/* Fields with host paths, relative to the directory in which the session was created. */
static const char *const host_paths[] = {
        "filesystem.workspace.source", "filesystem.files.source", "filesystem.rootfs",
        "filesystem.read_only",        "filesystem.read_write",   "python.wheels",
};

typedef struct Comparison {
        const char *name;
        const SessionSpec *spec; /* The request. */
        const Settings *asked, *there;
        const StrList *given, *recorded; /* The session's sources: as given, and as recorded. */
        Error *reterr;
} Comparison;

/* detail may be NULL. */
static int compare_refuse(const Comparison *c, const char *what, const char *detail) {
        char quoted[400];

        (void)error_set(c->reterr, ERROR_EXISTS, 0,
                        "session \"%s\" already exists with a different %s%s%s%s", c->name, what,
                        detail ? " (" : "", detail ? str_quote(detail, quoted, sizeof(quoted)) : "",
                        detail ? ")" : "");
        return error_cure(c->reterr, -EEXIST,
                          "To use the session as it is, leave this out. Otherwise choose another "
                          "name, or remove the session: holt rm %s",
                          c->name);
}

static int compare_refuse_value(const Comparison *c, const char *what, const char *there,
                                const char *asked) {
        _cleanup_free_ char *detail = str_format("%s, not %s", there ? there : "none",
                                                 asked ? asked : "none");

        return compare_refuse(c, what, detail);
}

/* --- values --- */

static bool is_host_path(const PolicyField *field) {
        for (size_t i = 0; i < ELEMENTSOF(host_paths); i++)
                if (streq(field->path, host_paths[i]))
                        return true;
        return false;
}

/* Resolves symlinks, if the path exists. */
static char *compare_resolved(const char *cwd, const char *path, size_t length) {
        _cleanup_free_ char *given = strndup(path, length);
        char *joined = given ? path_join(cwd, given) : NULL;
        char *real = joined ? realpath(joined, NULL) : NULL;

        if (!real)
                return joined;
        free(joined);
        return real;
}

/* Returns the recorded path of a source that the policy gives as path: its symlinks may lead
 * elsewhere now. */
static char *recorded_path(const Comparison *c, const char *path, size_t length) {
        _cleanup_free_ char *given = strndup(path, length);
        _cleanup_free_ char *joined = given ? path_join(c->there->cwd, given) : NULL;

        for (size_t i = 0; joined && i < c->given->count; i++)
                if (streq(c->given->items[i], joined))
                        return strdup(c->recorded->items[i]);
        return compare_resolved(c->there->cwd, path, length);
}

static bool same_path(const Comparison *c, const char *asked, const char *there) {
        size_t asked_length, there_length;
        const char *asked_target = policy_bind_split(asked, &asked_length),
                   *there_target = policy_bind_split(there, &there_length);
        _cleanup_free_ char *one = compare_resolved(c->asked->cwd, asked, asked_length),
                            *two = recorded_path(c, there, there_length);

        return one && two && streq(one, two) &&
               (asked_target && there_target ? streq(asked_target, there_target)
                                             : asked_target == there_target);
}

static bool compare_same(const Comparison *c, const PolicyField *field, const char *asked,
                         const char *there) {
        if (!asked || !there)
                return asked == there;
        return is_host_path(field) ? same_path(c, asked, there) : streq(asked, there);
}

/* --- fields --- */

/* Rules of the project's file do not count, because they are fixed when the session is created. */
static bool is_given(const Comparison *c, const PolicyField *field, const char *text) {
        const PolicyNote *note = policy_note(&c->asked->policy, field->path, text);

        return note && note->origin != ORIGIN_PROJECT;
}

/* The path is the same, but led elsewhere when the session was created. */
static int refuse_moved(const Comparison *c, const PolicyField *field, const char *path) {
        _cleanup_free_ char *there = recorded_path(c, path, strlen(path)),
                            *asked = compare_resolved(c->asked->cwd, path, strlen(path));

        return compare_refuse_value(c, field->path, there, asked);
}

static int compare_scalar(const Comparison *c, const PolicyField *field) {
        _cleanup_free_ char *asked = policy_field_text(&c->asked->policy, field, 0),
                            *there = policy_field_text(&c->there->policy, field, 0);

        if (!is_given(c, field, NULL) || compare_same(c, field, asked, there))
                return 0;
        if (field->mask)
                return compare_refuse(c, field->path, NULL);
        return asked && there && streq(asked, there)
                       ? refuse_moved(c, field, asked)
                       : compare_refuse_value(c, field->path, there, asked);
}

static bool has_item(const Comparison *c, const PolicyField *field, const char *asked) {
        for (size_t i = 0;; i++) {
                _cleanup_free_ char *there = policy_field_text(&c->there->policy, field, i);

                if (!there)
                        return false;
                if (compare_same(c, field, asked, there))
                        return true;
        }
}

static size_t count_items(const Policy *policy, const PolicyField *field) {
        for (size_t i = 0;; i++) {
                _cleanup_free_ char *item = policy_field_text(policy, field, i);

                if (!item)
                        return i;
        }
}

static int compare_list(const Comparison *c, const PolicyField *field) {
        const size_t count = count_items(&c->asked->policy, field);
        const bool permits = field->merge == MERGE_CALLER || field->merge == MERGE_COMMON;
        size_t given = 0;

        for (size_t i = 0; i < count; i++) {
                _cleanup_free_ char *asked = policy_field_text(&c->asked->policy, field, i);

                if (!asked || !is_given(c, field, asked))
                        continue;
                given++;
                if (!has_item(c, field, asked)) {
                        _cleanup_free_ char *detail = str_format(
                                "%s is missing from the session's list", asked);

                        return compare_refuse(c, field->path, detail);
                }
        }
        return given > 0 && permits && count_items(&c->there->policy, field) > count
                       ? compare_refuse(c, field->path, "the session's list has more entries")
                       : 0;
}

static int compare_fields(const Comparison *c) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < policy_fields_count; i++) {
                const PolicyField *field = &policy_fields[i];

                if (field->kind == FIELD_LIST && !streq(field->path, "env.pass"))
                        r = compare_list(c, field);
                else if (field->kind != FIELD_LIST && field->kind != FIELD_MAP)
                        r = compare_scalar(c, field);
        }
        return r;
}

/* Values may be secrets, so the message does not show them. */
static int compare_env(const Comparison *c) {
        const StrList *env = &c->spec->env;

        for (size_t i = 0; i < env->count; i++) {
                char what[200];

                if (strlist_has(&c->there->policy.env_set, env->items[i]))
                        continue;
                (void)snprintf(what, sizeof(what), "value of the environment variable %.*s",
                               (int)strcspn(env->items[i], "="), env->items[i]);
                return compare_refuse(c, what, NULL);
        }
        return 0;
}

/* --- the whole session --- */

static const char *preset_of(const Settings *settings) {
        return settings->policy.preset ? settings->policy.preset : POLICY_PRESET_DEFAULT;
}

static int compare_idle(const Comparison *c) {
        const PolicyField *timeout = policy_field("limits.timeout");
        _cleanup_free_ char *there = policy_number_text(timeout, c->there->idle),
                            *asked = policy_number_text(timeout, c->asked->idle);

        if (!c->spec->idle || c->asked->idle == c->there->idle)
                return 0;
        return compare_refuse_value(c, "idle", c->there->idle ? there : NULL,
                                    c->asked->idle ? asked : NULL);
}

/* A client's own session is removed with all its data, so nobody else may use it. */
static int compare_owned(const Comparison *c) {
        if (!c->there->owned)
                return 0;
        (void)error_set(c->reterr, ERROR_EXISTS, 0,
                        "session \"%s\" already exists, and is removed when the client that "
                        "created it disconnects",
                        c->name);
        return error_cure(c->reterr, -EEXIST, "Choose another name.");
}

static int compare_preset(const Comparison *c) {
        const char *there = preset_of(c->there), *asked = preset_of(c->asked);

        return c->spec->preset && !streq(asked, there)
                       ? compare_refuse_value(c, "policy", there, asked)
                       : 0;
}

static int compare_tier(const Comparison *c) {
        const char *there = c->there->tier, *asked = c->asked->tier;

        return c->spec->tier && (!there || !streq(asked, there))
                       ? compare_refuse_value(c, "tier", there, asked)
                       : 0;
}

static int compare_degraded(const Comparison *c) {
        return c->spec->degraded && c->asked->degraded != c->there->degraded
                       ? compare_refuse(c, "allow_degraded", NULL)
                       : 0;
}

static int (*const compare_steps[])(const Comparison *c) = {
        compare_owned, compare_preset, compare_tier,     compare_fields,
        compare_env,   compare_idle,   compare_degraded,
};

static int compare_session(const Comparison *c) {
        return RUN_STEPS(compare_steps, c);
}

static int add_sources(const LaunchPlan *plan, StrList *list) {
        int r = strlist_add(list, plan->rootfs.source ? plan->rootfs.source : "");

        for (size_t i = 0; r == 0 && i < plan->mounts_count; i++)
                if (plan_mount_shows_host(&plan->mounts[i]))
                        r = strlist_add(list, plan->mounts[i].source);
        return r;
}

/* Lists the sources with their paths in the policy, which may differ from the recorded ones. */
static int list_given(const Settings *settings, const char *path, StrList *ret, Error *reterr) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        int r = settings_plan(settings, path, &plan, reterr);

        return r == 0 && add_sources(&plan, ret) < 0 ? error_oom(reterr) : r;
}

int session_compare(const char *name, const SessionSpec *spec, Error *reterr) {
        _cleanup_(settings_clear) Settings there = { 0 };
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        _cleanup_(strlist_clear) StrList given = { 0 }, recorded = { 0 };
        const Comparison c = { name, spec, &spec->settings, &there, &given, &recorded, reterr };
        _cleanup_close_ int dir_fd = FD_NONE;
        char path[PATH_MAX];
        int r = session_open(name, &dir_fd, path, reterr);

        if (r == 0)
                r = sources_open(dir_fd, path, STORE_READ, &there, &plan, reterr);
        if (r == 0)
                r = list_given(&there, path, &given, reterr);
        if (r < 0)
                return r;
        return add_sources(&plan, &recorded) < 0 ? error_oom(reterr) : compare_session(&c);
}
