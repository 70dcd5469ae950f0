/* SPDX-License-Identifier: Apache-2.0 */
/* holt ls, holt show: list the sessions and describe one. Neither starts a session. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/show.h"
#include "cli/verbs.h"
#include "network/protocol.h"
#include "session/live.h"
#include "session/sources.h"

typedef struct LsOptions {
        bool json;
} LsOptions;

static const Option ls_options[] = {
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(LsOptions, json),
          NULL },
};

/* --- one session --- */

/* The data that ask_store() passes to write_session(). */
typedef struct ShownSession {
        const char *name, *state;
} ShownSession;

static int write_session(Store *store, const char *path, const void *data, JsonWriter *w,
                         Error *reterr) {
        const ShownSession *session = data;

        json_write_string(w, "name", session->name);
        json_write_string(w, "state", session->state);
        return sources_write_facts(store, path, w, reterr);
}

/* --- show --- */

static void print_fact(const char *label, const char *text) {
        char visible[PATH_MAX + 64];

        (void)printf("%-11s %s\n", label, str_visible(text, visible, sizeof(visible)));
}

static void ls_print_state(const JsonValue *session) {
        const uint64_t count = json_member_uint(session, "processes");
        char when[24], text[128];

        if (!streq(json_member_text(session, "state"), "live"))
                return print_fact("state", "at rest");
        (void)snprintf(text, sizeof(text), "live since %s, %" PRIu64 " process%s, keeper %" PRIu64,
                       ask_time(json_member_uint(session, "started_ms"), when), count,
                       count == 1 ? "" : "es", json_member_uint(session, "keeper_pid"));
        print_fact("state", text);
}

static void print_idle(const JsonValue *session) {
        const uint64_t idle = json_member_uint(session, "idle_us");
        _cleanup_free_ char *time = policy_number_text(policy_field("limits.timeout"), idle);
        char text[64];

        (void)snprintf(text, sizeof(text), "stops after %s without use", time ? time : "some time");
        print_fact("idle", idle ? text : "never stops");
}

static void print_owned(const JsonValue *session) {
        bool owned = false;

        if (json_member(session, "owned"))
                (void)json_bool(json_member(session, "owned"), &owned);
        if (owned)
                print_fact("lasts", "until the client that made it disconnects");
}

static void print_mounts(const JsonValue *session) {
        const JsonValue *mounts = json_member(session, "mounts");
        const char *label = "mounts";

        for (const JsonValue *m = json_first(mounts); m; m = json_next(m)) {
                bool read_only = false;
                _cleanup_free_ char *text = NULL;

                (void)json_bool(json_member(m, "read_only"), &read_only);
                text = str_format("%s at %s%s", json_member_text(m, "source"),
                                  json_member_text(m, "target"), read_only ? ", read-only" : "");
                print_fact(label, text ? text : "");
                label = "";
        }
}

static void print_limits(const JsonValue *session) {
        const JsonValue *limits = json_member(session, "limits");
        const char *tier = json_member_text(session, "tier");
        const uint64_t cpus = json_member_uint(session, "cpus");
        char text[512] = "";

        if (tier[0]) {
                (void)snprintf(text, sizeof(text),
                               "%s: %" PRIu64 " cpu%s; the memory limit applies to each process",
                               tier, cpus, cpus == 1 ? "" : "s");
                print_fact("tier", text);
                text[0] = '\0';
        }
        for (const PolicyField *f = policy_fields; f < policy_fields + policy_fields_count; f++) {
                const uint64_t value = f->result ? json_member_uint(limits, f->result) : 0;
                _cleanup_free_ char *number = value ? policy_number_text(f, value) : NULL;

                if (number)
                        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                                       "%s%s %s%s", text[0] ? ", " : "", strchr(f->path, '.') + 1,
                                       number, f->scope ? f->scope : "");
        }
        print_fact("limits", text[0] ? text : "none");
}

static void print_network(const JsonValue *session) {
        static const struct {
                const char *label, *key;
        } lists[] = {
                { "network", "allow" },
                { "once", "once" },
                { "publish", "publish" },
                { "import", "import" },
        };
        const JsonValue *network = json_member(session, "network");

        if (!json_first(json_member(network, "allow")))
                print_fact("network", json_member_text(network, "mode"));
        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                const JsonValue *first = json_first(json_member(network, lists[i].key));

                for (const JsonValue *text = first; text; text = json_next(text))
                        print_fact(text == first ? lists[i].label : "", json_string(text));
        }
        /* Without rules, no command can connect to another host. */
        if (streq(json_member_text(network, "mode"), "none"))
                return;
        if (json_member_uint(session, "network_level") == EGRESS_LEVEL_TRUE)
                print_fact("net level", "2: programs get the errors of the real connections");
        else if (json_member(session, "network_level"))
                print_fact("net level", "1: a connection that fails is accepted first");
}

