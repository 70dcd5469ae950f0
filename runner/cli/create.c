/* SPDX-License-Identifier: Apache-2.0 */
/* holt create: a session that is at rest; its first use starts it. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/create.h"
#include "base/time.h"
#include "session/found.h"
#include "cli/fail.h"
#include "cli/operands.h"
#include "cli/policy-files.h"
#include "cli/report.h"
#include "cli/show.h"
#include "cli/verbs.h"
#include "cli/warnings.h"
#include "policy/layers.h"
#include "policy/plan.h"
#include "policy/schema.h"
#include "sandbox/landlock.h"
#include "sandbox/prepare.h"
#include "reach/reach.h"
#include "keeper/keeper.h"
#include "session/sources.h"
#include "session/tier.h"
#include "guards/inputs.h"

extern char **environ;

typedef struct CreateOptions {
        const char *idle;
        unsigned tier; /* an index of tier_names[], or TIERS */
        bool json;
        StrList allow_degraded;
} CreateOptions;

static const Option create_options[] = {
        { "--idle", "TIME", "stop it after so long without use; \"none\" for never", OPTION_STRING,
          offsetof(CreateOptions, idle), NULL },
        { "--tier", "standard|medium|large|xlarge",
          "1, 2, 4 or 8 processors, and as many GiB of memory for each process", OPTION_ENUM,
          offsetof(CreateOptions, tier), tier_names },
        { "--allow-degraded", "LAYER", "go on where this host refuses the layer", OPTION_LIST,
          offsetof(CreateOptions, allow_degraded), NULL },
        { "--json", NULL, "print what was made as JSON", OPTION_BOOL, offsetof(CreateOptions, json),
          NULL },
};

static const OptionSyntax create_syntax = {
        .verb = "create",
        .usage = "NAME [OPTIONS]",
        .summary =
                "Makes a session: a sandbox that lasts. Its workspace is at /workspace inside, and "
                "its own\nunless --workspace names one; /mnt/files is for files that come and go.",
        .options = create_options,
        .options_count = ELEMENTSOF(create_options),
        .policy = true,
        .operands = true,
        .help_epilog =
                "The policy is settled now, the caller's variables that it passes too. Then: "
                "holt exec NAME -- COMMAND",
};

/* What the policy passes of the caller's environment is what it is now: the keeper has another. The
 * names stay until it is known which of them pass nothing. */
