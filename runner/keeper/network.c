/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the events that holt-egress reports for a live session into the audit and the results. */
#include <sys/epoll.h>

#include "keeper/keeper.h"
#include "policy/net/address.h"
#include "store/unwritten.h"

static void audit_finish(const Keeper *keeper, JsonWriter *w, const char *kind) {
        json_write_end(w);
        if (json_write_finish(w) == 0)
                unwritten_audit(keeper->unwritten, kind, w->data);
}

/* Audits a connection that was allowed and has ended, or could not be made. */
static void audit_connection(const Keeper *keeper, const EgressEvent *event) {
        const NetDenial end = { .event = *event };
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        NetAddress address = { .family = event->family };
        char peer[NET_PEER_TEXT], text[NET_ADDRESS_TEXT];

        for (size_t i = 0; i < sizeof(address.bytes); i++)
                address.bytes[i] = event->address[i];
        net_denial_peer(&end, peer);
        json_write_object(&w, NULL);
        json_write_string(&w, "peer", peer);
        json_write_bool(&w, "published", event->inside);
        json_write_string(&w, "address", event->family ? net_address_text(&address, text) : NULL);
        json_write_uint(&w, "sent", event->sent);
        json_write_uint(&w, "received", event->received);
        json_write_uint(&w, "started_ms", event->started_ms);
        json_write_uint(&w, "ended_ms", event->ended_ms);
        json_write_string(&w, "error", event->errnum ? error_errno_name((int)event->errnum) : NULL);
        audit_finish(keeper, &w, "network");
}

/* Audits a port of the host that was opened or closed. */
static void audit_port(const Keeper *keeper, const EgressEvent *event) {
        const NetPort port = net_published_port(event);
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (event->errnum)
                return;
        json_write_object(&w, NULL);
        net_published_write_port(&w, &port);
        json_write_bool(&w, "open", event->type == EGRESS_PUBLISHED);
        audit_finish(keeper, &w, "port");
}

static void keeper_on_network_event(void *data, const EgressEvent *event, const NetDenial *first) {
        Keeper *keeper = data;
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (event->type == EGRESS_PUBLISHED || event->type == EGRESS_UNPUBLISHED) {
                audit_port(keeper, event);
                return keeper_on_port(keeper, event);
        }
        if (event->type == EGRESS_GRANTED)
                return keeper_on_grant(keeper, event);
        if (event->type == EGRESS_USED)
                return settings_use_once(&keeper->settings, event->id);
        if (event->type == EGRESS_CLOSED || event->type == EGRESS_FAILED)
                return audit_connection(keeper, event);
        if (!first)
                return;
        json_write_object(&w, NULL);
        net_denial_write(&w, first, 1, true);
        audit_finish(keeper, &w, "denial");
}

void keeper_read_network(Keeper *keeper) {
        Network *network = &keeper->sandbox.network;

        if (network->control_fd < 0)
                return;
        network_read(network, keeper_on_network_event, keeper);
        if (network->control_fd < 0) {
                keeper->network_watch = loop_unwatch(keeper->network_watch);
                keeper_fail_ports(keeper);
                keeper_fail_grants(keeper);
        }
}

static void keeper_on_network(void *data, uint32_t events) {
        (void)events;
        keeper_read_network(data);
}

int keeper_watch_network(Keeper *keeper, Error *reterr) {
        const Network *network = &keeper->sandbox.network;

        if (network->control_fd < 0)
                return 0;
        return loop_watch(keeper->loop, network->control_fd, EPOLLIN, keeper_on_network, keeper,
                          &keeper->network_watch, reterr);
}

void keeper_end_network(Keeper *keeper) {
        keeper->network_watch = loop_unwatch(keeper->network_watch);
        network_stop(&keeper->sandbox.network, keeper_on_network_event, keeper);
}
