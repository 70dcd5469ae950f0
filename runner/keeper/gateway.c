/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the requests that holt-gateway reports for a live session into the audit. */
#include <sys/epoll.h>

#include "keeper/keeper.h"
#include "store/unwritten.h"

static void gateway_audit(const Keeper *keeper, JsonWriter *w, const char *kind) {
        json_write_end(w);
        if (json_write_finish(w) == 0)
                unwritten_audit(keeper->unwritten, kind, w->data);
}

static void audit_request(const Keeper *keeper, const GatewayEvent *event) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "route", event->route);
        json_write_string(&w, "method", event->method);
        json_write_string(&w, "path", event->path);
        json_write_uint(&w, "status", event->status);
        json_write_uint(&w, "sent", event->sent);
        json_write_uint(&w, "received", event->received);
        json_write_uint(&w, "ms", event->usec / 1000);
        json_write_string(&w, "error", event->reason[0] ? event->reason : NULL);
        gateway_audit(keeper, &w, "route");
}

/* Audits the first refusal of its kind. */
static void audit_refused_request(const Keeper *keeper, const GatewayDenial *first) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        gateway_denial_write(&w, first, 1);
        gateway_audit(keeper, &w, "denial");
}

/* Programs inside can cause very many refusals, so only the first of a kind gets a row. */
static void keeper_on_request(void *data, const GatewayEvent *event, const GatewayDenial *first) {
        if (event->type != GATEWAY_REFUSED)
                audit_request(data, event);
        else if (first)
                audit_refused_request(data, first);
}

void keeper_read_gateway(Keeper *keeper) {
        if (keeper->sandbox.gateway.control_fd < 0)
                return;
        gateway_read(&keeper->sandbox.gateway, keeper_on_request, keeper);
        if (keeper->sandbox.gateway.control_fd < 0)
                keeper->gateway_watch = loop_unwatch(keeper->gateway_watch);
}

static void keeper_on_gateway(void *data, uint32_t events) {
        (void)events;
        keeper_read_gateway(data);
}

int keeper_watch_gateway(Keeper *keeper, Error *reterr) {
        const int fd = keeper->sandbox.gateway.control_fd;

        return fd < 0 ? 0
                      : loop_watch(keeper->loop, fd, EPOLLIN, keeper_on_gateway, keeper,
                                   &keeper->gateway_watch, reterr);
}

void keeper_end_gateway(Keeper *keeper) {
        keeper->gateway_watch = loop_unwatch(keeper->gateway_watch);
        gateway_stop(&keeper->sandbox.gateway, keeper_on_request, keeper);
}
