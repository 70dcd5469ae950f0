/* SPDX-License-Identifier: Apache-2.0 */
/* The start of holt-egress, in stages: settings, the maker, the host's resolver, the sockets,
 * confinement, service. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own-limits.h"
#include "base/strings.h"
#include "confine/confine.h"
#include "egress/connection.h"
#include "egress/egress.h"
#include "egress/grants.h"
#include "maker/listeners.h"
#include "maker/maker.h"
#include "egress/ports.h"
#include "egress/pump.h"
#include "egress/questions.h"
#include "egress/queue.h"
#include "egress/requests.h"
#include "egress/resolver.h"
#include "egress/serving.h"
#include "egress/upstream.h"

/* --- settings --- */

static int set_allow(Egress *egress, const char *value, Error *reterr) {
        const char *why = "";
        int r = net_rules_add(&egress->rules, value, &why);

        if (r == -ENOMEM)
                return error_oom(reterr);
        return r < 0 ? error_set(reterr, ERROR_PROTOCOL, 0, "rule \"%s\" %s", value, why) : 0;
}

static int set_mode(Egress *egress, const char *value, Error *reterr) {
        (void)reterr;
        egress->ports_only = streq(value, "none");
        return 0;
}

static int set_audit(Egress *egress, const char *value, Error *reterr) {
        (void)reterr;
        egress->audits = streq(value, "true");
        return 0;
}

static int set_sni(Egress *egress, const char *value, Error *reterr) {
        (void)reterr;
        egress->sni = streq(value, "required") ? SNI_REQUIRED : SNI_OPTIONAL;
        return 0;
}

static int set_proxy(Egress *egress, const char *value, Error *reterr) {
        (void)reterr;
        egress->proxy = streq(value, "true");
        return 0;
}

static int set_ask(Egress *egress, const char *value, Error *reterr) {
        return questions_set(egress, value) < 0 ? error_oom(reterr) : 0;
}

static int set_ask_time(Egress *egress, const char *value, Error *reterr) {
        (void)reterr;
        egress->ask_time = strtoull(value, NULL, 10);
        return 0;
}

/* A secret is read only after the maker has been forked. */
static const struct {
        const char *name;
        int (*set)(Egress *egress, const char *value, Error *reterr);
        bool secret;
} settings[] = {
        { "allow", set_allow, false },
        { "mode", set_mode, false },
        { "sni", set_sni, false },
        { "publish", ports_set_publish, false },
        { "import", ports_set_import, false },
        { "proxy", set_proxy, false },
        { "upstream", upstream_set, true },
        { "audit", set_audit, false },
        { EGRESS_ASK, set_ask, false },
        { EGRESS_ASK_TIME, set_ask_time, false },
};

static int egress_apply_setting(Egress *egress, bool secret, const char *name, const char *value,
                                Error *reterr) {
        for (size_t i = 0; i < ELEMENTSOF(settings); i++)
                if (streq(settings[i].name, name))
                        return settings[i].secret == secret ? settings[i].set(egress, value, reterr)
                                                            : 0;
        return error_set(reterr, ERROR_PROTOCOL, 0, "unknown setting \"%s\"", name);
}

static int egress_apply_settings(Egress *egress, bool secret, Error *reterr) {
        const char *data = egress->settings;
        const size_t length = egress->settings_length;
        int r = 0;

        for (size_t i = 0; r == 0 && i < length;) {
                const char *name = data + i, *value = name + strnlen(name, length - i) + 1;
                const size_t left = value < data + length ? (size_t)(data + length - value) : 0;

                if (strnlen(value, left) == left)
                        return error_set(reterr, ERROR_PROTOCOL, 0, "malformed settings");
                r = egress_apply_setting(egress, secret, name, value, reterr);
                i = (size_t)(value - data) + strlen(value) + 1;
        }
        return r;
}