static int settle_env(Policy *policy, Error *reterr) {
        for (size_t i = 0; i < policy->env_pass.count; i++) {
                const char *name = policy->env_pass.items[i], *value = getenv(name);
                _cleanup_free_ char *item = value ? str_format("%s=%s", name, value) : NULL;
                int r;

                if (!value)
                        continue;
                r = item ? policy_set(policy, "env.set", item, ORIGIN_CALLER, "--env", reterr)
                         : error_oom(reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Variables whose values are not the caller's environment's of this moment. */
static int collect_env(const Policy *policy, StrList *ret, Error *reterr) {
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

/* A session has its own workspace unless the caller names one; so nothing of a project's file in
 * the working directory takes part. */
static int resolve(const OptionResult *words, Policy *policy, StrList *ret_env, Error *reterr) {
        int r = policy_files_apply(policy, words, reterr);

        if (r == 0)
                r = collect_env(policy, ret_env, reterr);
        return r < 0 ? r : settle_env(policy, reterr);
}

static bool has_word(const OptionResult *words, const char *path) {
        for (size_t i = 0; i < words->words_count; i++)
                if (streq(words->words[i].field->path, path))
                        return true;
        return false;
}

static int warn(const Settings *settings, const LaunchPlan *plan, StrList *warnings,
                Error *reterr) {
        bool landlock = plan->landlock != LANDLOCK_OFF && landlock_abi() >= LANDLOCK_ABI_NEEDED;

        return warnings_find(&settings->policy, plan, landlock, warnings) < 0 ? error_oom(reterr)
                                                                              : 0;
}

/* The session lasts longer than the caller's word: its policy protects the policy files that lie in
 * its workspace at every start. */
static int protect_inputs(Settings *settings, LaunchPlan *plan, Error *reterr) {
        const bool needed = settings->inputs.count > 0 || plan->rootfs.source;
        struct Reach *reach = NULL;
        size_t before;
        int r = needed ? reach_new(plan, &reach, reterr) : 0;

        /* Each start looks at the tree again. */
        if (r == 0)
                r = inputs_protect_rootfs(plan, reach, reterr);
        before = plan->guards_count;
        for (size_t i = 0; r == 0 && i < settings->inputs.count; i++)
                r = inputs_protect_path(plan, reach, settings->inputs.items[i].path,
                                        settings->inputs.items[i].fd, reterr);
        for (size_t i = before; r == 0 && i < plan->guards_count; i++)
                r = policy_set(&settings->policy, "filesystem.protect", plan->guards[i].path,
                               ORIGIN_CALLER, "--policy", reterr);
        reach_free(reach);
        return r;
}

/* Mistakes that only show in a plan, or in what of the host it names, are told now, not at the
 * first use. */
static int try_plan(Settings *settings, const char *path, Store *store, StrList *warnings,
                    Error *reterr) {
        LaunchPlan plan;
        int r = settings_plan(settings, path, &plan, reterr);

        if (r < 0)
                return r;
        r = sources_read(store, path, &plan, reterr);
        if (r == 0)
                r = prepare_try_mounts(&plan, reterr);
        if (r == 0)
                r = sources_write(store, &plan, reterr);
        if (r == 0) {
                r = warnings ? warn(settings, &plan, warnings, reterr) : 0;
                if (r == 0)
                        r = protect_inputs(settings, &plan, reterr);
                prepare_close_mounts(&plan);
        }
        plan_clear(&plan);
        return r;
}

static int add_grant(Store *store, const char *layer, const char *option, const char *what,
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

/* What takes a piece of the boundary away for as long as the session is there. */
static int audit_grants(const Settings *settings, Store *store, Error *reterr) {
        const StrList *allowed = &settings->policy.syscalls_allow;
        int r = 0;

        for (size_t i = 0; r == 0 && i < allowed->count; i++)
                r = add_grant(store, "seccomp", "--allow-syscall", allowed->items[i], reterr);
        for (Layer layer = LAYER_USER; r == 0 && layer < LAYER_MAX; layer++)
                if (settings->degraded & LAYER_BIT(layer))
                        r = add_grant(store, layer_table[layer].name, "--allow-degraded",
                                      layer_table[layer].name, reterr);
        return r;
}

static int fill(const char *path, Settings *settings, StrList *warnings, Error *reterr) {
        _cleanup_free_ char *database = str_format("%s/" SESSION_DATABASE, path);
        Store *store = NULL;
        int r = database ? store_open(database, STORE_CREATE, &store, reterr) : error_oom(reterr);

        if (r == 0)
                r = try_plan(settings, path, store, warnings, reterr);
        strlist_clear(&settings->policy.env_pass);
        if (r == 0)
                r = settings_write(settings, store, reterr);
        if (r == 0)
                r = audit_grants(settings, store, reterr);
        store_free(store);
        return r;
}

static int parse_idle(const char *text, uint64_t *ret, Error *reterr) {
        int r;

        *ret = SETTINGS_IDLE_DEFAULT;
        if (!text)
                return 0;
        if (streq(text, "none")) {
                *ret = 0;
                return 0;
        }
        if (str_to_usec(text, ret) == 0 && *ret >= 1000000)
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "--idle %s: not a time", text);
        return error_cure(reterr, r, "A number with a unit, from 1s on, as 10m; or none");
}

static int settle(const char *cwd, const OptionResult *words, const CreateOptions *options,
                  Settings *ret, StrList *ret_env, Error *reterr) {
        int r = parse_idle(options->idle, &ret->idle, reterr);

        if (r == 0)
                r = options_degraded(&options->allow_degraded, &ret->degraded, reterr);
        if (r == 0)
                r = resolve(words, &ret->policy, ret_env, reterr);
        if (r == 0)
                r = policy_files_inputs(NULL, &ret->inputs, reterr);
        /* --memory says it more exactly. */
        if (r == 0 && options->tier < TIERS)
                r = tier_apply(options->tier, has_word(words, "limits.memory"), ret, reterr);
        ret->created_ms = time_epoch_ms();
        ret->cwd = strdup(cwd);
        return r == 0 && !ret->cwd ? error_oom(reterr) : r;
}

/* Under another name, until it has all that it is to have. */
static int make(const char *name, Settings *settings, Owner *ret_owner, StrList *warnings,
                Error *reterr) {
        _cleanup_close_ int lock_fd = FD_NONE;
        Owner owner = OWNER_NONE;
        char path[PATH_MAX];
        int r = session_prepare(name, path, &lock_fd, reterr);

        if (r < 0)
                return r;
        r = fill(path, settings, warnings, reterr);
        if (r == 0 && ret_owner)
                r = owner_make(path, &owner, reterr);
        if (r == 0)
                r = session_publish(path, name, reterr);
        if (r < 0) {
                session_discard(path);
                owner_clear(&owner);
        } else if (ret_owner) {
                *ret_owner = owner;
        }
        return r;
}

/* One that is there will do, and is found; but somebody may be taking it away. */
static int make_or_find(const char *name, const CreateAsked *asked, Settings *settings,
                        bool *ret_made, Error *reterr) {
        enum { TRIES = 5 };
        int r = 0;

        for (int i = 0; i < TRIES; i++) {
                r = make(name, settings, NULL, NULL, reterr);
                *ret_made = r == 0;
                if (r != -EEXIST)
                        break;
                r = create_found(name, asked, reterr);
                if (r == 0 || r == -EEXIST)
                        break;
        }
        return r;
}

/* ret_owner, ret_made and warnings, to which it adds, may be NULL. */
static int create(const char *name, const char *cwd, const OptionResult *words,
                  const CreateOptions *options, Owner *ret_owner, bool *ret_made, StrList *warnings,
                  Error *reterr) {
        _cleanup_(settings_clear) Settings settings = { .owned = ret_owner != NULL };
        _cleanup_(strlist_clear) StrList env = { 0 };
        const CreateAsked asked = {
                .settings = &settings,
                .env = &env,
                .preset = words->policies_count > 0,
                .idle = options->idle,
                .degraded = options->allow_degraded.count > 0,
                .tier = options->tier < TIERS,
        };
        int r = settle(cwd, words, options, &settings, &env, reterr);

        if (r == 0)
                r = owner_take_away(name, reterr);
        if (r < 0)
                return r;
        return ret_made ? make_or_find(name, &asked, &settings, ret_made, reterr)
                        : make(name, &settings, ret_owner, warnings, reterr);
}

static int find_cwd(char ret[PATH_MAX], Error *reterr) {
        return getcwd(ret, PATH_MAX)
                       ? 0
                       : error_set(reterr, ERROR_SETUP, errno, "cannot tell the working directory");
}

static int check_absolute(const char *cwd, Error *reterr) {
        int r;

        if (cwd[0] == '/')
                return 0;
        r = error_set(reterr, ERROR_USAGE, 0, "cwd is \"%s\", which is not absolute", cwd);
        return r;
}

int create_session(const char *name, const char *cwd, int argc, const char *const *argv,
                   Owner *ret_owner, bool *ret_made, Error *reterr) {
        CreateOptions options = { .tier = TIERS };
        OptionResult words = { 0 };
        char own[PATH_MAX];
        int r = cwd ? check_absolute(cwd, reterr) : find_cwd(own, reterr);

        if (r == 0)
                r = options_parse(&create_syntax, argc, argv, &options, &words, reterr);
        if (r == 0 && (words.help || words.operands_count > 0))
                r = error_set(reterr, ERROR_USAGE, 0, "options are options of holt create alone");
        if (r == 0)
                r = create(name, cwd ? cwd : own, &words, &options, ret_owner, ret_made, NULL,
                           reterr);
        options_clear(&words);
        strlist_clear(&options.allow_degraded);
        return r;
}

static int create_named(const OptionResult *words, const CreateOptions *options, StrList *warnings,
                        Error *reterr) {
        char cwd[PATH_MAX];
        int r;

        r = operands_check("create", create_syntax.usage, words->operands, words->operands_count, 1,
                           1, reterr);
        if (r == 0)
                r = find_cwd(cwd, reterr);
        return r < 0 ? r
                     : create(words->operands[0], cwd, words, options, NULL, NULL, warnings,
                              reterr);
}

/* What was made; what has no effect goes to people before that, to programs in it. */
static int tell(const char *name, bool json, const StrList *warnings, Error *reterr) {
        if (json)
                return show_session(name, true, warnings, reterr);
        report_print_warnings(warnings, stderr);
        (void)printf("%s\n", name);
        return 0;
}

int cmd_create(int argc, char **argv) {
        _cleanup_(strlist_clear) StrList warnings = { 0 };
        CreateOptions options = { .tier = TIERS };
        OptionResult words = { 0 };
        Error error;
        int r = options_parse(&create_syntax, argc, (const char *const *)argv, &options, &words,
                              &error);

        if (r == 0 && words.help) {
                options_help(&create_syntax, stdout);
                return 0;
        }
        if (r == 0)
                r = create_named(&words, &options, &warnings, &error);
        if (r == 0)
                r = tell(words.operands[0], options.json, &warnings, &error);
        options_clear(&words);
        strlist_clear(&options.allow_degraded);
        if (r == 0)
                return 0;
        return fail_print(&error, fail_wants_json(argc, argv));
}
