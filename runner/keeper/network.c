/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the events that holt-egress reports for a live session into the audit and the results. */
#include <string.h>
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

        memcpy(address.bytes, event->address, sizeof(address.bytes));
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

/* Audits the first refusal of its kind. */
static void audit_refused_peer(const Keeper *keeper, const NetDenial *first) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        net_denial_write(&w, first, 1, true);
        audit_finish(keeper, &w, "denial");
}

static void on_port_changed(Keeper *keeper, const EgressEvent *event) {
        audit_port(keeper, event);
        keeper_on_port(keeper, event);
}

static void on_connection_ended(Keeper *keeper, const EgressEvent *event) {
        /* Without a port, it is a lookup that has found nothing, and no connection. */
        if (event->port != 0)
                audit_connection(keeper, event);
}

static void on_grant_used(Keeper *keeper, const EgressEvent *event) {
        settings_use_once(&keeper->settings, event->id);
}

static void on_nothing(Keeper *keeper, const EgressEvent *event) {
        (void)keeper, (void)event;
}

static void (*const on_event[])(Keeper *keeper, const EgressEvent *event) = {
        [EGRESS_STARTED] = on_nothing,         [EGRESS_DENIED] = on_nothing,
        [EGRESS_FAILED] = on_connection_ended, [EGRESS_CLOSED] = on_connection_ended,
        [EGRESS_PUBLISHED] = on_port_changed,  [EGRESS_UNPUBLISHED] = on_port_changed,
        [EGRESS_GRANTED] = keeper_on_grant,    [EGRESS_USED] = on_grant_used,
        [EGRESS_ASKS] = keeper_on_question,    [EGRESS_ASK_ENDS] = keeper_on_question_end,
};
static_assert(ELEMENTSOF(on_event) == EGRESS_TYPE_MAX, "each event has a function");

/* net_event_valid() has checked the type. */
static void keeper_on_network_event(void *data, const EgressEvent *event, const NetDenial *first) {
        if (event->type == EGRESS_DENIED && first)
                audit_refused_peer(data, first);
        on_event[event->type](data, event);
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