/* Reads into memory that the maker does not get: it finds only zeros there. */
static int egress_read_settings(Egress *egress, Error *reterr) {
        char *data = mmap(NULL, EGRESS_SETTINGS_MAX, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ssize_t n;

        if (data == MAP_FAILED)
                return error_oom(reterr);
        if (madvise(data, EGRESS_SETTINGS_MAX, MADV_WIPEONFORK) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot protect the settings");
        n = recv(egress->control_fd, data, EGRESS_SETTINGS_MAX, 0);
        if (n <= 0)
                return error_set(reterr, ERROR_PROTOCOL, n < 0 ? errno : 0,
                                 "the settings did not arrive");
        egress->settings = data;
        egress->settings_length = (size_t)n;
        return egress_apply_settings(egress, false, reterr);
}

static int egress_read_secrets(Egress *egress, Error *reterr) {
        int r = egress_apply_settings(egress, true, reterr);

        (void)munmap(TAKE_PTR(egress->settings), EGRESS_SETTINGS_MAX);
        return r;
}

/* --- stages --- */

/* Until the settings come, this process keeps the namespace. A namespace that stays in the socket
 * would count against the number of descriptors that all sockets of a user may hold (unix(7)). */
static int egress_take_network(Egress *egress, Error *reterr) {
        int r = egress->later ? maker_receive_network(EGRESS_SETUP_FD, &egress->network_fd) : 0;

        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "the sandbox has no network") : 0;
}

static int egress_fork_maker(Egress *egress, Error *reterr) {
        const NetPort *imports;
        const size_t count = ports_imports(egress, &imports);
        int r = net_plan_make(&egress->rules, imports, count, &egress->plan);

        if (r == 0 && egress->proxy)
                r = net_plan_add_proxy(&egress->plan, &egress->rules);
        egress->plan.ports_only = egress->ports_only;
        if (r == -E2BIG)
                return error_set(reterr, ERROR_POLICY, 0, "more than %d ports are imported",
                                 NET_LISTENERS_MAX);
        if (r < 0)
                return error_oom(reterr);
        r = maker_fork(&egress->plan, EGRESS_SETUP_FD, egress->network_fd, &egress->maker_fd,
                       reterr);
        egress->network_fd = fd_close(egress->network_fd);
        return r;
}

static int egress_make_loop(Egress *egress, Error *reterr) {
        open_files_raise();
        egress->pipes = pipes_new();
        return egress->pipes ? loop_new(&egress->loop, reterr) : error_oom(reterr);
}

/* The numbers of the exact names must be those of the maker's plan. */
static int egress_number_names(Egress *egress, Error *reterr) {
        const NetPlan *plan = &egress->plan;
        int r = names_new(egress->loop, &egress->names, reterr);

        for (size_t i = 0; r == 0 && i < plan->names_count; i++)
                if (names_add(egress->names, plan->names[i]) != (int)i)
                        r = error_oom(reterr);
        return r;
}

/* Makes the error if the kernel cannot redirect ports. It names the rule with the most ports. */
static int egress_refuse_redirects(const Egress *egress, Error *reterr) {
        const NetRule *most = &egress->rules.items[0];
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < egress->rules.count; i++)
                if (egress->rules.items[i].last - egress->rules.items[i].first >
                    most->last - most->first)
                        most = &egress->rules.items[i];
        text = net_rule_text(most);
        return error_set(
                reterr, ERROR_POLICY, 0,
                "rule \"%.60s\" has too many ports: this kernel cannot redirect ports "
                "(nf_tables with tproxy), so all rules together can have %d listeners, one "
                "for each port",
                text ? text : "", NET_LISTENERS_MAX);
}

static int egress_check_ready(const Egress *egress, Made *made, Error *reterr) {
        made->ready.text[sizeof(made->ready.text) - 1] = '\0';
        if (made->ready.errnum == E2BIG)
                return egress_refuse_redirects(egress, reterr);
        return made->ready.errnum ? error_set(reterr, ERROR_SETUP, made->ready.errnum, "cannot %s",
                                              made->ready.text)
                                  : 0;
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
                        return egress_check_ready(egress, &made, reterr);
                }
                if (made.kind == MADE_RESOLVER_UDP)
                        udp_fd = fd;
                else if (made.kind == MADE_RESOLVER_TCP)
                        r = resolver_new(egress, udp_fd, fd, reterr);
                else if (made.kind == MADE_QUEUE)
                        r = queue_new(egress, fd, reterr);
                else if (made.kind == MADE_ICMP)
                        queue_send_errors(egress, fd);
                else
                        r = serving_add(egress, &(ListenerPlan){ made.address, made.port }, fd,
                                        reterr);
        }
        return r;
}

/* Without memory, nobody is asked. */
static void command_ask(Egress *egress, const char *value) {
        (void)questions_set(egress, value);
}

