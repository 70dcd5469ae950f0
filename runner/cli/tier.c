/* SPDX-License-Identifier: Apache-2.0 */
/* holt tier: changes the size of a session at rest. */
#include "session/tier.h"

#include "cli/ask.h"
#include "cli/verbs.h"

static int do_tier(const OptionResult *words, const void *options, Error *reterr) {
        (void)options;
        return tier_change(words->operands[0], words->operands[1], reterr);
}

int cmd_tier(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "tier",
                            .usage = "NAME standard|medium|large|xlarge [--json]",
                            .summary = "Changes the size of a session at rest, from its next start "
                                       "on. The session keeps its files.",
                            .options = &ask_json_option,
                            .options_count = 1,
                            .operands = true },
                .least = 2,
                .most = 2,
                .run = do_tier,
        };
        bool json = false;

        return ask_main(&verb, &json, argc, argv);
}
