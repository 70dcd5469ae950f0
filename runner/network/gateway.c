/* SPDX-License-Identifier: Apache-2.0 */
#include "network/gateway.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pass-fds.h"
#include "base/programs.h"
#include "base/utf8.h"
#include "base/wait.h"
#include "network/caller-env.h"
#include "network/spawn.h"
#include "policy/plan-files.h"

enum {
        STOP_TIME = HOLT_WAIT(1000),   /* Milliseconds until holt-gateway has ended. */
        TRUST_TIME = HOLT_WAIT(10000), /* Milliseconds until holt-gateway has made certificates. */
        READ_TURN = 512,               /* Events that one call reads, at most. */
};

/* --- the start --- */

/* The routes are JSON texts already. */
static void gateway_write_settings(const LaunchPlan *plan, JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "token", plan->route_token);
        if (plan->net_upstream)
                json_write_string(w, "upstream", plan->net_upstream);
        json_write_array(w, "rules");
        for (size_t i = 0; i < plan->net_allow.count; i++)
                json_write_string(w, NULL, plan->net_allow.items[i]);
        json_write_end(w);
        json_write_array(w, "routes");
        for (size_t i = 0; i < plan->routes.count; i++) {
                char *text = plan->routes.items[i];
                const JsonWriter route = { .data = text, .length = strlen(text), .filled = true };

                json_write_value(w, NULL, &route);
        }
        json_write_end(w);
        json_write_end(w);
}

static int gateway_send_settings(const LaunchPlan *plan, int fd, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        gateway_write_settings(plan, &w);
        if (json_write_finish(&w) < 0)
                return error_oom(reterr);
        if (w.length > GATEWAY_SETTINGS_MAX)
                return error_set(reterr, ERROR_POLICY, 0,
                                 "bridge.routes: the routes are too long together");
        return send(fd, w.data, w.length, MSG_NOSIGNAL) < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot send the routes")
                       : 0;
}

/* The process gets holt's environment, because credentials and the commands that print them may
 * need it. */
static int gateway_spawn(int control_fd, int setup_fd, pid_t *ret, Error *reterr) {
        static char name[] = "holt-gateway";
        char *argv[] = { name, NULL };
        _cleanup_free_ char **env = caller_env_unwrap();
        const SpawnProgram program = { .paths = programs_gateway,
                                       .paths_count = ELEMENTSOF(programs_gateway),
                                       .argv = argv,
                                       .env = env,
                                       .fds = { control_fd, setup_fd } };
        int r = env ? spawn_beside(&program, ret) : -ENOMEM;

        if (r == 0)
                return 0;
        r = error_set(reterr, ERROR_SETUP, -r,
                      "cannot execute " HOLT_LIBEXEC "/holt-gateway, which a route needs");
        return error_cure(reterr, r, "Install holt completely: meson install -C build");
}

/* --- the certificates --- */

/* Receives the memory file and its sizes. Returns the descriptor or a negative errno. */
static int trust_receive(int control_fd, GatewayTrust *ret) {
        struct pollfd message_in = { .fd = control_fd, .events = POLLIN };
        ssize_t n;
        int fd;

        if (poll(&message_in, 1, TRUST_TIME) <= 0)
                return -ETIMEDOUT;
        n = receive_with_fd(control_fd, ret, sizeof(*ret), &fd, MSG_DONTWAIT);
        if (n < 0)
                return -errno;
        if (fd < 0)
                return -EPIPE;
        if (n == (ssize_t)sizeof(*ret) &&
            (uint64_t)ret->ca + ret->bundle + ret->java <= GATEWAY_TRUST_MAX)
                return fd;
        (void)fd_close(fd);
        return -EPROTO;
}

static int trust_add(LaunchPlan *plan, int fd, const char *path, size_t size, off_t *at,
                     Error *reterr) {
        char *text = malloc(size + 1);
        const char *why = "";
        int r;

        if (!text)
                return error_oom(reterr);
        if (pread(fd, text, size, *at) != (ssize_t)size) {
                free(text);
                return error_set(reterr, ERROR_SETUP, EPROTO, "holt-gateway sent no certificates");
        }
        text[size] = '\0';
        *at += (off_t)size;
        r = plan_add_file(plan, path, text, size, &why);
        return r == -ENOMEM ? error_oom(reterr)
               : r < 0 ? error_set(reterr, ERROR_POLICY, 0, "cannot write %s inside: %s", path, why)
                       : 0;
}

int gateway_take_trust(const GatewayLink *gateway, LaunchPlan *plan, Error *reterr) {
        _cleanup_close_ int fd = FD_NONE;
        GatewayTrust trust;
        off_t at = 0;
        int r;

        if (plan->tls_hosts.count == 0 || gateway->control_fd < 0)
                return 0;
        fd = trust_receive(gateway->control_fd, &trust);
        if (fd < 0)
                return error_set(reterr, ERROR_SETUP, -fd, "holt-gateway sent no certificates");
        r = trust_add(plan, fd, PLAN_CA_FILE, trust.ca, &at, reterr);
        if (r == 0)
                r = trust_add(plan, fd, PLAN_CA_BUNDLE, trust.bundle, &at, reterr);
        return r < 0 ? r : trust_add(plan, fd, PLAN_CA_JAVA, trust.java, &at, reterr);
}

