/* SPDX-License-Identifier: Apache-2.0 */
#include "session/make.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/sys.h"
#include "base/time.h"
#include "child/landlock.h"
#include "git/identity.h"
#include "guards/inputs.h"
#include "policy/layers.h"
#include "reach/reach.h"
#include "sandbox/prepare.h"
#include "sandbox/warnings.h"
#include "session/directory.h"
#include "session/found.h"
#include "session/helpers.h"
#include "session/policy-files.h"
#include "session/sources.h"
#include "session/tier.h"

void session_spec_clear(SessionSpec *spec) {
        settings_clear(&spec->settings);
        strlist_clear(&spec->env);
        *spec = (SessionSpec){ 0 };
}

/* --- the request --- */

static int spec_take_cwd(SessionSpec *spec, const SessionRequest *request, Error *reterr) {
        char own[PATH_MAX], quoted[160];

        if (request->cwd && request->cwd[0] != '/')
                return error_set(reterr, ERROR_USAGE, 0, "cwd: \"%s\" is not an absolute path",
                                 str_quote(request->cwd, quoted, sizeof(quoted)));
        if (!request->cwd && !getcwd(own, sizeof(own)))
                return error_set(reterr, ERROR_SETUP, errno, "cannot find the working directory");
        spec->settings.cwd = strdup(request->cwd ? request->cwd : own);
        return spec->settings.cwd ? 0 : error_oom(reterr);
}

static int spec_take_policy(SessionSpec *spec, const SessionRequest *request, Error *reterr) {
        return request->take_policy(request->words, spec, reterr);
}

static int spec_take_tier(SessionSpec *spec, const SessionRequest *request, Error *reterr) {
        unsigned tier;
        int r;

        if (!request->tier)
                return 0;
        spec->tier = true;
        r = tier_from_name(request->tier, &tier, reterr);
        return r == 0 ? tier_apply(tier, spec->memory, &spec->settings, reterr) : r;
}

/* Returns 0 for "none". */
static int idle_parse(const char *text, uint64_t *ret) {
        *ret = 0;
        return streq(text, "none") ? 0 : str_to_usec(text, ret);
}

bool session_idle_fits(const char *text) {
        uint64_t unused;

        return idle_parse(text, &unused) == 0;
}

static int spec_take_idle(SessionSpec *spec, const SessionRequest *request, Error *reterr) {
        uint64_t *ret = &spec->settings.idle;
        const char *text = request->idle;
        char quoted[80];
        int r;

        if (!text)
                return 0;
        spec->idle = true;
        if (idle_parse(text, ret) == 0 && (*ret >= 1000000 || streq(text, "none")))
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "idle: \"%s\" is not a valid time",
                      str_quote(text, quoted, sizeof(quoted)));
        return error_cure(reterr, r, "%s", SESSION_IDLE_CURE);
}

static int spec_take_degraded(SessionSpec *spec, const SessionRequest *request, Error *reterr) {
        if (!request->degraded)
                return 0;
        spec->degraded = request->degraded->count > 0;
        return layers_degraded(request->degraded, &spec->settings.degraded, reterr);
}

static int spec_take_project(SessionSpec *spec, const SessionRequest *request, Error *reterr) {
        Policy *policy = &spec->settings.policy;
        const bool named = policy->workspace_source && policy->workspace_mode != WORKSPACE_NONE;
        _cleanup_free_ char *path = named ? path_join(spec->settings.cwd, policy->workspace_source)
                                          : NULL;
        _cleanup_close_ int fd = FD_NONE;
        int r;

        (void)request;
        if (!named)
                return 0;
        if (!path)
                return error_oom(reterr);
        fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return 0; /* Making the plan reports the error. */
        r = policy_files_project(policy, fd, reterr);
        if (r == 0)
                r = policy_files_inputs(path, &spec->settings.inputs, reterr);
        if (r < 0)
                policy_files_forget();
        return r;
}

static int spec_take_helpers(SessionSpec *spec, const SessionRequest *request, Error *reterr) {
        Settings *settings = &spec->settings;

        (void)request;
        return helpers_read(&settings->policy, settings->cwd, &settings->helpers, reterr);
}

/* The policy comes before the settings that override it. The project's file comes last, because
 * nothing that the caller says may widen it. */
