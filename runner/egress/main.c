/* SPDX-License-Identifier: Apache-2.0 */
/* The start of holt-egress, in stages: settings, the maker, the host's resolver, the sockets,
 * confinement, service. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/own-limits.h"
#include "base/strings.h"
#include "egress/confine.h"
#include "egress/connection.h"
#include "egress/egress.h"
#include "egress/listeners.h"
#include "egress/maker.h"
#include "egress/pump.h"
#include "egress/resolver.h"

enum { ACCEPT_TURN = 64 }; /* Connections until others have their turn. */

/* --- settings --- */

static int set_allow(Egress *egress, const char *value, Error *reterr) {
        const char *why = "";
        int r = net_rules_add(&egress->rules, value, &why);

        if (r == -ENOMEM)
                return error_oom(reterr);
        return r < 0 ? error_set(reterr, ERROR_PROTOCOL, 0, "rule \"%s\" %s", value, why) : 0;
}

static int set_sni(Egress *egress, const char *value, Error *reterr) {
        (void)reterr;
        egress->sni = streq(value, "required") ? SNI_REQUIRED : SNI_OPTIONAL;
        return 0;
}

static const struct {
        const char *name;
        int (*set)(Egress *egress, const char *value, Error *reterr);
} settings[] = {
        { "allow", set_allow },
        { "sni", set_sni },
};

static int egress_apply_setting(Egress *egress, const char *name, const char *value,
                                Error *reterr) {
        for (size_t i = 0; i < ELEMENTSOF(settings); i++)
                if (streq(settings[i].name, name))
                        return settings[i].set(egress, value, reterr);
        return error_set(reterr, ERROR_PROTOCOL, 0, "unknown setting \"%s\"", name);
}

static int egress_apply_settings(Egress *egress, const char *data, size_t length, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < length;) {
                const char *name = data + i, *value = name + strnlen(name, length - i) + 1;
                const size_t left = value < data + length ? (size_t)(data + length - value) : 0;

                if (strnlen(value, left) == left)
                        return error_set(reterr, ERROR_PROTOCOL, 0, "malformed settings");
                r = egress_apply_setting(egress, name, value, reterr);
                i = (size_t)(value - data) + strlen(value) + 1;
        }
        return r;
}

static int egress_read_settings(Egress *egress, Error *reterr) {
        static char data[EGRESS_SETTINGS_MAX];
        ssize_t n = recv(egress->control_fd, data, sizeof(data), 0);

        if (n <= 0)
                return error_set(reterr, ERROR_PROTOCOL, n < 0 ? errno : 0,
                                 "no settings have come");
        return egress_apply_settings(egress, data, (size_t)n, reterr);
}

/* --- stages --- */

static int egress_fork_maker(Egress *egress, Error *reterr) {
        return maker_fork(&egress->rules, EGRESS_SETUP_FD, &egress->maker_fd, reterr);
}

/* The numbers of the exact names must be those of the maker's plan. */
static int egress_number_names(Egress *egress, Error *reterr) {
        NetPlan plan;
        int r = net_plan_make(&egress->rules, &plan);

        for (size_t i = 0; r == 0 && i < plan.names_count; i++)
                r = names_add(egress->names, plan.names[i]) == (int)i ? 0 : -ENOMEM;
        if (r == 0)
                net_plan_clear(&plan);
        return r < 0 ? error_oom(reterr) : 0;
}

static int egress_prepare(Egress *egress, Error *reterr) {
        int r = loop_new(&egress->loop, reterr);

        open_files_raise();
        egress->pipes = pipes_new();
        if (r == 0 && !egress->pipes)
                r = error_oom(reterr);
        if (r == 0)
                r = names_new(egress->loop, &egress->names, reterr);
        return r == 0 ? egress_number_names(egress, reterr) : r;
}

typedef struct Listener {
        Egress *egress;
        int fd;
        LoopWatch *watch;
} Listener;