/* --- the process --- */

int gateway_start(const LaunchPlan *plan, GatewayLink *ret, Error *reterr) {
        int control[2] = { FD_NONE, FD_NONE }, setup[2] = { FD_NONE, FD_NONE }, r = 0;

        *ret = (GatewayLink)GATEWAY_CLOSED;
        if (plan->routes.count == 0)
                return 0;
        if (spawn_socketpair(control, GATEWAY_SETTINGS_MAX) < 0 || spawn_socketpair(setup, 0) < 0)
                r = error_set(reterr, ERROR_SETUP, errno, "cannot make a socket pair");
        ret->control_fd = control[0];
        ret->setup_fd = setup[0];
        if (r == 0)
                r = gateway_spawn(control[1], setup[1], &ret->pid, reterr);
        if (r == 0)
                r = gateway_send_settings(plan, ret->control_fd, reterr);
        fd_close(control[1]);
        fd_close(setup[1]);
        if (r < 0)
                gateway_clear(ret);
        return r;
}

void gateway_started(GatewayLink *gateway) {
        gateway->setup_fd = fd_close(gateway->setup_fd);
}

/* --- events --- */

/* The texts are printed on a terminal, so none may have a control character. */
static bool gateway_text_valid(const char *text, size_t size) {
        static const unsigned char c1 = 0xc2; /* In UTF-8, U+0080 to U+009F begin with this byte. */

        if (strnlen(text, size) == size || !utf8_valid(text))
                return false;
        for (; *text; text++)
                if ((unsigned char)*text < 0x20 || *text == 0x7f ||
                    ((unsigned char)text[0] == c1 && (unsigned char)text[1] < 0xa0))
                        return false;
        return true;
}

/* Whether the text is one of ASCII, as methods and URLs are. */
static bool gateway_ascii_valid(const char *text, size_t size) {
        if (!gateway_text_valid(text, size))
                return false;
        while ((unsigned char)*text >= 0x20 && (unsigned char)*text < 0x7f)
                text++;
        return *text == '\0';
}

static bool gateway_event_valid(const GatewayEvent *event) {
        return event->type < GATEWAY_EVENT_MAX && event->status < 1000 &&
               gateway_ascii_valid(event->route, sizeof(event->route)) &&
               gateway_ascii_valid(event->method, sizeof(event->method)) &&
               gateway_ascii_valid(event->path, sizeof(event->path)) &&
               gateway_text_valid(event->reason, sizeof(event->reason)) &&
               gateway_text_valid(event->told, sizeof(event->told));
}

static bool gateway_event_same(const GatewayEvent *a, const GatewayEvent *b) {
        return a->type == b->type && a->status == b->status && strcmp(a->route, b->route) == 0 &&
               strcmp(a->method, b->method) == 0 && strcmp(a->path, b->path) == 0;
}

/* Many clients, such as git, send a login only after a response of 401. Once the request has
 * passed, its refusal is no news. The same holds for a credential that was renewed. */
static void gateway_pardon(GatewayDenials *denials, const GatewayEvent *done) {
        for (unsigned i = 0; denials && i < denials->count; i++) {
                const GatewayEvent *refused = &denials->items[i].event;
                GatewayEvent same = *done;

                same.type = refused->type;
                same.status = refused->status;
                if ((refused->type == GATEWAY_DOUBTED || refused->status == 401) &&
                    gateway_event_same(refused, &same))
                        denials->items[i].count = 0;
        }
}

/* Counts a refusal or a failure. Returns the denial if it is the first of its kind. */
static const GatewayDenial *gateway_note(GatewayDenials **denials, const GatewayEvent *event) {
        GatewayDenial *denial;

        if (event->type == GATEWAY_DONE)
                gateway_pardon(*denials, event);
        if (event->type == GATEWAY_DONE || event->type == GATEWAY_CHANGED)
                return NULL;
        if (!*denials)
                *denials = calloc(1, sizeof(**denials));
        if (!*denials)
                return NULL;
        for (unsigned i = 0; i < (*denials)->count; i++)
                if (gateway_event_same(&(*denials)->items[i].event, event)) {
                        (*denials)->items[i].count++;
                        return NULL;
                }
        if ((*denials)->count == GATEWAY_DENIALS_MAX) {
                (*denials)->omitted++;
                return NULL;
        }
        denial = &(*denials)->items[(*denials)->count++];
        *denial = (GatewayDenial){ .event = *event, .count = 1 };
        return denial;
}

void gateway_read(GatewayLink *gateway, GatewayFn fn, void *data) {
        GatewayEvent event;
        ssize_t n = 1;

        if (gateway->control_fd < 0)
                return;
        /* Programs inside may cause events as fast as holt reads them, so one call has a limit. */
        for (int i = 0; i < READ_TURN; i++) {
                const GatewayDenial *first;

                n = recv(gateway->control_fd, &event, sizeof(event), MSG_DONTWAIT);
                if (n <= 0)
                        break;
                if (n != (ssize_t)sizeof(event) || !gateway_event_valid(&event))
                        continue;
                if (event.type == GATEWAY_READY) {
                        gateway->ready = true;
                        continue;
                }
                first = gateway_note(&gateway->denials, &event);
                if (fn)
                        fn(data, &event, first);
        }
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
                gateway->lost = true;
                gateway->control_fd = fd_close(gateway->control_fd);
        }
}

