/* SPDX-License-Identifier: Apache-2.0 */
/* holt mcp: the command line. */
#include "cli/ask.h"
#include "cli/verbs.h"
#include "mcp/mcp.h"
#include "methods/methods.h"

typedef struct McpOptions {
        bool ask;
} McpOptions;

static const Option mcp_options[] = {
        { "--ask", NULL, "let the client ask the user about hosts that no rule allows", OPTION_BOOL,
          offsetof(McpOptions, ask), NULL },
};

static int mcp_serve(const OptionResult *words, const void *data, Error *reterr) {
        const McpOptions *options = data;
        McpSettings settings = { .session = words->operands[0], .ask = options->ask };

        settings.methods = session_methods(&settings.methods_count);
        return mcp_run(&settings, reterr);
}

int cmd_mcp(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "mcp",
                            .usage = "NAME [--ask]",
                            .summary = "Serves session NAME to an agent, by the Model Context "
                                       "Protocol over stdin and stdout.",
                            .options = mcp_options,
                            .options_count = ELEMENTSOF(mcp_options),
                            .operands = true },
                .least = 1,
                .most = 1,
                .run = mcp_serve,
        };
        McpOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
