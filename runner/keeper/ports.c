/* SPDX-License-Identifier: Apache-2.0 */
/* Ports that a client forwards in a live session. holt-egress opens and closes them, and its
 * replies come in the order of the commands. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/list.h"
#include "keeper/keeper.h"
#include "policy/net/ports.h"

/* A command to which holt-egress has not replied yet. */
typedef struct PortWait {
        struct PortWait *next;
        RpcCall *call; /* NULL if the client has gone. */
} PortWait;

struct PortWaits {
        PortWait *first;
        size_t count;
};

enum { PORT_COMMANDS_MAX = 64 }; /* Commands without a reply, at most. */

static void port_wait_on_call_end(RpcCall *call, void *data) {
        PortWait *wait = data;

        (void)call;
        wait->call = NULL;
}

/* Sends a command. call may be NULL. */
static int port_command(Keeper *keeper, const char *name, const NetPort *port, RpcCall *call,
                        Error *reterr) {
        char host[NET_PORT_TEXT], text[NET_PORT_TEXT + 8];
        PortWait *wait;
        int r;

        if (keeper->ports->count == PORT_COMMANDS_MAX)
                return error_set(reterr, ERROR_LIMIT, 0,
                                 "too many ports are being opened or closed");
        wait = calloc(1, sizeof(*wait));
        if (!wait)
                return error_oom(reterr);
        (void)snprintf(text, sizeof(text), "%s:%u", net_port_host_text(port, host), port->inside);
        r = network_command(&keeper->sandbox.network, name, text);
        if (r < 0) {
                free(wait);
                return error_set(reterr, ERROR_SETUP, -r, "cannot reach holt-egress");
        }
        wait->call = call;
        list_append(&keeper->ports->first, wait);
        keeper->ports->count++;
        if (call)
                rpc_call_on_end(call, port_wait_on_call_end, wait);
        return 0;
}

/* --- for the methods --- */

static int ports_no_network(const Keeper *keeper, Error *reterr) {
        int r;

        if (keeper->plan.network == NETWORK_HOST) {
                r = error_set(reterr, ERROR_USAGE, 0,
                              "the session is on the host's own network, so its ports are the "
                              "host's already");
                return error_cure(reterr, r, "Connect to 127.0.0.1 and the port.");
        }
        r = error_set(reterr, ERROR_SETUP, 0,
                      "the session has lost its network, because holt-egress ended");
        return error_cure(reterr, r,
                          "Stop the session: holt stop %s. Its next use starts it again.",
                          keeper->name);
}

int keeper_forward_port(Keeper *keeper, const NetPort *port, RpcCall *call, Error *reterr) {
        const NetPublished *published = &keeper->sandbox.network.published;

        if (keeper->sandbox.network.control_fd < 0)
                return ports_no_network(keeper, reterr);
        for (size_t i = 0; port->host == 0 && i < published->count; i++)
                if (published->items[i].inside == port->inside &&
                    net_address_equal(&published->items[i].address, &port->address)) {
                        net_published_write_port(rpc_result(call), &published->items[i]);
                        rpc_reply(call);
                        return 0;
                }
        return port_command(keeper, "publish", port, call, reterr);
}

/* The caller may have named the host's port instead of the one inside. */
static int port_refuse_close(const NetPublished *published, uint16_t port, Error *reterr) {
        int r = error_set(reterr, ERROR_MISSING, 0, "port %u of the session is not forwarded",
                          port);

        for (size_t i = 0; i < published->count; i++)
                if (published->items[i].host == port)
                        return error_cure(reterr, r,
                                          "Port %u of the host leads to port %u of the session: "
                                          "name that one.",
                                          port, published->items[i].inside);
        return r;
}

int keeper_close_port(Keeper *keeper, uint16_t inside, uint16_t host, RpcCall *call,
                      Error *reterr) {
        const NetPublished *published = &keeper->sandbox.network.published;
        const NetPort *found = NULL;
        int r;

        for (size_t i = 0; i < published->count; i++) {
                const NetPort *port = &published->items[i];

                if (port->inside != inside || (host && port->host != host))
                        continue;
                r = found ? port_command(keeper, "unpublish", found, NULL, reterr) : 0;
                if (r < 0)
                        return r;
                found = port;
        }
        if (found)
                return port_command(keeper, "unpublish", found, call, reterr);
        return port_refuse_close(published, inside, reterr);
}

/* --- replies --- */

static void port_answer(const Keeper *keeper, const EgressEvent *event, RpcCall *call) {
        const NetPort port = net_published_port(event);
        char automatic[SESSION_NAME_MAX + 32];
        Error error;

        (void)snprintf(automatic, sizeof(automatic), "holt forward %s %u", keeper->name,
                       event->inside);
        if (event->errnum) {
                (void)net_published_refuse(event, automatic, &error);
                return rpc_fail(call, &error);
        }
        net_published_write_port(rpc_result(call), &port);
        rpc_reply(call);
}

static PortWait *port_waits_take(Keeper *keeper) {
        PortWait *wait = keeper->ports->first;

        if (wait) {
                (void)list_remove(&keeper->ports->first, wait);
                keeper->ports->count--;
                if (wait->call)
                        rpc_call_on_end(wait->call, NULL, NULL);
        }
        return wait;
}

void keeper_on_port(Keeper *keeper, const EgressEvent *event) {
        PortWait *wait = port_waits_take(keeper);

        if (wait && wait->call)
                port_answer(keeper, event, wait->call);
        free(wait);
}

void keeper_fail_ports(Keeper *keeper) {
        PortWait *wait;

        while ((wait = port_waits_take(keeper))) {
                Error error;

                (void)ports_no_network(keeper, &error);
                if (wait->call)
                        rpc_fail(wait->call, &error);
                free(wait);
        }
}

int keeper_ports_new(Keeper *keeper, Error *reterr) {
        keeper->ports = calloc(1, sizeof(*keeper->ports));
        return keeper->ports ? 0 : error_oom(reterr);
}

void keeper_ports_free(Keeper *keeper) {
        while (keeper->ports && keeper->ports->first)
                free(port_waits_take(keeper));
        free(keeper->ports);
        keeper->ports = NULL;
}
