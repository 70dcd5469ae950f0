/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exec-result.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/git-hint.h"
#include "cli/moved.h"
#include "cli/network-hint.h"
#include "cli/report.h"
#include "cli/report-net.h"
#include "outcome/result.h"
#include "policy/network-fields.h"
#include "policy/policy.h"
#include "session/directory.h"

int exec_result_code(const ExecResult *result) {
        uint64_t code = 125;

        if (result->error)
                return error_exit_code(result->error);
        if (result->lost)
                return 128 + SIGKILL;
        (void)json_uint(json_member(result->result, "exit_code"), 255, &code);
        /* The command does not notice that its last bytes were lost. */
        if (code == 0 && result->result && json_member_text(result->result, "stream_error")[0])
                return 125;
        return (int)code;
}

/* --- for people --- */

/* key: "network_lost" or "routes_lost". */
static bool exec_result_lost(const JsonValue *result, const char *key) {
        bool lost = false;

        (void)json_bool(json_member(result, key), &lost);
        return lost;
}

void exec_result_tell_time_over(const JsonValue *result, uint64_t asked) {
        const uint64_t timeout = json_member_uint(result, "timeout_us");
        bool project = false;

        (void)json_bool(json_member(result, "timeout_by_project"), &project);
        report_timeout(timeout,
                       timeout == asked ? "--timeout"
                       : project        ? "the project's .holt.json; change it there"
                                        : "the session's policy; holt create --timeout sets it",
                       stderr);
}

static void exec_result_tell_timeout(const ExecResult *result) {
        if (!result->command)
                report_timeout(json_member_uint(result->result, "timeout_us"),
                               "--timeout of the call, or the session's policy", stderr);
        else
                exec_result_tell_time_over(result->result, result->timeout);
}

static bool exec_result_has_net_denial(const JsonValue *result) {
        const JsonValue *denials = json_member(result, "denials");

        if (json_member(result, "unreached"))
                return true;
        for (const JsonValue *d = json_first(denials); d; d = json_next(d))
                if (streq(json_member_text(d, "layer"), "network"))
                        return true;
        return false;
}

void exec_result_tell_lost(const char *session, const JsonValue *result) {
        if (exec_result_lost(result, "network_lost"))
                report_lost(session, "network", "holt-egress", stderr);
        if (exec_result_lost(result, "routes_lost"))
                report_lost(session, "routes", "holt-gateway", stderr);
}

static unsigned network_mode_of(const JsonValue *network) {
        unsigned mode = NETWORK_NONE;

        while (network_modes[mode + 1] &&
               !streq(network_modes[mode], json_member_text(network, "mode")))
                mode++;
        return mode;
}

static int exec_result_add_ports(const JsonValue *ports, StrList *ret) {
        int r = 0;

        for (const JsonValue *p = json_first(ports); r == 0 && p; p = json_next(p))
                r = strlist_add(ret, json_string(p));
        return r;
}

void exec_result_tell_network(const JsonValue *result, const JsonValue *show, const char *text,
                              size_t length) {
        const JsonValue *network = show ? json_member(show, "network") : NULL;
        _cleanup_(strlist_clear) StrList publish = { 0 }, import = { 0 }, routes = { 0 };

        for (const JsonValue *route = json_first(json_member(show, "routes")); route;
             route = json_next(route)) {
                char *item = str_format("%s %s", json_member_text(route, "name"),
                                        json_member_text(route, "upstream"));

                if (item)
                        (void)strlist_take(&routes, item);
        }
        if (network && exec_result_add_ports(json_member(network, "publish"), &publish) == 0 &&
            exec_result_add_ports(json_member(network, "import"), &import) == 0)
                network_hint_print(
                        &(const NetworkHint){ .mode = network_mode_of(network),
                                              .session = json_member_text(show, "name"),
                                              .text = text,
                                              .length = length,
                                              .publish = &publish,
                                              .import = &import,
                                              .routes = &routes,
                                              .told = exec_result_has_net_denial(result) },
                        stderr);
}

/* A live session can get the rule by holt allow, so this names no option of holt create. */
static void exec_result_tell_net_denial(const char *session, const JsonValue *denial) {
        static const char option[] = "--net"; /* and a space or "=" */
        const char *grant = json_member_text(denial, "grant");
        char who[SESSION_NAME_MAX + 32];

        (void)snprintf(who, sizeof(who), "holt allow %s net:", session);
        if (strncmp(grant, option, strlen(option)) == 0)
                grant += strlen(option) + 1;
        report_net_denial(json_member_text(denial, "what"), json_member_uint(denial, "count"),
                          json_member_text(denial, "answer"), json_member_text(denial, "reason"),
                          grant, json_member_text(denial, "why_not"), who, stderr);
}