static int (*const spec_steps[])(SessionSpec *spec, const SessionRequest *request,
                                 Error *reterr) = {
        spec_take_cwd,      spec_take_policy,  spec_take_tier,    spec_take_idle,
        spec_take_degraded, spec_take_project, spec_take_helpers,
};

int session_spec_fill(SessionSpec *spec, const SessionRequest *request, Error *reterr) {
        return RUN_STEPS(spec_steps, spec, request, reterr);
}

/* Copies the variables that the policy passes from the caller's environment, because the keeper has
 * another one. The names stay, so that make_collect_env() can tell which of them pass nothing. */
static int make_settle_env(Policy *policy, Error *reterr) {
        int failed = git_identity_set(policy, reterr);

        for (size_t i = 0; failed == 0 && i < policy->env_pass.count; i++) {
                const char *name = policy->env_pass.items[i], *value = getenv(name);
                const PolicyNote *note = policy_note(policy, "env.pass", name);
                _cleanup_free_ char *item = value ? str_format("%s=%s", name, value) : NULL;
                int r;

                if (!value)
                        continue;
                r = item ? policy_set(policy, "env.set", item, ORIGIN_CALLER,
                                      note ? note->where : "env.pass", reterr)
                         : error_oom(reterr);
                if (r < 0)
                        return r;
        }
        return failed;
}

