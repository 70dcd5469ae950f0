/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/proxy-tools.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/list.h"
#include "base/util.h"
#include "session/directory.h"

struct ProxyTool {
        ProxyTool *next;
        const RpcConnection *client;
        char *session, *name;
        /* O_PATH fd of the session's directory, because a later session may have the same name. */
        int dir_fd;
        JsonWriter params; /* parameters of tools.register */
};

static ProxyTool *proxy_tool_free(ProxyTool *tool) {
        fd_close(tool->dir_fd);
        free(tool->session);
        free(tool->name);
        json_write_clear(&tool->params);
        free(tool);
        return NULL;
}

/* Drops the tools that match. A NULL matches everything. */
static void proxy_tools_drop(ProxyTool **all, const RpcConnection *client, const char *session,
                             const char *name) {
        list_each_safe(tool, *all) {
                if ((client && tool->client != client) ||
                    (session && !streq(tool->session, session)) ||
                    (name && !streq(tool->name, name)))
                        continue;
                (void)list_remove(all, tool);
                proxy_tool_free(tool);
        }
}

bool proxy_tools_has(const ProxyTool *all, const RpcConnection *client, const char *session) {
        for (const ProxyTool *tool = all; tool; tool = tool->next)
                if (tool->client == client && streq(tool->session, session))
                        return true;
        return false;
}

static void proxy_tools_add(ProxyTool **all, const RpcCall *call) {
        ProxyTool *tool = calloc(1, sizeof(*tool));

        if (!tool)
                return;
        tool->dir_fd = FD_NONE;
        (void)session_open(rpc_string(call, "session"), &tool->dir_fd, NULL, NULL);
        tool->client = rpc_call_connection(call);
        tool->session = strdup(rpc_string(call, "session"));
        tool->name = strdup(rpc_string(call, "name"));
        json_write_object(&tool->params, NULL);
        rpc_write_params(call, "session", &tool->params);
        json_write_end(&tool->params);
        if (json_write_finish(&tool->params) < 0 || !tool->session || !tool->name ||
            tool->dir_fd < 0) {
                proxy_tool_free(tool);
                return;
        }
        tool->next = *all;
        *all = tool;
}

void proxy_tools_note(ProxyTool **all, const RpcCall *call) {
        const char *method = rpc_call_method(call)->name;
        const bool registers = streq(method, "tools.register");

        if (!registers && !streq(method, "tools.unregister"))
                return;
        proxy_tools_drop(all, rpc_call_connection(call), rpc_string(call, "session"),
                         rpc_string(call, "name"));
        if (registers)
                proxy_tools_add(all, call);
}

void proxy_tools_forget(ProxyTool **all, const RpcConnection *client) {
        proxy_tools_drop(all, client, NULL, NULL);
}

static bool same_directory(int one_fd, int other_fd) {
        struct stat one, other;

        return fstat(one_fd, &one) == 0 && fstat(other_fd, &other) == 0 &&
               one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

void proxy_tools_send(const ProxyTool *all, const RpcConnection *client, const char *session,
                      RpcClient *keeper) {
        _cleanup_close_ int dir_fd = FD_NONE;

        for (const ProxyTool *tool = all; tool; tool = tool->next) {
                uint64_t id;
                Error ignored;

                if (tool->client != client || !streq(tool->session, session))
                        continue;
                if (dir_fd < 0)
                        (void)session_open(session, &dir_fd, NULL, NULL);
                if (same_directory(tool->dir_fd, dir_fd))
                        (void)rpc_client_send(keeper, "tools.register", &tool->params, NULL, 0, &id,
                                              &ignored);
        }
}
