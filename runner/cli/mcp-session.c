/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp-session.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int mcp_session_serve(McpOwned *owned, Error *reterr) {
        sigset_t none;
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a socket");
        owned->server = fork();
        if (owned->server == 0) {
                (void)sigemptyset(&none);
                (void)sigprocmask(SIG_SETMASK, &none, NULL);
                (void)signal(SIGPIPE, SIG_DFL);
                if (dup2(fds[1], STDIN_FILENO) >= 0 && dup2(fds[1], STDOUT_FILENO) >= 0)
                        (void)execl("/proc/self/exe", "holt", "serve", NULL);
                _exit(125);
        }
        (void)close(fds[1]);
        if (owned->server < 0) {
                (void)close(fds[0]);
                return error_set(reterr, ERROR_SETUP, errno, "cannot start holt serve");
        }
        return rpc_client_new(fds[0], &owned->client, reterr);
}

/* A network without rules reaches nothing. But refusals name the host, and the user can allow it
 * while the session runs. */
static void mcp_session_write_network(const McpOwned *owned, JsonWriter *w) {
        json_write_object(w, "network");
        json_write_string(w, "mode", "allow");
        json_write_array(w, "allow");
        for (size_t i = 0; i < owned->net->count; i++)
                json_write_string(w, NULL, owned->net->items[i]);
        json_write_end(w);
        if (owned->ask)
                json_write_bool(w, "ask", true);
        json_write_end(w);
}

/* The first root is the workspace. */
static void mcp_session_write_roots(const StrList *roots, JsonWriter *w) {
        if (!roots || roots->count < 2)
                return;
        json_write_object(w, "filesystem");
        json_write_array(w, "read_write");
        for (size_t i = 1; i < roots->count; i++)
                json_write_string(w, NULL, roots->items[i]);
        json_write_end(w);
        json_write_end(w);
}

static void mcp_session_write(const McpOwned *owned, const StrList *roots, JsonWriter *w) {
        const bool has_roots = roots && roots->count > 0;
        const char *workspace = has_roots ? roots->items[0] : owned->workspace;

        json_write_object(w, NULL);
        json_write_string(w, "name", owned->name);
        json_write_bool(w, "owned", true);
        if (workspace)
                json_write_string(w, "workspace", workspace);
        json_write_object(w, "policy");
        json_write_uint(w, "holt", 1);
        mcp_session_write_network(owned, w);
        mcp_session_write_roots(roots, w);
        json_write_end(w);
        json_write_end(w);
}

int mcp_session_make(void *data, const StrList *roots, const char **ret_name, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        RpcMessage message = RPC_MESSAGE_NONE;
        McpOwned *owned = data;
        uint64_t random;
        int r;

        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return error_set(reterr, ERROR_SETUP, errno, "cannot get random bytes");
        (void)snprintf(owned->name, sizeof(owned->name), "mcp-%d-%016" PRIx64, (int)getpid(),
                       random);
        r = owned->client ? 0 : mcp_session_serve(owned, reterr);
        if (r < 0)
                return r;
        mcp_session_write(owned, roots, &w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        r = rpc_client_call(owned->client, "session.create", &w, NULL, 0, &message, reterr);
        rpc_message_clear(&message);
        if (r == 0)
                *ret_name = owned->name;
        return r;
}

void mcp_session_end(McpOwned *owned) {
        owned->client = rpc_client_free(owned->client);
        if (owned->server > 0)
                (void)waitpid(owned->server, NULL, 0);
}
