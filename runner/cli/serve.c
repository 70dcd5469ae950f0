/* SPDX-License-Identifier: Apache-2.0 */
/* holt serve: JSON-RPC over stdin and stdout, or a socket, for adapters. Sessions are made and
 * taken away here; everything else their keepers do (serve/proxy.h). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "cli/create.h"
#include "cli/fail.h"
#include "cli/options.h"
#include "serve/owned.h"
#include "serve/socket.h"
#include "cli/verbs.h"
#include "session/directory.h"
#include "serve/proxy.h"
#include "session/sources.h"
#include "session/tier.h"
#include "base/own-limits.h"

typedef struct ServeOptions {
        const char *socket;
        bool methods, json;
} ServeOptions;

static const Option serve_options[] = {
        { "--socket", "PATH", "listen there, for clients of the same user", OPTION_STRING,
          offsetof(ServeOptions, socket), NULL },
        { "--methods", NULL, "print the reference of the methods", OPTION_BOOL,
          offsetof(ServeOptions, methods), NULL },
        { "--json", NULL, "the reference as JSON, with schemas", OPTION_BOOL,
          offsetof(ServeOptions, json), NULL },
};

static const OptionSyntax serve_syntax = {
        .verb = "serve",
        .usage = "[--socket PATH]",
        .summary = "Serves JSON-RPC 2.0, one object a line, over stdin and stdout or a socket.",
        .options = serve_options,
        .options_count = ELEMENTSOF(serve_options),
};

typedef struct Serve {
        ServeOptions options;
        OptionResult words;
        RpcMethod *methods;
        size_t methods_count;
        Loop *loop;
        Proxy *proxy;
        Owned *owned;
        RpcServer *server;
        ServeSocket socket;
        int signal_fd;
} Serve;

static Serve *the_serve; /* the server's data is the Proxy, which its methods want */

/* --- the methods that are no session's own --- */

static int create_by(const RpcCall *call, Owner *owner, bool *ret_made, Error *error) {
        const char *name = rpc_string(call, "name"), *cwd = rpc_string(call, "cwd");
        _cleanup_(strlist_clear) StrList options = { 0 };
        _cleanup_free_ const char **argv = NULL;
        int r = rpc_strings(call, "options", &options, error);

        if (r < 0)
                return r;
        argv = calloc(options.count + 2, sizeof(*argv));
        if (!argv)
                return error_oom(error);
        argv[0] = "create";
        for (size_t i = 0; i < options.count; i++)
                argv[i + 1] = options.items[i];
        return create_session(name, cwd, (int)options.count + 1, argv, owner, ret_made, error);
}

static int create_owned(const RpcCall *call, Error *error) {
        OwnedSession *session;
        int r = owned_prepare(the_serve->owned, rpc_string(call, "name"), &session, error);

        if (r < 0)
                return r;
        r = create_by(call, owned_owner(session), NULL, error);
        if (r < 0)
                owned_discard(session);
        else
                owned_add(session, rpc_call_connection(call));
        return r;
}

static int method_create(RpcCall *call, void *data, Error *error) {
        const bool owned = rpc_bool(call, "owned", false), find = rpc_bool(call, "find", false);
        bool made = true;
        int r;

        (void)data;
        if (owned && find)
                return error_set(error, ERROR_USAGE, 0,
                                 "session.create takes either owned or find");
        r = owned ? create_owned(call, error) : create_by(call, NULL, find ? &made : NULL, error);
        if (r < 0)
                return r;
        json_write_string(rpc_result(call), "name", rpc_string(call, "name"));
        json_write_bool(rpc_result(call), "made", made);
        rpc_reply(call);
        return 0;
}

static int add_session(void *data, const char *name, int dir_fd) {
        JsonWriter *w = data;

        json_write_object(w, NULL);
        json_write_string(w, "name", name);
        json_write_string(w, "state", session_is_live(dir_fd) ? "live" : "at rest");
        json_write_end(w);
        return 0;
}

static int method_list(RpcCall *call, void *data, Error *error) {
        JsonWriter *w = rpc_result(call);

        (void)data;
        json_write_array(w, "sessions");
        if (session_each(add_session, w, error) < 0) {
                rpc_fail(call, error);
                return 0;
        }
        json_write_end(w);
        rpc_reply(call);
        return 0;
}

/* Only one at rest: session.stop lets it rest, which takes the time that its commands take. */
static int method_remove(RpcCall *call, void *data, Error *error) {
        const char *name = rpc_string(call, "session");
        _cleanup_close_ int dir_fd = FD_NONE;
        int r = session_open(name, &dir_fd, NULL, error);

        (void)data;
        if (r == 0)
                r = session_remove(name, dir_fd, error);
        if (r < 0)
                return r;
        (void)rpc_result(call);
        rpc_reply(call);
        return 0;
}

static int method_set_tier(RpcCall *call, void *data, Error *error) {
        int r = tier_change(rpc_string(call, "session"), rpc_string(call, "tier"), error);

        (void)data;
        if (r < 0)
                return r;
        (void)rpc_result(call);
        rpc_reply(call);
        return 0;
}

