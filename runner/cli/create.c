/* SPDX-License-Identifier: Apache-2.0 */
/* holt create: makes a session at rest. The first use starts it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/fail.h"
#include "cli/operands.h"
#include "cli/policy-words.h"
#include "cli/report.h"
#include "cli/show.h"
#include "cli/verbs.h"
#include "session/make.h"
#include "session/policy-files.h"
#include "session/tier.h"

typedef struct CreateOptions {
        const char *idle;
        unsigned tier; /* an index of tier_names[], or TIERS */
        bool json;
        StrList allow_degraded;
} CreateOptions;

static const Option create_options[] = {
        { "--idle", "TIME", "stop the session after this time without use; \"none\" means never",
          OPTION_STRING, offsetof(CreateOptions, idle), NULL },
        { "--tier", "standard|medium|large|xlarge",
          "1, 2, 4 or 8 processors, and as many GiB of memory for each process", OPTION_ENUM,
          offsetof(CreateOptions, tier), tier_names },
        { "--allow-degraded", "LAYER", "continue if this host refuses the layer", OPTION_LIST,
          offsetof(CreateOptions, allow_degraded), NULL },
        { "--json", NULL, "print the session as JSON", OPTION_BOOL, offsetof(CreateOptions, json),
          NULL },
};

static const OptionSyntax create_syntax = {
        .verb = "create",
        .usage = "NAME [OPTIONS]",
        .summary = "Makes a session: a sandbox that lasts. Its workspace is its own directory, "
                   "unless --workspace\nnames another, and appears at /workspace. /mnt/files is "
                   "for files that you exchange with it.",
        .options = create_options,
        .options_count = ELEMENTSOF(create_options),
        .policy = true,
        .session = true,
        .operands = true,
        .help_epilog = "holt create fixes the policy now, with the present values of the variables "
                       "that it passes.\nThen run: holt exec NAME -- COMMAND",
};

static bool create_has_word(const OptionResult *words, const char *path) {
        for (size_t i = 0; i < words->words_count; i++)
                if (streq(words->words[i].field->path, path))
                        return true;
        return false;
}

static int create_find_cwd(SessionSpec *spec, Error *reterr) {
        char cwd[PATH_MAX];

        if (!getcwd(cwd, sizeof(cwd)))
                return error_set(reterr, ERROR_SETUP, errno, "cannot find the working directory");
        spec->settings.cwd = strdup(cwd);
        return spec->settings.cwd ? 0 : error_oom(reterr);
}

static int create_fill_settings(const CreateOptions *options, SessionSpec *spec, Error *reterr) {
        int r = create_find_cwd(spec, reterr);

        if (r == 0 && options->idle)
                r = session_spec_idle(spec, options->idle, reterr);
        return r < 0 ? r : session_spec_degraded(spec, &options->allow_degraded, reterr);
}

static int create_fill_policy(const OptionResult *words, unsigned tier, SessionSpec *spec,
                              Error *reterr) {
        int r = policy_words_apply(&spec->settings.policy, words, reterr);

        spec->preset = words->policies_count > 0;
        spec->tier = tier < TIERS;
        if (r == 0)
                r = policy_files_inputs(NULL, &spec->settings.inputs, reterr);
        if (r < 0 || !spec->tier)
                return r;
        /* An explicit --memory overrides the tier's memory. */
        return tier_apply(tier, create_has_word(words, "limits.memory"), &spec->settings, reterr);
}

/* A session has its own workspace unless the caller names one. Then only the policy file of the
 * named directory applies, and never that of the working directory. */
static int create_fill(const OptionResult *words, const CreateOptions *options, SessionSpec *spec,
                       Error *reterr) {
        int r = create_fill_settings(options, spec, reterr);

        if (r == 0)
                r = create_fill_policy(words, options->tier, spec, reterr);
        return r < 0 ? r : session_spec_project(spec, reterr);
}

static int create_named(const OptionResult *words, const CreateOptions *options, StrList *warnings,
                        Error *reterr) {
        _cleanup_(session_spec_clear) SessionSpec spec = { 0 };
        int r = operands_check("create", create_syntax.usage, words->operands,
                               words->operands_count, 1, 1, reterr);

        if (r == 0)
                r = create_fill(words, options, &spec, reterr);
        return r < 0 ? r
                     : session_make(words->operands[0], &spec,
                                    &(const SessionMake){ .warnings = warnings }, reterr);
}

/* Prints the session. Options without effect are warnings on stderr, or a member of the JSON. */
static int create_tell(const char *name, bool json, const StrList *warnings, Error *reterr) {
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
                r = create_tell(words.operands[0], options.json, &warnings, &error);
        options_clear(&words);
        strlist_clear(&options.allow_degraded);
        if (r == 0)
                return 0;
        return fail_print(&error, fail_wants_json(argc, argv));
}