/* Collects the variables whose values do not come from the caller's current environment. */
static int make_collect_env(const Policy *policy, StrList *ret, Error *reterr) {
        for (size_t i = 0; i < policy->env_set.count; i++) {
                const char *item = policy->env_set.items[i];
                _cleanup_free_ char *name = strndup(item, strcspn(item, "="));

                if (!name)
                        return error_oom(reterr);
                if (strlist_has(&policy->env_pass, name) && getenv(name))
                        continue;
                if (strlist_add(ret, item) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* --- a new session --- */

static int make_warn(const Settings *settings, const LaunchPlan *plan, StrList *warnings,
                     Error *reterr) {
        bool landlock = plan->landlock != LANDLOCK_OFF && landlock_abi() >= LANDLOCK_ABI_NEEDED;
        int r = warnings_find(&settings->policy, plan, landlock, warnings, reterr);

        return r < 0 ? r : warnings_find_below(plan, warnings, reterr);
}

/* Records policy files and helpers that lie in the workspace as protected paths. The session
 * outlives the caller's command, so every start must protect them. */
static int make_protect_inputs(Settings *settings, LaunchPlan *plan, Error *reterr) {
        const bool needed = settings->inputs.count > 0 || settings->helpers.count > 0 ||
                            plan->rootfs.source;
        _cleanup_(reach_freep) Reach *reach = NULL;
        size_t before;
        int r = needed ? reach_new(plan, &reach, reterr) : 0;

        if (r < 0)
                return r;
        r = inputs_protect_rootfs(plan, reach, reterr); /* Each start checks the tree again. */
        if (r < 0)
                return r;
        before = plan->guards_count;
        r = inputs_protect_files(plan, reach, &settings->inputs, reterr);
        if (r == 0)
                r = inputs_protect_files(plan, reach, &settings->helpers, reterr);
        for (size_t i = before; r == 0 && i < plan->guards_count; i++)
                r = policy_set(&settings->policy, "filesystem.protect", plan->guards[i].path,
                               ORIGIN_CALLER, "filesystem.protect", reterr);
        return r;
}

/* Looks for mistakes that show only when the mounts are open. If warnings is NULL, it finds only
 * those that are errors. */
static int make_check_mounts(Settings *settings, LaunchPlan *plan, StrList *warnings,
                             Error *reterr) {
        int r = warnings ? make_warn(settings, plan, warnings, reterr)
                         : warnings_refuse_lists(&settings->policy, plan, reterr);

        return r < 0 ? r : make_protect_inputs(settings, plan, reterr);
}

/* Some mistakes show only in a plan, or in the host paths that it names. They are reported now,
 * rather than at the first use. */
static int make_try_plan(Settings *settings, const char *path, Store *store, StrList *warnings,
                         Error *reterr) {
        _cleanup_(plan_clear) LaunchPlan plan = { 0 };
        int r = sources_plan(settings, store, path, &plan, reterr);

        if (r == 0)
                r = policy_files_check_config(&plan, reterr);
        if (r == 0)
                r = prepare_try_mounts(&plan, reterr);
        if (r == 0)
                r = sources_write(store, &plan, reterr);
        if (r < 0)
                return r;
        r = make_check_mounts(settings, &plan, warnings, reterr);
        prepare_close_mounts(&plan);
        return r;
}

static int make_add_grant(Store *store, const char *layer, const char *option, const char *what,
                          Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_free_ char *grant = str_format("%s %s", option, what);

        json_write_object(&w, NULL);
        json_write_string(&w, "layer", layer);
        json_write_string(&w, "what", what);
        json_write_string(&w, "grant", grant);
        json_write_end(&w);
        return !grant || json_write_finish(&w) < 0
                       ? error_oom(reterr)
                       : store_audit_add(store, "grant", w.data, time_epoch_ms(), reterr);
}

/* Audits every permanent weakening of the session's boundary. */
static int make_audit_grants(const Settings *settings, Store *store, Error *reterr) {
        const StrList *allowed = &settings->policy.syscalls_allow;
        int r = 0;

        for (size_t i = 0; r == 0 && i < allowed->count; i++)
                r = make_add_grant(store, "seccomp", "--allow-syscall", allowed->items[i], reterr);
        for (Layer layer = LAYER_USER; r == 0 && layer < LAYER_MAX; layer++)
                if (settings->degraded & LAYER_BIT(layer))
                        r = make_add_grant(store, layer_table[layer].name, "--allow-degraded",
                                           layer_table[layer].name, reterr);
        return r;
}

static int make_fill(const char *path, Settings *settings, StrList *warnings, Error *reterr) {
        _cleanup_free_ char *database = str_format("%s/" SESSION_DATABASE, path);
        _cleanup_(store_freep) Store *store = NULL;
        int r = database ? store_open(database, STORE_CREATE, &store, reterr) : error_oom(reterr);

        if (r < 0)
                return r;
        r = make_try_plan(settings, path, store, warnings, reterr);
        if (r < 0)
                return r;
        strlist_clear(&settings->policy.env_pass);
        r = settings_write(settings, store, reterr);
        return r < 0 ? r : make_audit_grants(settings, store, reterr);
}

/* Creates the session under another name, and publishes it once it is complete. */
static int make_session(const char *name, Settings *settings, Owner *ret_owner, StrList *warnings,
                        Error *reterr) {
        SessionMaking making = SESSION_MAKING_NONE;
        Owner owner = OWNER_NONE;
        int r = session_prepare(name, &making, reterr);

        if (r < 0)
                return r;
        r = make_fill(making.path, settings, warnings, reterr);
        if (r == 0 && ret_owner)
                r = owner_make(making.path, &owner, reterr);
        if (r == 0)
                r = session_publish(&making, name, reterr);
        if (r < 0) {
                session_discard(&making);
                owner_clear(&owner);
        } else if (ret_owner) {
                *ret_owner = owner;
        }
        return r;
}

/* An existing session is accepted if it matches. It may also vanish meanwhile, because another
 * process removes it. */
static int make_or_find(const char *name, SessionSpec *spec, bool *ret_made, StrList *warnings,
                        Error *reterr) {
        enum { TRIES = 5 };
        int r = 0;

        for (int i = 0; i < TRIES; i++) {
                r = make_session(name, &spec->settings, NULL, warnings, reterr);
                *ret_made = r == 0;
                if (r != -EEXIST)
                        break;
                if (warnings)
                        strlist_clear(warnings);
                r = session_compare(name, spec, reterr);
                if (r == 0 || r == -EEXIST)
                        break;
        }
        return r;
}

int session_make(const char *name, SessionSpec *spec, const SessionMake *how, Error *reterr) {
        Settings *settings = &spec->settings;
        int r = make_collect_env(&settings->policy, &spec->env, reterr);

        if (r == 0)
                r = make_settle_env(&settings->policy, reterr);
        if (r == 0)
                r = owner_take_away(name, reterr);
        if (r < 0)
                return r;
        settings->owned = how->ret_owner != NULL;
        settings->created_ms = time_epoch_ms();
        if (!spec->idle)
                settings->idle = SETTINGS_IDLE_DEFAULT;
        return how->ret_made ? make_or_find(name, spec, how->ret_made, how->warnings, reterr)
                             : make_session(name, settings, how->ret_owner, how->warnings, reterr);
}
