/* SPDX-License-Identifier: Apache-2.0 */
#include "network/network.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/programs.h"
#include "base/strings.h"
#include "base/wait.h"
#include "network/spawn.h"

enum {
        /* Milliseconds without an event, after which no more events are expected. holt-egress may
         * pass on bytes for LEAVE_TIME (egress/leave.c). */
        STOP_TIME = HOLT_WAIT(3500),
        STOP_TURNS = 64, /* Calls of network_read() at the end, at most. */
        READ_TURN = 512, /* Events that one call reads, at most: more than the socket holds. */
};

/* --- the settings --- */

typedef struct NetSettings {
        char data[EGRESS_SETTINGS_MAX];
        size_t length;
} NetSettings;

static int net_settings_add(NetSettings *settings, const char *name, const char *value,
                            Error *reterr) {
        const size_t size = strlen(name) + strlen(value) + 2;

        if (size > sizeof(settings->data) - settings->length)
                return error_set(reterr, ERROR_POLICY, 0,
                                 "network.allow: the rules are too long together");
        memcpy(settings->data + settings->length, name, strlen(name) + 1);
        memcpy(settings->data + settings->length + strlen(name) + 1, value, strlen(value) + 1);
        settings->length += size;
        return 0;
}

static int net_settings_add_all(NetSettings *settings, const LaunchPlan *plan, Error *reterr) {
        const char *ask = plan->net_asked ? EGRESS_ASK_YES : EGRESS_ASK_NOBODY;
        char time[24];
        const struct {
                const char *name, *value; /* without a value, the pair is left out */
        } words[] = {
                { "sni", plan->net_sni ? "required" : "optional" },
                { "mode", plan->network == NETWORK_ALLOW ? "allow" : "none" },
                { "proxy", plan->net_proxy ? "true" : NULL },
                { "upstream", plan->net_upstream },
                { EGRESS_ASK_TIME, time },
                { EGRESS_ASK, plan->net_ask ? ask : NULL },
                /* Only a session writes down the connections that were allowed. */
                { "audit", plan->root.source ? "true" : NULL },
        };
        const struct {
                const char *name;
                const StrList *values;
        } lists[] = {
                { "allow", &plan->net_allow },
                { "publish", &plan->net_publish },
                { "import", &plan->net_import },
        };
        int r = 0;

        (void)snprintf(time, sizeof(time), "%" PRIu64, plan->net_ask_timeout);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(words); i++)
                if (words[i].value)
                        r = net_settings_add(settings, words[i].name, words[i].value, reterr);
        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                for (size_t k = 0; r == 0 && k < lists[i].values->count; k++)
                        r = net_settings_add(settings, lists[i].name, lists[i].values->items[k],
                                             reterr);
        return r;
}

static int net_settings_send(const LaunchPlan *plan, int fd, Error *reterr) {
        _cleanup_free_ NetSettings *settings = calloc(1, sizeof(*settings));
        int r = settings ? net_settings_add_all(settings, plan, reterr) : error_oom(reterr);

        if (r == 0 && send(fd, settings->data, settings->length, MSG_NOSIGNAL) < 0)
                r = error_set(reterr, ERROR_SETUP, errno, "cannot send the network's settings");
        return r;
}

/* --- published ports --- */

/* Waits for one reply. */
static int network_await_port(Network *network, Error *reterr) {
        struct pollfd reply = { .fd = network->control_fd, .events = POLLIN };
        EgressEvent event;
        char automatic[32];
        ssize_t n = -1;

        if (poll(&reply, 1, EGRESS_SETUP_TIME * 1000) == 1)
                n = recv(network->control_fd, &event, sizeof(event), MSG_DONTWAIT);
        if (n != (ssize_t)sizeof(event) || !net_event_valid(&event) ||
            event.type != EGRESS_PUBLISHED)
                return error_set(reterr, ERROR_SETUP, n == 0 ? EPIPE : ETIMEDOUT,
                                 "cannot reach holt-egress");
        (void)snprintf(automatic, sizeof(automatic), "--publish 0:%u", event.inside);
        if (event.errnum)
                return net_published_refuse(&event, automatic, reterr);
        return net_published_note(&network->published, &event) < 0 ? error_oom(reterr) : 0;
}

/* Waits for the result of each port, so that holt reports a conflict before the command starts. */
static int network_await_ports(const LaunchPlan *plan, Network *network, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < plan->net_publish.count; i++)
                r = network_await_port(network, reterr);
        return r;
}

/* --- the process --- */

/* The process gets no environment. */
static int egress_spawn(int control_fd, int setup_fd, bool later, pid_t *ret, Error *reterr) {
        static char name[] = "holt-egress", word[] = EGRESS_LATER;
        char *argv[] = { name, later ? word : NULL, NULL }, *env[] = { NULL };
        const SpawnProgram program = { .paths = programs_egress,
                                       .paths_count = ELEMENTSOF(programs_egress),
                                       .argv = argv,
                                       .env = env,
                                       .fds = { control_fd, setup_fd } };
        int r = spawn_beside(&program, ret);

        if (r == 0)
                return 0;
        r = error_set(reterr, ERROR_SETUP, -r,
                      "cannot execute " HOLT_LIBEXEC "/holt-egress, which a network needs");
        return error_cure(reterr, r, "Install holt completely: meson install -C build");
}

bool network_needed(const LaunchPlan *plan) {
        return plan->network == NETWORK_ALLOW ||
               (plan->network == NETWORK_NONE &&
                (plan->net_publish.count > 0 || plan->net_import.count > 0));
}

