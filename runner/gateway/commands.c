/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pass-fds.h"
#include "gateway/exchange.h"
#include "gateway/server.h"
#include "gateway/settings.h"
#include "gateway/tunnel.h"
#include "network/gateway-protocol.h"

/* Whether a request still points to the route. */
static bool command_route_is_used(const Gateway *gateway, const Route *route) {
        for (const Exchange *e = gateway->exchanges; e; e = e->next)
                if (e->route == route)
                        return true;
        return false;
}

static Route *command_find(const Gateway *gateway, const char *name) {
        for (size_t i = 0; i < gateway->routes_count; i++)
                if (!gateway->routes[i].removed && strcmp(gateway->routes[i].name, name) == 0)
                        return &gateway->routes[i];
        return NULL;
}

/* Returns a place for a route: that of a removed one, or a new one. NULL if there is none. */
static Route *command_place(Gateway *gateway) {
        for (size_t i = 0; i < gateway->routes_count; i++) {
                Route *route = &gateway->routes[i];

                if (!route->removed || command_route_is_used(gateway, route))
                        continue;
                gateway_settings_clear(route);
                route->removed = true;
                return route;
        }
        if (gateway->routes_count == GATEWAY_ROUTES_MAX)
                return NULL;
        gateway->routes[gateway->routes_count].removed = true;
        return &gateway->routes[gateway->routes_count++];
}

static int command_number(const Gateway *gateway, Route *route) {
        int number = route->address.family ? 0 : names_add(gateway->names, route->host);

        if (number < 0)
                return number;
        route->number = (unsigned)number;
        return 0;
}

/* Returns NULL, or why the route cannot be added. */
static const char *command_add(Gateway *gateway, const JsonValue *object, const char *variables) {
        Route route = { 0 }, *place;
        int r = gateway_settings_route(&route, object, variables);

        if (r == 0)
                r = command_number(gateway, &route);
        if (r == 0 && command_find(gateway, route.name))
                r = -EEXIST;
        place = r == 0 ? command_place(gateway) : NULL;
        if (place) {
                *place = route;
                return NULL;
        }
        gateway_settings_clear(&route);
        return r == 0          ? "requests of removed routes have not ended yet"
               : r == -ENOTSUP ? "its credential comes from a file or a command"
               : r == -EEXIST  ? "it has a route of this name"
                               : strerror(-r);
}

static const char *command_remove(Gateway *gateway, const char *name) {
        Route *route = command_find(gateway, name);

        if (!route)
                return "it has no route of this name";
        route->removed = true;
        exchanges_end(gateway, route, "the route was removed");
        gateway_settings_forget(route);
        return NULL;
}

/* Reads the whole memory file. Its last byte is always NUL. */
static void command_read_variables(int fd, char ret[GATEWAY_SECRETS_MAX + 2]) {
        size_t length = 0;
        ssize_t n = 1;

        while (fd >= 0 && length < GATEWAY_SECRETS_MAX && n > 0) {
                n = read(fd, ret + length, GATEWAY_SECRETS_MAX - length);
                length += n > 0 ? (size_t)n : 0;
        }
        ret[length] = ret[length + 1] = '\0';
}

static const char *command_do(Gateway *gateway, const char *text, size_t length, int fd) {
        static char variables[GATEWAY_SECRETS_MAX + 2];
        _cleanup_(json_freep) JsonDocument *document = NULL;
        const char *why = "the command is malformed";
        const JsonValue *add;

        if (json_parse(text, length, "command", &document, NULL) < 0)
                return why;
        add = json_member(json_root(document), "add");
        if (!add)
                return command_remove(gateway, json_member_text(json_root(document), "remove"));
        command_read_variables(fd, variables);
        why = command_add(gateway, add, variables);
        explicit_bzero(variables, sizeof(variables));
        return why;
}

/* The reply must arrive, so it waits until holt reads. */
static void command_reply(const Gateway *gateway, const char *why) {
        GatewayEvent event = { .type = GATEWAY_CHANGED };

        (void)snprintf(event.reason, sizeof(event.reason), "%s", why ? why : "");
        (void)send(gateway->control_fd, &event, sizeof(event), MSG_NOSIGNAL);
}

static void commands_on_control(void *data, uint32_t events) {
        static char text[GATEWAY_COMMAND_MAX];
        Gateway *gateway = data;
        _cleanup_close_ int fd = FD_NONE;
        ssize_t n = receive_with_fd(gateway->control_fd, text, sizeof(text), &fd, MSG_DONTWAIT);

        (void)events;
        if (n < 0 && errno == EAGAIN)
                return;
        if (n <= 0) {
                tunnels_tell(gateway);
                return loop_stop(gateway->loop);
        }
        command_reply(gateway, command_do(gateway, text, (size_t)n, fd));
        server_turn(gateway);
}

int commands_watch(Gateway *gateway, Error *reterr) {
        return loop_watch(gateway->loop, gateway->control_fd, EPOLLIN, commands_on_control, gateway,
                          &gateway->control_watch, reterr);
}
