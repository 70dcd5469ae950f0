/* SPDX-License-Identifier: Apache-2.0 */
/* holt mcp: the command line. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/ask.h"
#include "cli/mcp-session.h"
#include "cli/verbs.h"
#include "mcp/http.h"
#include "mcp/mcp.h"
#include "mcp/wrap.h"
#include "methods/methods.h"
#include "session/directory.h"

enum { MCP_WORDS_MAX = 4096 }; /* of the command of --wrap, with the session's name */

typedef struct McpOptions {
        const char *http, *workspace, *tools;
        StrList net;
        bool ask, no_roots, wrap;
        char **argv; /* the words of the verb */
} McpOptions;

static const Option mcp_options[] = {
        { "--ask", NULL, "let the client ask the user about hosts that no rule allows", OPTION_BOOL,
          offsetof(McpOptions, ask), NULL },
        { "--http", "PORT",
          "serve HTTP at this port of 127.0.0.1, with a token; 0 is any free port", OPTION_STRING,
          offsetof(McpOptions, http), NULL },
        { "--workspace", "DIR", "without NAME: the host directory that is the workspace",
          OPTION_STRING, offsetof(McpOptions, workspace), NULL },
        { "--no-roots", NULL, "without NAME: do not take the client's roots as the workspace",
          OPTION_BOOL, offsetof(McpOptions, no_roots), NULL },
        { "--net", "RULE", "without NAME: a host or a set of hosts that the session can reach",
          OPTION_LIST, offsetof(McpOptions, net), NULL },
        { "--tools", "GROUP,...", "only these tools: bash, python, files, processes, kv, network",
          OPTION_STRING, offsetof(McpOptions, tools), NULL },
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

/* Returns whether the first operand is the name of a session. Words after "--" are a command. */
static bool mcp_has_name(const OptionResult *words, const McpOptions *options) {
        for (char **word = options->argv; words->operands_count > 0 && *word; word++) {
                if (*word == words->operands[0])
                        return true;
                if (streq(*word, "--"))
                        return false;
        }
        return false;
}

static int mcp_check(const McpOptions *options, bool named, size_t words, Error *reterr) {
        int r = 0;

        if (options->wrap && (options->http || options->ask || options->tools))
                return error_set(reterr, ERROR_USAGE, 0,
                                 "--wrap takes none of --http, --ask and --tools");
        if (named && (options->workspace || options->no_roots || options->net.count > 0)) {
                r = error_set(
                        reterr, ERROR_USAGE, 0,
                        "--workspace, --no-roots and --net are for a new session, without NAME");
                return error_cure(reterr, r,
                                  "Set them when you make the session: holt create NAME "
                                  "--workspace DIR");
        }
        if (options->wrap && words == 0)
                r = error_set(reterr, ERROR_USAGE, 0, "--wrap needs the command of a server");
        else if (!options->wrap && words > 0)
                r = error_set(reterr, ERROR_USAGE, 0, "a command needs --wrap");
        return r < 0 ? error_cure(reterr, r, "For example: holt mcp NAME --wrap -- npx some-server")
                     : 0;
}

static int mcp_serve_session(McpSettings *settings, const McpOptions *options,
                             const char *const *command, Error *reterr) {
        if (options->wrap)
                return wrap_run(settings, command, reterr);
        settings->methods = session_methods(&settings->methods_count);
        return options->http ? mcp_serve_http(settings, options->http, reterr)
                             : mcp_run(settings, reterr);
}

/* An agent shows the errors of tools to its model only, but a server that does not start to the
 * user. */
static int mcp_check_session(const char *name, Error *reterr) {
        char path[PATH_MAX];
        int fd, r = session_open(name, &fd, path, reterr);

        if (r < 0)
                return r;
        fd_close(fd);
        return 0;
}

static int mcp_serve(const OptionResult *words, const void *data, Error *reterr) {
        const McpOptions *options = data;
        const bool named = mcp_has_name(words, options);
        McpOwned owned = { .workspace = options->workspace,
                           .net = &options->net,
                           .ask = options->ask };
        McpSettings settings = { .session = named ? words->operands[0] : NULL,
                                 .make = mcp_session_make,
                                 .data = &owned,
                                 .roots = !options->no_roots,
                                 .ask = options->ask };
        int r = mcp_check(options, named, words->operands_count - named, reterr);

        if (r == 0 && options->tools)
                r = mcp_groups_parse(options->tools, &settings.groups, reterr);
        if (r < 0)
                return r;
        if (named && !options->wrap)
                r = mcp_check_session(words->operands[0], reterr);
        else if (!named && (options->workspace || options->wrap))
                r = mcp_session_make(&owned, NULL, &settings.session, reterr);
        if (r == 0)
                r = mcp_serve_session(&settings, options, words->operands + named, reterr);
        mcp_session_end(&owned);
        return r;
}

int cmd_mcp(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "mcp",
                            .usage = "[NAME] [OPTIONS] [--wrap -- COMMAND [ARG...]]",
                            .summary = "Serves session NAME, or a new one, to an agent by the "
                                       "Model Context "
                                       "Protocol:\nover stdin and stdout, or HTTP.",
                            .options = mcp_options,
                            .options_count = ELEMENTSOF(mcp_options),
                            .operands = true },
                .least = 0,
                .most = MCP_WORDS_MAX,
                .run = mcp_serve,
        };
        McpOptions options = { .argv = argv + 1 };
        int r = ask_main(&verb, &options, argc, argv);

        strlist_clear(&options.net);
        return r;
}