static int network_spawn(Network *ret, bool later, Error *reterr) {
        int control[2] = { FD_NONE, FD_NONE }, setup[2] = { FD_NONE, FD_NONE };
        int r = spawn_socketpair(control, EGRESS_SETTINGS_MAX);

        if (r == 0)
                r = spawn_socketpair(setup, 0);
        *ret = (Network)NETWORK_CLOSED;
        ret->control_fd = control[0];
        ret->setup_fd = setup[0];
        ret->waits = later;
        if (r < 0)
                r = error_set(reterr, ERROR_SETUP, -r, "cannot make a socket pair");
        if (r == 0)
                r = egress_spawn(control[1], setup[1], later, &ret->pid, reterr);
        fd_close(control[1]);
        fd_close(setup[1]);
        if (r < 0)
                network_clear(ret);
        return r;
}

/* Keeps the rules of the project's file, because no option can allow a host that they leave out. */
static int network_take_project(const LaunchPlan *plan, Network *network, Error *reterr) {
        const char *ignored;
        int r = 0;

        network->narrowed = plan->net_narrowed;
        for (size_t i = 0; r == 0 && i < plan->net_project.count; i++)
                r = net_rules_add(&network->project, plan->net_project.items[i], &ignored);
        return r < 0 ? error_oom(reterr) : 0;
}

int network_start_early(Network *ret, Error *reterr) {
        return network_spawn(ret, false, reterr);
}

int network_start(const LaunchPlan *plan, Network *network, Error *reterr) {
        int r = network->control_fd < 0 ? network_spawn(network, false, reterr) : 0;

        if (r < 0)
                return r;
        r = network_take_project(plan, network, reterr);
        if (r == 0)
                r = net_settings_send(plan, network->control_fd, reterr);
        if (r == 0)
                r = network_await_ports(plan, network, reterr);
        if (r < 0)
                network_clear(network);
        return r;
}

int network_start_later(Network *ret, Error *reterr) {
        return network_spawn(ret, true, reterr);
}

void network_started(Network *network) {
        network->setup_fd = fd_close(network->setup_fd);
}

/* --- events --- */

void network_read(Network *network, NetworkFn fn, void *data) {
        const NetDenial *first;
        EgressEvent event;
        ssize_t n = 1;

        if (network->control_fd < 0)
                return;
        /* Programs inside may cause events as fast as holt reads them, so one call has a limit. */
        for (int i = 0; i < READ_TURN; i++) {
                n = recv(network->control_fd, &event, sizeof(event), MSG_DONTWAIT);
                if (n <= 0)
                        break;
                if (n != (ssize_t)sizeof(event) || !net_event_valid(&event))
                        continue;
                (void)net_published_note(&network->published, &event);
                if (event.type == EGRESS_STARTED)
                        network->level = event.level;
                first = net_denials_note(&network->denials, &event,
                                         network->narrowed ? &network->project : NULL);
                if (fn)
                        fn(data, &event, first);
        }
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
                network->lost = true;
                network->control_fd = fd_close(network->control_fd);
        }
}

void network_end(Network *network) {
        if (network->control_fd >= 0)
                (void)shutdown(network->control_fd, SHUT_WR);
}

void network_stop(Network *network, NetworkFn fn, void *data) {
        struct pollfd end = { .fd = network->control_fd, .events = POLLIN };
        const bool lost = network->lost;

        network_end(network);
        for (int i = 0; i < STOP_TURNS && network->control_fd >= 0 && poll(&end, 1, STOP_TIME) > 0;
             i++)
                network_read(network, fn, data);
        network->lost = lost;
        network->control_fd = fd_close(network->control_fd);
        if (network->pid > 0) {
                (void)kill(network->pid, SIGKILL);
                while (waitpid(network->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
                network->pid = 0;
        }
}

void network_clear(Network *network) {
        /* Its end wakes the maker, and then holt-egress, if they still wait for the namespace. */
        network->setup_fd = fd_close(network->setup_fd);
        network_stop(network, NULL, NULL);
        fd_close(network->control_fd);
        free(network->denials);
        net_rules_clear(&network->project);
        net_published_clear(&network->published);
        *network = (Network)NETWORK_CLOSED;
}

/* --- commands --- */

/* Sends a waiting holt-egress settings without rules and ports, so that it serves commands. */
static int network_wake(Network *network) {
        static const char settings[] = "mode\0none\0audit\0true";

        if (send(network->control_fd, settings, sizeof(settings), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                return -errno;
        network->waits = false;
        return 0;
}

int network_command(Network *network, const char *name, const char *value) {
        int r;
        char message[EGRESS_COMMAND_MAX];
        const size_t name_size = strlen(name) + 1, value_size = strlen(value) + 1;

        if (network->control_fd < 0)
                return -ENOTCONN;
        if (name_size + value_size > sizeof(message))
                return -EMSGSIZE;
        r = network->waits ? network_wake(network) : 0;
        if (r < 0)
                return r;
        memcpy(message, name, name_size);
        memcpy(message + name_size, value, value_size);
        return send(network->control_fd, message, name_size + value_size,
                    MSG_NOSIGNAL | MSG_DONTWAIT) < 0
                       ? -errno
                       : 0;
}

void network_decide(Network *network, bool keep) {
        if (network_command(network, EGRESS_DECIDE, keep ? EGRESS_KEEP : EGRESS_DROP) < 0)
                network_end(network);
}