/* Returns whether it has named an option of holt create. */
static bool exec_result_tell_denials(const char *session, const JsonValue *result) {
        const JsonValue *denials = json_member(result, "denials");
        unsigned refused = 0;
        bool option = false;

        for (const JsonValue *d = json_first(denials); d; d = json_next(d)) {
                const char *why_not = json_member_text(d, "why_not");

                if (streq(json_member_text(d, "layer"), "network")) {
                        exec_result_tell_net_denial(session, d);
                        continue;
                }
                if (streq(json_member_text(d, "layer"), "route")) {
                        report_gateway_denial(json_member_text(d, "what"),
                                              json_member_uint(d, "count"),
                                              json_member_text(d, "answer"),
                                              json_member_text(d, "reason"), stderr);
                        continue;
                }
                option |= json_member_text(d, "grant")[0] ||
                          (!json_member_text(d, "path")[0] && !why_not[0]);
                if (json_member_text(d, "path")[0]) {
                        if (refused++ < REPORT_REFUSALS_MAX)
                                report_refusal(
                                        json_member_text(d, "path"), json_member_text(d, "answer"),
                                        json_member_text(d, "reason"), json_member_text(d, "grant"),
                                        why_not, "holt create ", stderr);
                        continue;
                }
                report_denial(json_member_text(d, "what"), json_member_uint(d, "count"),
                              json_member_text(d, "answer"), why_not[0] ? why_not : NULL,
                              "holt create ", stderr);
        }
        return option;
}

/* Returns whether it has named an option of holt create. */
static bool exec_result_tell_limits(const JsonValue *result) {
        const JsonValue *limits = json_member(result, "limits_hit");
        bool option = false;

        for (const JsonValue *l = json_first(limits); l; l = json_next(l)) {
                const char *field = json_member_text(l, "field");
                const char *why_not = json_member_text(l, "why_not");
                bool certain = false;
                const LimitText limit = {
                        .name = json_member_text(l, "limit"),
                        .field = policy_field(field) ? field : NULL,
                        .option = json_member_text(l, "option"),
                        .reason = json_member_text(l, "reason"),
                        .why_not = why_not[0] ? why_not : NULL,
                        .value = json_member_uint(l, "value"),
                        .certain = json_bool(json_member(l, "certain"), &certain) == 0 && certain
                };

                option |= limit.option && limit.option[0];
                report_limit(&limit, "holt create ", stderr);
        }
        return option;
}

static void exec_result_tell_unreached(const JsonValue *result) {
        const JsonValue *hosts = json_member(result, "unreached");

        for (const JsonValue *h = json_first(hosts); h; h = json_next(h))
                report_net_failure(json_member_text(h, "what"), json_member_text(h, "answer"),
                                   json_member_text(h, "reason"), stderr);
        report_net_omitted(json_member_uint(result, "denials_omitted"), stderr);
}

/* Returns whether it has named an option of holt create. */
static bool exec_result_tell_reasons(const char *session, const JsonValue *const results[2]) {
        bool option = false;

        for (size_t i = 0; i < 2; i++)
                option |= exec_result_tell_limits(results[i]);
        for (size_t i = 0; i < 2; i++)
                option |= exec_result_tell_denials(session, results[i]);
        exec_result_tell_unreached(results[0]);
        return option;
}

static void exec_result_tell_fixed(const char *session) {
        (void)fprintf(
                stderr,
                "  The mounts and limits of session \"%s\" are fixed when it is created; only "
                "holt tier changes its size.\n  Create another session with the option, and "
                "copy what you need with holt cp and holt kv.\n  holt rm %s would delete its "
                "files and keys.\n",
                session, session);
}

void exec_result_tell_refused(const char *session, const JsonValue *const results[2]) {
        if (exec_result_tell_reasons(session, results))
                exec_result_tell_fixed(session);
}

static bool exec_result_set_aside(const JsonValue *result) {
        const JsonValue *names = json_member(result, "set_aside");

        return names && json_first(names);
}

void exec_result_tell_replaced(const JsonValue *result) {
        if (json_member_text(result, "replaced")[0])
                report_replaced("the session", json_member_text(result, "replaced"),
                                exec_result_set_aside(result), stderr);
        if (json_member_text(result, "stopped_for")[0])
                report_stopped_for(json_member_text(result, "stopped_for"), stderr);
}

