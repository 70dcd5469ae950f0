/* SPDX-License-Identifier: Apache-2.0 */
/* holt create: makes a session at rest. The first use starts it. */
#include <stdio.h>

#include "cli/ask.h"
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

static bool create_has_word(const OptionResult *words, const char *path) {
        for (size_t i = 0; i < words->words_count; i++)
                if (streq(words->words[i].field->path, path))
                        return true;
        return false;
}

/* A session has its own workspace unless the caller names one. If the caller names one, only the
 * policy file of that directory applies, and never that of the working directory. */
static int create_take_words(const void *data, SessionSpec *spec, Error *reterr) {
        const OptionResult *words = data;
        int r = policy_words_apply(&spec->settings.policy, words, reterr);

        spec->preset = words->policies_count > 0;
        spec->memory = create_has_word(words, "limits.memory");
        return r == 0 ? policy_files_inputs(NULL, &spec->settings.inputs, reterr) : r;
}

/* Prints the session. Reports options without effect as warnings on stderr, or as a member of the
 * JSON. */
static int create_tell(const char *name, bool json, const StrList *warnings, Error *reterr) {
        if (json)
                return show_session(name, true, warnings, reterr);
        report_print_warnings(warnings, stderr);
        (void)printf("%s\n", name);
        return 0;
}

static int do_create(const OptionResult *words, const void *data, Error *reterr) {
        const CreateOptions *options = data;
        const SessionRequest request = {
                .tier = options->tier < TIERS ? tier_names[options->tier] : NULL,
                .idle = options->idle,
                .degraded = &options->allow_degraded,
                .take_policy = create_take_words,
                .words = words,
        };
        _cleanup_(strlist_clear) StrList warnings = { 0 };
        const SessionMake how = { .warnings = &warnings };
        _cleanup_(session_spec_clear) SessionSpec spec = { 0 };
        int r = session_spec_fill(&spec, &request, reterr);

        if (r < 0)
                return r;
        r = session_make(words->operands[0], &spec, &how, reterr);
        if (r < 0)
                return r;
        return create_tell(words->operands[0], options->json, &warnings, reterr);
}

int cmd_create(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "create",
                            .usage = "NAME [OPTIONS]",
                            .summary = "Creates a session: a sandbox that lasts. Inside, the "
                                       "workspace is at /workspace: an empty directory,\nor the "
                                       "directory of --workspace. /mnt/files is for files that you "
                                       "exchange with the session.",
                            .options = create_options,
                            .options_count = ELEMENTSOF(create_options),
                            .policy = true,
                            .session = true,
                            .operands = true,
                            .help_epilog = "holt create stores the policy now, with the current "
                                           "values of passed "
                                           "variables.\nThen run: holt exec NAME -- COMMAND" },
                .least = 1,
                .most = 1,
                .makes = true,
                .too_many = "holt create runs no command. Run it afterwards: holt exec NAME -- "
                            "COMMAND",
                .run = do_create,
        };
        CreateOptions options = { .tier = TIERS };
        int r = ask_main(&verb, &options, argc, argv);

        strlist_clear(&options.allow_degraded);
        return r;
}
