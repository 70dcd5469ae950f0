/* SPDX-License-Identifier: Apache-2.0 */
/* holt mcp: the command line. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/ask.h"
#include "cli/verbs.h"
#include "mcp/http.h"
#include "mcp/mcp.h"
#include "methods/methods.h"

typedef struct McpOptions {
        const char *http;
        bool ask;
} McpOptions;

static const Option mcp_options[] = {
        { "--ask", NULL, "let the client ask the user about hosts that no rule allows", OPTION_BOOL,
          offsetof(McpOptions, ask), NULL },
        { "--http", "PORT",
          "serve HTTP at this port of 127.0.0.1, with the token of HOLT_MCP_TOKEN; 0: a free port",
          OPTION_STRING, offsetof(McpOptions, http), NULL },
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

static int mcp_serve(const OptionResult *words, const void *data, Error *reterr) {
        const McpOptions *options = data;
        McpSettings settings = { .session = words->operands[0], .ask = options->ask };

        settings.methods = session_methods(&settings.methods_count);
        return options->http ? mcp_serve_http(&settings, options->http, reterr)
                             : mcp_run(&settings, reterr);
}

int cmd_mcp(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "mcp",
                            .usage = "NAME [--ask] [--http PORT]",
                            .summary = "Serves session NAME to an agent, by the Model Context "
                                       "Protocol: over stdin and stdout, or HTTP.",
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