bool exec_result_needs_show(const JsonValue *result) {
        const JsonValue *still = json_member(result, "still_aside");

        return exec_result_set_aside(result) || (still && json_first(still)) ||
               json_member_uint(result, "exit_code") == GIT_FATAL;
}

static void exec_result_read_names(const JsonValue *names, StrList *ret) {
        for (const JsonValue *n = json_first(names); n; n = json_next(n))
                if (json_string(n))
                        (void)strlist_add(ret, json_string(n));
}

void exec_result_tell_set_aside(const JsonValue *result, const JsonValue *show) {
        const char *workspace = show ? json_member_text(show, "workspace") : "";
        const char *name = show ? json_member_text(show, "name") : "";
        _cleanup_(strlist_clear) StrList moved = { 0 }, still = { 0 };

        MovedFrom from = { .workspace = workspace[0] ? workspace : NULL,
                           .session = name[0] ? name : NULL };

        exec_result_read_names(json_member(result, "set_aside"), &moved);
        from.why = json_member_text(result, "replaced")[0] ? MOVED_REPLACED : MOVED_MADE;
        moved_report(&moved, &from, stderr);
        exec_result_read_names(json_member(result, "still_aside"), &still);
        from.why = MOVED_STILL;
        moved_report(&still, &from, stderr);
        if (json_member_text(result, "unguarded")[0])
                (void)fprintf(stderr,
                              "holt: a file at a protected path was left there: %s\n  Look at it "
                              "before git or a similar program runs there on the host.\n",
                              json_member_text(result, "unguarded"));
}

static uint64_t exec_result_dropped(const JsonValue *result) {
        return json_member_uint(result, "stdout_dropped") +
               json_member_uint(result, "stderr_dropped");
}

/* Prints hints for git, if the command is known. Returns whether it has named an option. */
static bool exec_result_tell_git(const ExecResult *result) {
        const char *workspace = result->show ? json_member_text(result->show, "workspace") : "";
        const GitHint hint = { .exit_code = exec_result_code(result),
                               .workspace = workspace[0] ? workspace : NULL,
                               .argv = result->command,
                               .text = result->printed && result->printed->length > 0
                                               ? result->printed->data
                                               : NULL,
                               .length = result->printed ? result->printed->length : 0,
                               .before = "holt create " };

        return result->command && streq(json_member_text(result->result, "cause"), "exited") &&
               git_hint_print(&hint, stderr);
}

void exec_result_tell(const ExecResult *result) {
        const char *cause;

        if (result->error) {
                error_print(result->error, stderr);
                return;
        }
        if (result->lost) {
                (void)fputs("holt: the session was killed from outside\n", stderr);
                return;
        }
        report_unrecorded(json_member_text(result->result, "unrecorded"), stderr);
        if (json_member_text(result->result, "stream_error")[0])
                (void)fprintf(stderr, "holt: %s\n",
                              json_member_text(result->result, "stream_error"));
        cause = json_member_text(result->result, "cause");
        if (streq(cause, "timeout"))
                exec_result_tell_timeout(result);
        if (streq(cause, "lost"))
                (void)fputs("holt: the command and its monitor were killed, by a command in the "
                            "session, such as kill -9 -1, or from outside\n",
                            stderr);
        if (result->captured && exec_result_dropped(result->result) > 0)
                (void)fprintf(stderr, "holt: dropped %" PRIu64 " bytes of output\n",
                              exec_result_dropped(result->result));
        exec_result_tell_replaced(result->result);
        if (exec_result_code(result) != 0) {
                bool option = exec_result_tell_reasons(
                        result->session, (const JsonValue *[]){ result->result, result->refused });

                option |= exec_result_tell_git(result);
                if (option)
                        exec_result_tell_fixed(result->session);
                if (result->printed)
                        exec_result_tell_network(result->result, result->show,
                                                 result->printed->data, result->printed->length);
        }
        exec_result_tell_lost(result->session, result->result);
        exec_result_tell_set_aside(result->result, result->show);
}

/* --- for programs --- */

static int signal_of(const ExecResult *result) {
        if (result->lost)
                return SIGKILL;
        return result->result ? (int)json_member_uint(result->result, "signal") : 0;
}

static void exec_result_write_output(const ExecResult *result, JsonWriter *w) {
        const JsonValue *from = result->result;

        if (!result->captured || !from)
                return result_write_output(w, false, 0, 0);
        result_write_output(w, true,
                            json_member_uint(from, "stdout_bytes") +
                                    json_member_uint(from, "stderr_bytes") -
                                    exec_result_dropped(from),
                            exec_result_dropped(from));
}

