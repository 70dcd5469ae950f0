/* SPDX-License-Identifier: Apache-2.0 */
/* holt serve: the command line. */
#include <stdio.h>

#include "cli/ask.h"
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

static int serve_by_options(const RpcMethod *methods, size_t count, const ServeOptions *options,
                            Error *reterr) {
        if (options->openrpc)
                return rpc_print_openrpc(methods, count, stdout, reterr);
        if (!options->methods)
                return serve_run(methods, count, options->socket, reterr);
        rpc_print_methods(methods, count, options->json, stdout);
        return 0;
}

static int do_serve(const OptionResult *words, const void *options, Error *reterr) {
        RpcMethod *methods = NULL;
        size_t count = 0;
        int r = serve_methods_new(&methods, &count, reterr);

        (void)words;
        if (r == 0)
                r = serve_by_options(methods, count, options, reterr);
        serve_methods_free(methods, count);
        return r;
}

int cmd_serve(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "serve",
                            .usage = "[--socket PATH] | --methods [--json] | --openrpc",
                            .summary = "Serves JSON-RPC 2.0 over stdin and stdout, or over a "
                                       "socket. Each message is "
                                       "one line.",
                            .options = serve_options,
                            .options_count = ELEMENTSOF(serve_options) },
                .run = do_serve,
        };
        ServeOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