static void listener_on_event(void *data, uint32_t events) {
        const Listener *listener = data;

        (void)events;
        for (int i = 0; i < ACCEPT_TURN; i++) {
                int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd < 0)
                        return;
                connection_accept(listener->egress, fd);
        }
}

static int listener_add(Egress *egress, int fd, Error *reterr) {
        Listener *listener = calloc(1, sizeof(*listener));

        if (!listener)
                return error_oom(reterr);
        *listener = (Listener){ .egress = egress, .fd = fd };
        return loop_watch(egress->loop, fd, EPOLLIN, listener_on_event, listener, &listener->watch,
                          reterr);
}

/* Receives the maker's sockets. */
static int egress_receive(Egress *egress, Error *reterr) {
        int udp_fd = FD_NONE, r = 0;

        while (r == 0) {
                Made made;
                int fd;

                r = maker_receive(egress->maker_fd, &made, &fd);
                if (r < 0)
                        return error_set(reterr, ERROR_SETUP, -r,
                                         "the sandbox's network was not made");
                if (made.kind == MADE_READY) {
                        egress->has6 = made.has6;
                        made.ready.text[sizeof(made.ready.text) - 1] = '\0';
                        return made.ready.errnum ? error_set(reterr, ERROR_SETUP, made.ready.errnum,
                                                             "cannot %s", made.ready.text)
                                                 : 0;
                }
                if (made.kind == MADE_RESOLVER_UDP)
                        udp_fd = fd;
                else if (made.kind == MADE_RESOLVER_TCP)
                        r = resolver_new(egress, udp_fd, fd, reterr);
                else
                        r = listener_add(egress, fd, reterr);
        }
        return r;
}

/* holt ends the process by closing its socket. */
static void egress_on_control(void *data, uint32_t events) {
        Egress *egress = data;
        char byte;

        (void)events;
        if (recv(egress->control_fd, &byte, 1, MSG_DONTWAIT) <= 0)
                loop_stop(egress->loop);
}

static int egress_watch_control(Egress *egress, Error *reterr) {
        LoopWatch *watch;

        return loop_watch(egress->loop, egress->control_fd, EPOLLIN, egress_on_control, egress,
                          &watch, reterr);
}

static int egress_confine(Egress *egress, Error *reterr) {
        (void)egress;
        return confine_egress(reterr);
}

static int (*const stages[])(Egress *egress, Error *reterr) = {
        egress_read_settings, egress_fork_maker,    egress_prepare,
        egress_receive,       egress_watch_control, egress_confine,
};

/* --- the end of the start --- */

/* Tells the child of the launch that it can go on, or why not. */
static void egress_tell(const Error *error) {
        EgressReady ready = { 0 };

        if (error) {
                ready.errnum = error->errnum ? error->errnum : EINVAL;
                (void)snprintf(ready.text, sizeof(ready.text), "%.200s", error->text);
        }
        (void)send(EGRESS_SETUP_FD, &ready, sizeof(ready), MSG_NOSIGNAL);
        (void)close(EGRESS_SETUP_FD);
}

static void ignore_signals(void) {
        static const int signals[] = { SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE, SIGTSTP };

        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void)signal(signals[i], SIG_IGN);
}

int main(void) {
        static Egress egress = { .control_fd = EGRESS_CONTROL_FD, .maker_fd = FD_NONE };
        Error error;
        int r;

        if (fcntl(EGRESS_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0 ||
            fcntl(EGRESS_SETUP_FD, F_SETFD, FD_CLOEXEC) < 0) {
                fprintf(stderr,
                        "holt-egress: holt itself starts this program: use holt run --net\n");
                return 125;
        }
        ignore_signals();
        r = RUN_STEPS(stages, &egress, &error);
        egress_tell(r < 0 ? &error : NULL);
        if (r == 0)
                (void)loop_run(egress.loop);
        maker_end(egress.maker_fd);
        return r < 0;
}
