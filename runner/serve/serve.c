/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/serve.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/own-limits.h"
#include "serve/methods.h"
#include "serve/socket.h"

typedef struct Serve {
        Server server; /* data of the methods */
        const char *socket_path;
        Loop *loop;
        RpcServer *rpc;
        ServeSocket socket;
        int signal_fd;
} Serve;

static void serve_on_signal(void *data, uint32_t events) {
        (void)events;
        loop_stop(((Serve *)data)->loop);
}

static void serve_on_end(RpcConnection *connection, void *data) {
        Serve *serve = data;

        proxy_client_ended(serve->server.proxy, connection);
        owned_let_go(serve->server.owned, connection);
        if (!serve->socket_path)
                loop_stop(serve->loop);
}

static void serve_on_room(RpcConnection *connection, void *data) {
        proxy_client_has_room(((Serve *)data)->server.proxy, connection);
}

static int serve_open(Serve *serve, Error *reterr) {
        RpcConnection *connection;
        int fd, r;

        if (!serve->socket_path)
                return rpc_server_add(serve->rpc, dup(STDIN_FILENO), dup(STDOUT_FILENO),
                                      &connection, reterr);
        r = serve_socket_open(&serve->socket, serve->socket_path, &fd, reterr);
        return r < 0 ? r : rpc_server_listen(serve->rpc, fd, getuid(), RPC_PEERS_LOOK, reterr);
}

static int serve_watch_signals(Serve *serve, Error *reterr) {
        static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
        LoopWatch *ignored;
        sigset_t set;

        (void)sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                (void)sigaddset(&set, numbers[i]);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        (void)signal(SIGPIPE, SIG_IGN);
        serve->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return loop_watch(serve->loop, serve->signal_fd, EPOLLIN, serve_on_signal, serve, &ignored,
                          reterr);
}

static int serve_make(Serve *serve, const RpcMethod *methods, size_t count, Error *reterr) {
        int r = loop_new(&serve->loop, reterr);

        open_files_raise();
        if (r < 0)
                return r;
        r = serve_watch_signals(serve, reterr);
        if (r < 0)
                return r;
        r = proxy_new(serve->loop, &serve->server.proxy, reterr);
        if (r < 0)
                return r;
        r = owned_new(serve->loop, &serve->server.owned, reterr);
        if (r < 0)
                return r;
        return rpc_server_new(serve->loop, methods, count, serve, &serve->rpc, reterr);
}

int serve_run(const RpcMethod *methods, size_t count, const char *socket_path, Error *reterr) {
        static Serve serve = { .signal_fd = FD_NONE };
        int r;

        serve.socket_path = socket_path;
        r = serve_make(&serve, methods, count, reterr);
        if (r < 0)
                return r;
        rpc_server_on_end(serve.rpc, serve_on_end);
        rpc_server_on_room(serve.rpc, serve_on_room);
        r = serve_open(&serve, reterr);
        if (r == 0) {
                owned_take_leftovers(serve.server.owned);
                (void)loop_run(serve.loop);
        }
        serve.rpc = rpc_server_free(serve.rpc);
        serve.server.owned = owned_free(serve.server.owned);
        serve_socket_close(&serve.socket);
        return r;
}

int serve_methods_new(RpcMethod **ret, size_t *ret_count, Error *reterr) {
        return proxy_methods(serve_methods, serve_methods_count, ret, ret_count, reterr);
}

RpcMethod *serve_methods_free(RpcMethod *methods, size_t count) {
        return proxy_methods_free(methods, serve_methods_count, count);
}