/* Commands that come while the process serves. The first five send replies. */
static const struct {
        const char *name;
        void (*run)(Egress *egress, const char *value);
} commands[] = {
        { "publish", ports_publish },
        { "unpublish", ports_unpublish },
        { "grant", grants_add },
        { "grant-once", grants_add_once },
        { EGRESS_DECIDE, grants_decide },
        { EGRESS_ASK, command_ask },
        { EGRESS_ANSWER, questions_answer },
};

/* Reads one command: its name and its value. Returns false if it is malformed. */
static bool egress_run_command(Egress *egress, const char *data, size_t length) {
        const size_t name = strnlen(data, length) + 1;

        if (name >= length || data[length - 1] != '\0')
                return false;
        for (size_t i = 0; i < ELEMENTSOF(commands); i++)
                if (streq(commands[i].name, data)) {
                        commands[i].run(egress, data + name);
                        return true;
                }
        return false;
}

/* holt ends the process by closing its socket, for which the loop must not wake up again. */
static void egress_on_control(void *data, uint32_t events) {
        static char message[EGRESS_COMMAND_MAX];
        Egress *egress = data;
        ssize_t n = recv(egress->control_fd, message, sizeof(message), MSG_DONTWAIT);

        (void)events;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0 && egress_run_command(egress, message, (size_t)n))
                return;
        egress->control_watch = loop_unwatch(egress->control_watch);
        if (n > 0)
                loop_stop(egress->loop);
        else
                egress_leave(egress);
}

static int egress_watch_control(Egress *egress, Error *reterr) {
        return loop_watch(egress->loop, egress->control_fd, EPOLLIN, egress_on_control, egress,
                          &egress->control_watch, reterr);
}

static int egress_confine(Egress *egress, Error *reterr) {
        (void)egress;
        return confine_egress(reterr);
}

static int (*const stages[])(Egress *egress, Error *reterr) = {
        egress_take_network, egress_read_settings,  egress_fork_maker,    egress_read_secrets,
        egress_make_loop,    egress_accept_prepare, ports_open,           egress_number_names,
        egress_receive,      requests_new,          egress_watch_control, egress_confine,
};

/* --- the end of the start --- */

/* Tells the child of the launch that it can go on, or why not. */
static void egress_tell(const Error *error) {
        EgressReady ready = { 0 };

        if (error) {
                ready.errnum = error->errnum ? error->errnum : EINVAL;
                (void)snprintf(ready.text, sizeof(ready.text), "%.230s", error->text);
        }
        (void)send(EGRESS_SETUP_FD, &ready, sizeof(ready), MSG_NOSIGNAL);
        (void)close(EGRESS_SETUP_FD);
}

static void egress_tell_holt(Egress *egress) {
        const EgressEvent event = { .type = EGRESS_STARTED,
                                    .level = egress->queue ? EGRESS_LEVEL_TRUE
                                                           : EGRESS_LEVEL_RESET };

        egress_send(egress, &event);
}

static void ignore_signals(void) {
        static const int signals[] = { SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE, SIGTSTP };

        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void)signal(signals[i], SIG_IGN);
}

/* Closes descriptors that holt's own caller leaked, and leaves the caller's directory, because the
 * caller may want to unmount its file system. */
static void leave_the_callers_things(void) {
        closefrom(EGRESS_SETUP_FD + 1);
        if (chdir("/") < 0)
                _exit(125);
}

int main(int argc, char **argv) {
        static Egress egress = { .control_fd = EGRESS_CONTROL_FD,
                                 .maker_fd = FD_NONE,
                                 .network_fd = FD_NONE,
                                 .spare_fd = FD_NONE };
        Error error;
        int r;

        if (fcntl(EGRESS_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0 ||
            fcntl(EGRESS_SETUP_FD, F_SETFD, FD_CLOEXEC) < 0) {
                fprintf(stderr,
                        "holt-egress: holt itself starts this program: use holt run --net\n");
                return 125;
        }
        egress.later = argc == 2 && streq(argv[1], EGRESS_LATER);
        ignore_signals();
        leave_the_callers_things();
        r = RUN_STEPS(stages, &egress, &error);
        egress_tell(r < 0 ? &error : NULL);
        if (r == 0)
                egress_tell_holt(&egress);
        if (r == 0)
                (void)loop_run(egress.loop);
        maker_end(egress.maker_fd);
        return r < 0;
}