int gateway_command(const GatewayLink *gateway, const char *text, size_t length, int secrets_fd) {
        if (length > GATEWAY_COMMAND_MAX)
                return -EMSGSIZE;
        return send_with_fd(gateway->control_fd, text, length, secrets_fd, MSG_DONTWAIT) < 0
                       ? -errno
                       : 0;
}

/* If root has started it, holt may have another uid by now and cannot kill it. It ends by itself
 * when its socket is closed. A gateway that has served nothing yet has no events to wait for. */
void gateway_stop(GatewayLink *gateway, GatewayFn fn, void *data) {
        struct pollfd end = { .fd = gateway->control_fd, .events = POLLIN };
        const bool lost = gateway->lost;
        bool wait;

        if (gateway->control_fd >= 0)
                (void)shutdown(gateway->control_fd, SHUT_WR);
        gateway_read(gateway, fn, data);
        wait = gateway->ready || gateway->pid <= 0 || kill(gateway->pid, 0) < 0;
        while (wait && gateway->control_fd >= 0 && poll(&end, 1, STOP_TIME) > 0)
                gateway_read(gateway, fn, data);
        gateway->lost = lost;
        gateway->control_fd = fd_close(gateway->control_fd);
        if (gateway->pid > 0) {
                const int options = kill(gateway->pid, SIGKILL) < 0 ? WNOHANG : 0;

                while (waitpid(gateway->pid, NULL, options) < 0 && errno == EINTR)
                        ;
                gateway->pid = 0;
        }
}

void gateway_clear(GatewayLink *gateway) {
        gateway->setup_fd = fd_close(gateway->setup_fd);
        gateway_stop(gateway, NULL, NULL);
        free(gateway->denials);
        *gateway = (GatewayLink)GATEWAY_CLOSED;
}

/* --- the result --- */

void gateway_denials_count(const GatewayDenials *denials, GatewayCounts *ret) {
        ret->count = denials ? denials->count : 0;
        for (unsigned i = 0; i < ret->count; i++)
                ret->items[i] = denials->items[i].count;
}

uint64_t gateway_denial_since(const GatewayDenials *denials, unsigned i,
                              const GatewayCounts *before) {
        const uint64_t earlier = before && i < before->count ? before->items[i] : 0;

        return denials->items[i].count > earlier ? denials->items[i].count - earlier : 0;
}

void gateway_denial_what(const GatewayDenial *denial, char ret[GATEWAY_WHAT_TEXT]) {
        const GatewayEvent *event = &denial->event;

        (void)snprintf(ret, GATEWAY_WHAT_TEXT, "%s %s%s%s", event->method, event->path,
                       event->route[0] ? " of the route " : "", event->route);
}

/* Why no grant can allow a request that was answered with this status. */
static const char *gateway_why_not(const GatewayEvent *event) {
        static const struct {
                unsigned status;
                const char *why;
        } rows[] = {
                { 400, "a correct request can pass" },
                { 401, "the token in place of the API key allows it" },
                { 404, "a request to a route of the policy can pass" },
                { 429, "later requests can pass, unless the route limits its bytes" },
        };

        if (event->type == GATEWAY_KEYLESS)
                return event->told[0]
                               ? "the route allows it, but the command of its credential failed; "
                                 "holt audit, or the messages of holt run, have its stderr"
                               : "the route allows it, but its credential is missing";
        if (event->type == GATEWAY_DOUBTED)
                return "the route allows it, so check the credential on the host";
        if (event->type != GATEWAY_REFUSED)
                return "the route allows it, but the service did not answer";
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (rows[i].status == event->status)
                        return rows[i].why;
        return "only a change of the route can allow it";
}

void gateway_denial_write(JsonWriter *w, const GatewayDenial *denial, uint64_t count) {
        char what[GATEWAY_WHAT_TEXT], answer[16];

        gateway_denial_what(denial, what);
        (void)snprintf(answer, sizeof(answer), "%u", denial->event.status);
        json_write_string(w, "layer", "route");
        json_write_string(w, "what", what);
        json_write_uint(w, "count", count);
        json_write_string(w, "answer", answer);
        json_write_null(w, "path");
        json_write_string(w, "reason", denial->event.reason);
        json_write_null(w, "grant");
        json_write_null(w, "policy");
        json_write_string(w, "why_not", gateway_why_not(&denial->event));
}

void gateway_denials_write(JsonWriter *w, const GatewayDenials *denials,
                           const GatewayCounts *before) {
        for (unsigned i = 0; denials && i < denials->count; i++) {
                const uint64_t count = gateway_denial_since(denials, i, before);

                if (count == 0)
                        continue;
                json_write_object(w, NULL);
                gateway_denial_write(w, &denials->items[i], count);
                json_write_end(w);
        }
}