static void print_routes(const JsonValue *session) {
        const JsonValue *first = json_first(json_member(session, "routes"));
        const bool rest = streq(json_member_text(session, "state"), "at rest");

        for (const JsonValue *route = first; route; route = json_next(route)) {
                const JsonValue *hosts = json_member(route, "terminate_tls");
                _cleanup_free_ char *text = NULL;
                bool live = false;

                (void)json_bool(json_member(route, "live"), &live);
                text = str_format("%s to %s%s%s", json_member_text(route, "name"),
                                  json_member_text(route, "upstream"),
                                  live || rest ? "" : " (from the next start on)",
                                  json_first(hosts) ? ", and TLS of" : "");
                for (const JsonValue *host = json_first(hosts); text && host;
                     host = json_next(host)) {
                        char *longer = str_format("%s %s", text, json_string(host));

                        free(text);
                        text = longer;
                }
                print_fact(route == first ? "routes" : "", text ? text : "");
        }
}

static void print_degraded(const JsonValue *session) {
        const JsonValue *layers = json_member(session, "allow_degraded");

        for (const JsonValue *l = json_first(layers); l; l = json_next(l))
                print_fact("optional", json_string(l));
}

static void print_session(const JsonValue *session) {
        char when[24];

        print_fact("name", json_member_text(session, "name"));
        ls_print_state(session);
        print_fact("created", ask_time(json_member_uint(session, "created_ms"), when));
        print_fact("directory", json_member_text(session, "directory"));
        print_idle(session);
        print_owned(session);
        print_fact("starts in", json_member_text(session, "cwd"));
        print_mounts(session);
        print_fact("preset", json_member_text(session, "preset"));
        print_limits(session);
        print_network(session);
        print_routes(session);
        print_degraded(session);
}

static int print_with(const JsonValue *session, const StrList *warnings, Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { .pretty = true };

        json_write_object(&w, NULL);
        for (const JsonValue *member = json_first(session); member; member = json_next(member))
                json_copy(&w, json_key(member), member);
        json_write_array(&w, "warnings");
        for (size_t i = 0; i < warnings->count; i++)
                json_write_string(&w, NULL, warnings->items[i]);
        json_write_end(&w);
        json_write_end(&w);
        return ask_print_document(&w, reterr);
}

int show_session(const char *name, bool json, const StrList *warnings, Error *reterr) {
        const ShownSession session = { name, "at rest" };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        int r = ask_look(name, "session.show", NULL, write_session, &session, &answer, reterr);

        if (r < 0)
                return r;
        if (json && warnings)
                return print_with(answer.result, warnings, reterr);
        if (json)
                return ask_print_json(answer.result, reterr);
        print_session(answer.result);
        return 0;
}

static int do_show(const OptionResult *words, const void *options, Error *reterr) {
        return show_session(words->operands[0], ((const LsOptions *)options)->json, NULL, reterr);
}

/* --- ls --- */

typedef struct Listed {
        bool json;
        unsigned count;
        JsonWriter w;
} Listed;

static void ls_print_row(const ShownSession *session, const JsonValue *result, const Error *error) {
        const char *workspace = result ? json_member_text(result, "workspace") : error->text;
        char when[24], visible[PATH_MAX];

        (void)printf("%-20s %-8s %-19s %s\n", session->name, session->state,
                     ask_time(result ? json_member_uint(result, "created_ms") : 0, when),
                     str_visible(workspace, visible, sizeof(visible)));
}

/* A session that cannot be read is listed, too, because the caller may want to remove it. */
static int list_one(void *data, const char *name, int dir_fd) {
        const ShownSession session = { name, session_state(dir_fd) };
        _cleanup_(answer_clear) Answer answer = ANSWER_NONE;
        Listed *listed = data;
        Error error;

        (void)ask_store(dir_fd, write_session, &session, &answer, &error);
        if (!listed->json) {
                if (listed->count++ == 0)
                        (void)printf("%-20s %-8s %-19s %s\n", "NAME", "STATE", "CREATED",
                                     "WORKSPACE");
                ls_print_row(&session, answer.result, &error);
                return 0;
        }
        if (answer.result) {
                json_copy(&listed->w, NULL, answer.result);
                return 0;
        }
        json_write_object(&listed->w, NULL);
        json_write_string(&listed->w, "name", name);
        json_write_string(&listed->w, "state", session.state);
        json_write_string(&listed->w, "error", error.text);
        json_write_end(&listed->w);
        return 0;
}

static int ls_do_ls(const OptionResult *words, const void *options, Error *reterr) {
        Listed listed = { .json = ((const LsOptions *)options)->json, .w = { .pretty = true } };
        int r;

        (void)words;
        json_write_array(&listed.w, NULL);
        r = session_each(list_one, &listed, reterr);
        json_write_end(&listed.w);
        if (r == 0 && listed.json)
                r = ask_print_document(&listed.w, reterr);
        json_write_clear(&listed.w);
        return r;
}

/* --- the verbs --- */

int cmd_ls(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "ls",
                            .usage = "[--json]",
                            .summary = "Lists the sessions.",
                            .options = ls_options,
                            .options_count = ELEMENTSOF(ls_options),
                            .operands = true },
                .run = ls_do_ls,
        };
        LsOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}

int cmd_show(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "show",
                            .usage = "NAME [--json]",
                            .summary = "Describes a session. Does not start a session at rest.",
                            .options = ls_options,
                            .options_count = ELEMENTSOF(ls_options),
                            .operands = true },
                .least = 1,
                .most = 1,
                .run = do_show,
        };
        LsOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
