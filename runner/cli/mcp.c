/* SPDX-License-Identifier: Apache-2.0 */
/* holt mcp: the command line. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/ask.h"
#include "cli/verbs.h"
#include "mcp/http.h"
#include "mcp/mcp.h"
#include "mcp/wrap.h"
#include "methods/methods.h"

enum { MCP_WORDS_MAX = 4096 }; /* of the command of --wrap, with the session's name */

typedef struct McpOptions {
        const char *http;
        bool ask, wrap;
} McpOptions;

static const Option mcp_options[] = {
        { "--ask", NULL, "let the client ask the user about hosts that no rule allows", OPTION_BOOL,
          offsetof(McpOptions, ask), NULL },
        { "--http", "PORT",
          "serve HTTP at this port of 127.0.0.1, with the token of HOLT_MCP_TOKEN; 0: a free port",
          OPTION_STRING, offsetof(McpOptions, http), NULL },
        { "--wrap", NULL, "run another server in the session, and pass its tools through",
          OPTION_BOOL, offsetof(McpOptions, wrap), NULL },
};

static int mcp_serve_http(const McpSettings *settings, const char *text, Error *reterr) {
        const char *token = getenv("HOLT_MCP_TOKEN");
        HttpServer *server = NULL;
        uint64_t port = 0;
        int r = ask_option("--http", text, 0, UINT16_MAX, &port, reterr);

        if (r == 0)
                r = http_open(settings, (uint16_t)port, token, &server, reterr);
        if (r < 0)
                return r;
        (void)printf("http://127.0.0.1:%u/mcp\n", http_port(server));
        if (!token)
                (void)printf("Authorization: Bearer %s\n", http_token(server));
        (void)fflush(stdout);
        r = http_run(server, reterr);
        server = http_free(server);
        return r;
}

static int mcp_check(const McpOptions *options, size_t words, Error *reterr) {
        int r = 0;

        if (options->wrap && (options->http || options->ask))
                return error_set(reterr, ERROR_USAGE, 0, "--wrap takes neither --http nor --ask");
        if (options->wrap && words < 2)
                r = error_set(reterr, ERROR_USAGE, 0, "--wrap needs the command of a server");
        else if (!options->wrap && words > 1)
                r = error_set(reterr, ERROR_USAGE, 0, "a command needs --wrap");
        return r < 0 ? error_cure(reterr, r, "For example: holt mcp NAME --wrap -- npx some-server")
                     : 0;
}

static int mcp_serve(const OptionResult *words, const void *data, Error *reterr) {
        const McpOptions *options = data;
        McpSettings settings = { .session = words->operands[0], .ask = options->ask };

        int r = mcp_check(options, words->operands_count, reterr);

        if (r < 0)
                return r;
        if (options->wrap)
                return wrap_run(&settings, words->operands + 1, reterr);
        settings.methods = session_methods(&settings.methods_count);
        return options->http ? mcp_serve_http(&settings, options->http, reterr)
                             : mcp_run(&settings, reterr);
}

int cmd_mcp(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "mcp",
                            .usage = "NAME [--ask] [--http PORT] [--wrap -- COMMAND [ARG...]]",
                            .summary = "Serves session NAME to an agent, by the Model Context "
                                       "Protocol: over stdin and stdout, or HTTP.",
                            .options = mcp_options,
                            .options_count = ELEMENTSOF(mcp_options),
                            .operands = true },
                .least = 1,
                .most = MCP_WORDS_MAX,
                .run = mcp_serve,
        };
        McpOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
