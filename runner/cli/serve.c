/* SPDX-License-Identifier: Apache-2.0 */
/* holt serve: the command line. */
#include <stdio.h>

#include "cli/fail.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "rpc/methods.h"
#include "serve/serve.h"

typedef struct ServeOptions {
        const char *socket;
        bool methods, json, openrpc;
} ServeOptions;

static const Option serve_options[] = {
        { "--socket", "PATH", "listen on this socket, for clients of the same user", OPTION_STRING,
          offsetof(ServeOptions, socket), NULL },
        { "--methods", NULL, "print the reference of the methods", OPTION_BOOL,
          offsetof(ServeOptions, methods), NULL },
        { "--json", NULL, "with --methods: print JSON, with schemas", OPTION_BOOL,
          offsetof(ServeOptions, json), NULL },
        { "--openrpc", NULL, "print an OpenRPC document of the methods, for programs", OPTION_BOOL,
          offsetof(ServeOptions, openrpc), NULL },
};

static const OptionSyntax serve_syntax = {
        .verb = "serve",
        .usage = "[--socket PATH]",
        .summary = "Serves JSON-RPC 2.0 over stdin and stdout, or over a socket. Each message is "
                   "one line.",
        .options = serve_options,
        .options_count = ELEMENTSOF(serve_options),
};

int cmd_serve(int argc, char **argv) {
        ServeOptions options = { 0 };
        _cleanup_(options_clear) OptionResult words = { 0 };
        RpcMethod *methods = NULL;
        size_t count = 0;
        Error error;
        int r = options_parse(&serve_syntax, argc, (const char *const *)argv, &options, &words,
                              &error);

        if (r == 0 && words.help) {
                options_help(&serve_syntax, stdout);
                return 0;
        }
        if (r == 0)
                r = serve_methods_new(&methods, &count, &error);
        if (r == 0 && options.openrpc)
                r = rpc_print_openrpc(methods, count, stdout, &error);
        else if (r == 0 && options.methods)
                rpc_print_methods(methods, count, options.json, stdout);
        else if (r == 0)
                r = serve_run(methods, count, options.socket, &error);
        serve_methods_free(methods, count);
        return r == 0 ? 0 : fail_print(&error, fail_wants_json(argc, argv));
}