static int method_rebind(RpcCall *call, void *data, Error *error) {
        _cleanup_(json_write_clear) JsonWriter rebound = { 0 };
        int r;

        (void)data;
        json_write_array(&rebound, NULL);
        r = sources_rebind(rpc_string(call, "session"), &rebound, error);
        json_write_end(&rebound);
        if (r < 0)
                return r;
        json_write_value(rpc_result(call), "rebound", &rebound);
        rpc_reply(call);
        return 0;
}

static const RpcParam create_params[] = {
        { "name", RPC_STRING, true, SESSION_NAME_MAX, "of the new session" },
        { "options", RPC_STRINGS, false, 1024, "as on the command line: [\"--timeout\", \"5m\"]" },
        { "cwd", RPC_STRING, false, 4095, "absolute: what relative paths are relative to" },
        { "owned", RPC_BOOL, false, 0, "it is stopped and removed when this connection ends" },
        { "find", RPC_BOOL, false, 0,
          "one that is there will do, where it is as options says; they may leave out what it is" },
};

static const RpcParam remove_params[] = {
        { "session", RPC_STRING, true, SESSION_NAME_MAX, "its name; it has to be at rest" },
};

static const RpcParam tier_params[] = {
        { "session", RPC_STRING, true, SESSION_NAME_MAX, "its name; it has to be at rest" },
        { "tier", RPC_STRING, true, 16, "\"standard\", \"medium\", \"large\" or \"xlarge\"" },
};

static const RpcParam rebind_params[] = {
        { "session", RPC_STRING, true, SESSION_NAME_MAX, "its name; it has to be at rest" },
};

static const RpcMethod serve_methods[] = {
        { "session.create", "makes a session, which its first use starts", "name, made",
          create_params, ELEMENTSOF(create_params), method_create },
        { "session.list", "all sessions", "sessions: [{name, state}]", NULL, 0, method_list },
        { "session.set_tier", "gives a session another size, from its next start on", "nothing",
          tier_params, ELEMENTSOF(tier_params), method_set_tier },
        { "session.rebind",
          "has a session take what is at the paths of its sources now, after one was replaced",
          "rebound: [{target, source}]", rebind_params, ELEMENTSOF(rebind_params), method_rebind },
        { "session.remove", "takes a session away with all its files", "nothing", remove_params,
          ELEMENTSOF(remove_params), method_remove },
};

/* --- serving --- */

static void on_signal(void *data, uint32_t events) {
        (void)events;
        loop_stop(((Serve *)data)->loop);
}

static void on_end(RpcConnection *connection, void *data) {
        proxy_client_ended(data, connection);
        owned_let_go(the_serve->owned, connection);
        if (!the_serve->options.socket)
                loop_stop(the_serve->loop);
}

static void on_room(RpcConnection *connection, void *data) {
        proxy_client_has_room(data, connection);
}

static int open_server(Serve *serve, Error *reterr) {
        RpcConnection *connection;
        int fd, r;

        if (serve->options.socket) {
                r = serve_socket_open(&serve->socket, serve->options.socket, &fd, reterr);
                return r < 0 ? r
                             : rpc_server_listen(serve->server, fd, getuid(), RPC_PEERS_LOOK,
                                                 reterr);
        }
        return rpc_server_add(serve->server, dup(STDIN_FILENO), dup(STDOUT_FILENO), &connection,
                              reterr);
}

static int watch_signals(Serve *serve, Error *reterr) {
        LoopWatch *ignored;
        sigset_t set;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        (void)signal(SIGPIPE, SIG_IGN);
        serve->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return loop_watch(serve->loop, serve->signal_fd, EPOLLIN, on_signal, serve, &ignored,
                          reterr);
}

static int serve_all(Serve *serve, Error *reterr) {
        int r = loop_new(&serve->loop, reterr);

        the_serve = serve;
        open_files_raise();
        if (r == 0)
                r = watch_signals(serve, reterr);
        if (r == 0)
                r = proxy_new(serve->loop, &serve->proxy, reterr);
        if (r == 0)
                r = owned_new(serve->loop, &serve->owned, reterr);
        if (r == 0)
                r = rpc_server_new(serve->loop, serve->methods, serve->methods_count, serve->proxy,
                                   &serve->server, reterr);
        if (r < 0)
                return r;
        rpc_server_on_end(serve->server, on_end);
        rpc_server_on_room(serve->server, on_room);
        r = open_server(serve, reterr);
        if (r == 0) {
                owned_take_leftovers(serve->owned);
                (void)loop_run(serve->loop);
        }
        serve->server = rpc_server_free(serve->server);
        serve->owned = owned_free(serve->owned);
        serve_socket_close(&serve->socket);
        return r;
}

int cmd_serve(int argc, char **argv) {
        static Serve serve = { .signal_fd = FD_NONE };
        Error error;
        int r = options_parse(&serve_syntax, argc, (const char *const *)argv, &serve.options,
                              &serve.words, &error);

        if (r == 0 && serve.words.help) {
                options_help(&serve_syntax, stdout);
                return 0;
        }
        if (r == 0)
                r = proxy_methods(serve_methods, ELEMENTSOF(serve_methods), &serve.methods,
                                  &serve.methods_count, &error);
        if (r == 0 && serve.options.methods) {
                rpc_print_methods(serve.methods, serve.methods_count, serve.options.json, stdout);
                return 0;
        }
        if (r == 0)
                r = serve_all(&serve, &error);
        if (r == 0)
                return 0;
        return fail_print(&error, fail_wants_json(argc, argv));
}
