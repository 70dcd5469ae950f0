/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rpc/connection.h"

enum {
        ACCEPT_MAX = 16,       /* connections in one turn of the loop */
        ACCEPT_PAUSE = 100000, /* usec until the next try after fds or memory ran out */
};

/* --- admission --- */

/* Sends a client the reason why it is not served, unless that would block. */
static void turn_away(const RpcServer *server, int fd, const Error *error) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        rpc_write_error(&w, NULL, 0, error, NULL, server->tells_commands);
        if (w.error == 0)
                (void)send(fd, w.data, w.length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int check_peer(const RpcServer *server, int fd, Error *reterr) {
        return server->peers == RPC_PEERS_LOOK ? peer_look(fd, server->uid, &server->own, reterr)
                                               : peer_check_uid(fd, server->uid, reterr);
}

static int server_check_room(const RpcServer *server, Error *reterr) {
        if (server->connections_count < RPC_CONNECTIONS_MAX)
                return 0;
        (void)error_set(reterr, ERROR_LIMIT, 0, "%d connections are already open",
                        RPC_CONNECTIONS_MAX);
        return error_cure(reterr, -EBUSY, "Close one that you no longer need.");
}

static void server_welcome_client(RpcServer *server, int client) {
        _cleanup_close_ int fd = client;
        RpcConnection *connection = NULL;
        Error error;
        int r;

        r = check_peer(server, fd, &error);
        if (r == 0)
                r = server_check_room(server, &error);
        if (r == 0)
                r = rpc_connection_new(server, fd, fd, &connection, &error);
        if (r < 0) {
                turn_away(server, fd, &error);
                return;
        }
        (void)TAKE_FD(fd);
        if (server->peers == RPC_PEERS_PROVE)
                rpc_connection_want_proof(connection);
}

/* --- the listening socket --- */

/* Clients in the backlog would wake the loop again and again. */
static void pause_accepting(RpcServer *server) {
        loop_watch_set(server->listen_watch, 0);
        loop_timer_set(server->listen_again, time_now_usec() + ACCEPT_PAUSE);
}

static void accept_again(void *data) {
        RpcServer *server = data;

        loop_watch_set(server->listen_watch, EPOLLIN);
}

/* accept4(2) fails if the client has disconnected again, or if fds or memory are out. */
static void on_listen(void *data, uint32_t events) {
        RpcServer *server = data;

        (void)events;
        for (int i = 0; i < ACCEPT_MAX; i++) {
                int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);

                if (fd >= 0)
                        server_welcome_client(server, fd);
                else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                        return pause_accepting(server);
                else if (errno != EINTR && errno != ECONNABORTED)
                        return;
        }
}

int rpc_server_listen(RpcServer *server, int fd, uid_t uid, RpcPeers peers, Error *reterr) {
        int r;

        assert(server->listen_fd < 0);
        server->listen_fd = fd;
        server->uid = uid;
        server->peers = peers;
        r = peer_own(&server->own, reterr);
        if (r < 0)
                return r;
        r = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
        if (r < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot listen without waiting");
        r = loop_timer_new(server->loop, accept_again, server, &server->listen_again, reterr);
        if (r < 0)
                return r;
        return loop_watch(server->loop, fd, EPOLLIN, on_listen, server, &server->listen_watch,
                          reterr);
}

void rpc_server_deafen(RpcServer *server) {
        server->listen_watch = loop_unwatch(server->listen_watch);
        server->listen_again = loop_timer_free(server->listen_again);
        server->listen_fd = fd_close(server->listen_fd);
}

/* --- the server --- */

int rpc_server_new(Loop *loop, const RpcMethod *methods, size_t methods_count, void *data,
                   RpcServer **ret, Error *reterr) {
        RpcServer *server = malloc(sizeof(*server));

        if (!server)
                return error_oom(reterr);
        *server = (RpcServer){
                .loop = loop,
                .methods = methods,
                .methods_count = methods_count,
                .data = data,
                .listen_fd = FD_NONE,
        };
        *ret = server;
        return 0;
}

RpcServer *rpc_server_free(RpcServer *server) {
        if (!server)
                return NULL;
        while (server->connections)
                rpc_connection_end(server->connections);
        rpc_server_deafen(server);
        free(server);
        return NULL;
}

int rpc_server_add(RpcServer *server, int in_fd, int out_fd, RpcConnection **ret, Error *reterr) {
        return rpc_connection_new(server, in_fd, out_fd, ret, reterr);
}

size_t rpc_server_connections(const RpcServer *server) {
        return server->connections_count;
}

size_t rpc_server_owed(const RpcServer *server) {
        size_t owed = 0;

        for (const RpcConnection *c = server->connections; c; c = c->next)
                owed += c->calls_count + (c->more || !rpc_queue_empty(&c->queue));
        return owed;
}

void rpc_server_on_end(RpcServer *server, void (*fn)(RpcConnection *connection, void *data)) {
        server->on_end = fn;
}

void rpc_server_on_room(RpcServer *server, void (*fn)(RpcConnection *connection, void *data)) {
        server->on_room = fn;
}

void rpc_server_tell_commands(RpcServer *server) {
        server->tells_commands = true;
}

void rpc_server_on_answer(RpcServer *server,
                          void (*fn)(RpcCall *call, const Error *error, void *data)) {
        server->on_answer = fn;
}