/* Writes the session's limits, except for the time, which may be the call's own. */
static void exec_result_write_limits(const ExecResult *result, JsonWriter *w) {
        const JsonValue *limits = json_member(result->show, "limits");

        json_write_object(w, "limits");
        for (const JsonValue *l = json_first(limits); l; l = json_next(l)) {
                const JsonValue *own = streq(json_key(l), "timeout_us")
                                               ? json_member(result->result, "timeout_us")
                                               : NULL;

                json_copy(w, json_key(l), own ? own : l);
        }
        json_write_end(w);
}

/* Copies a member of the reply, or writes an empty one of its type. */
static void write_member(const JsonValue *from, const char *key, bool array, JsonWriter *w) {
        const JsonValue *value = json_member(from, key);

        if (value) {
                json_copy(w, key, value);
                return;
        }
        if (array)
                json_write_array(w, key);
        else
                json_write_object(w, key);
        json_write_end(w);
}

/* Writes the same object as holt run (cli/report.c). */
static void exec_result_write_network(const ExecResult *result, JsonWriter *w) {
        const JsonValue *mode = json_member(json_member(result->show, "network"), "mode");

        json_write_object(w, "network");
        json_write_string(w, "mode", mode ? json_string(mode) : NULL);
        json_write_uint_or_null(w, "level", json_member_uint(result->show, "network_level"));
        json_write_bool(w, "lost", exec_result_lost(result->result, "network_lost"));
        json_write_bool(w, "missed",
                        json_member(result->result, "network_missed") ||
                                json_member(result->refused, "network_missed"));
        json_write_uint(w, "denials_omitted", json_member_uint(result->result, "denials_omitted"));
        json_write_end(w);
}

static void exec_result_write_routes(const ExecResult *result, JsonWriter *w) {
        json_write_object(w, "routes");
        json_write_bool(w, "lost", exec_result_lost(result->result, "routes_lost"));
        json_write_array(w, "tls_terminated");
        for (const JsonValue *route = json_first(json_member(result->show, "routes")); route;
             route = json_next(route))
                for (const JsonValue *host = json_first(json_member(route, "terminate_tls")); host;
                     host = json_next(host))
                        json_copy(w, NULL, host);
        json_write_end(w);
        json_write_end(w);
}

/* Writes an array with the items of both replies. */
static void write_refused(const ExecResult *result, const char *key, JsonWriter *w) {
        const JsonValue *const replies[] = { result->result, result->refused };

        json_write_array(w, key);
        for (size_t i = 0; i < ELEMENTSOF(replies); i++) {
                const JsonValue *items = json_member(replies[i], key);

                for (const JsonValue *v = json_first(items); v; v = json_next(v))
                        json_copy(w, NULL, v);
        }
        json_write_end(w);
}

static void write_replaced(const ExecResult *result, JsonWriter *w) {
        const char *path = result->result ? json_member_text(result->result, "replaced") : "";

        json_write_string(w, "replaced", path[0] ? path : NULL);
}

/* Writes the member only if there is something to report. */
static void write_reason(const ExecResult *result, const char *key, JsonWriter *w) {
        const char *why = result->result ? json_member_text(result->result, key) : "";

        if (why[0])
                json_write_string(w, key, why);
}

static const char *cause_of(const ExecResult *result) {
        if (result->error)
                return "error";
        return result->lost ? "lost" : json_member_text(result->result, "cause");
}

int exec_result_write(const ExecResult *result, JsonWriter *w) {
        const ResultHead head = { .command = result->command,
                                  .cause = cause_of(result),
                                  .exit_code = exec_result_code(result),
                                  .signal = signal_of(result),
                                  .error = result->error };

        json_write_object(w, NULL);
        json_write_int(w, "holt", 1);
        json_write_string(w, "session", result->session);
        json_write_string(w, "id", result->id[0] ? result->id : NULL);
        result_write_head(w, &head);
        write_member(result->result, "usage", false, w);
        write_member(result->show, "layers", false, w);
        exec_result_write_limits(result, w);
        exec_result_write_output(result, w);
        exec_result_write_network(result, w);
        exec_result_write_routes(result, w);
        write_refused(result, "denials", w);
        if (result->result && json_member(result->result, "unreached"))
                write_member(result->result, "unreached", true, w);
        write_refused(result, "limits_hit", w);
        write_member(result->result, "set_aside", true, w);
        if (result->result && json_member(result->result, "still_aside"))
                write_member(result->result, "still_aside", true, w);
        write_replaced(result, w);
        write_reason(result, "stopped_for", w);
        write_reason(result, "unrecorded", w);
        write_reason(result, "stream_error", w);
        json_write_end(w);
        return json_write_finish(w);
}
