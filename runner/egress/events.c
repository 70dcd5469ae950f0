/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/egress.h"

/* The socket is blocking. holt never waits for holt-egress, except at the start, so neither can
 * wait for the other for ever. */
void egress_send(Egress *egress, const EgressEvent *event) {
        (void)send(egress->control_fd, event, sizeof(*event), MSG_NOSIGNAL);
}

EgressEvent egress_denial(const Egress *egress, EgressReason reason, const char *name,
                          const NetAddress *address, uint16_t port, const char *other) {
        EgressEvent event = { .type = EGRESS_DENIED, .reason = reason, .port = port };
        const char *rule = net_rules_reason(&egress->rules, name, address);

        event.started_ms = event.ended_ms = time_epoch_ms();
        if (address) {
                event.family = address->family;
                memcpy(event.address, address->bytes, sizeof(event.address));
        }
        (void)snprintf(event.name, sizeof(event.name), "%s", name ? name : "");
        (void)snprintf(event.other, sizeof(event.other), "%s", other ? other : "");
        (void)snprintf(event.rule, sizeof(event.rule), "%s", rule ? rule : "");
        return event;
}

void egress_deny(Egress *egress, EgressReason reason, const char *name, const NetAddress *address,
                 uint16_t port, const char *other) {
        const EgressEvent event = egress_denial(egress, reason, name, address, port, other);

        egress_send(egress, &event);
}
