/* SPDX-License-Identifier: Apache-2.0 */
#include "session/allow.h"

#include <errno.h>
#include <string.h>

#include "base/strings.h"
#include "base/time.h"
#include "policy/net/rules.h"
#include "session/at-rest.h"

int allow_parse(const char *text, const char **ret_rule, Error *reterr) {
        const char *why = "";
        char quoted[160];
        int r;

        if (strncmp(text, ALLOW_NET, strlen(ALLOW_NET)) != 0) {
                r = error_set(reterr, ERROR_USAGE, 0, "\"%s\" is not a grant",
                              str_quote(text, quoted, sizeof(quoted)));
                return error_cure(reterr, r,
                                  "Write " ALLOW_NET " and a rule, such as "
                                  "net:example.org:443 or net:@python.");
        }
        text += strlen(ALLOW_NET);
        if (net_rule_check(text, &why) < 0) {
                const size_t length = strcspn(why, "\n");

                r = error_set(reterr, ERROR_USAGE, 0, "rule \"%s\" %.*s",
                              str_quote(text, quoted, sizeof(quoted)), (int)length, why);
                return why[length] ? error_cure(reterr, r, "%s", why + length + 1) : r;
        }
        *ret_rule = text;
        return 0;
}

int allow_check_mode(const Settings *settings, Error *reterr) {
        if (settings->policy.network != NETWORK_HOST)
                return 0;
        return error_set(reterr, ERROR_USAGE, 0,
                         "the session is on the host's own network, and needs no grant for it");
}

/* Adds the detail of the event that audits a grant. */
static int allow_describe(const char *rule, bool once, bool asked, StrList *details,
                          Error *reterr) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_free_ char *grant = str_format(ALLOW_NET "%s", rule);

        json_write_object(&w, NULL);
        json_write_string(&w, "grant", grant);
        if (once)
                json_write_bool(&w, "once", true);
        if (asked)
                json_write_bool(&w, "asked", true);
        json_write_end(&w);
        return !grant || json_write_finish(&w) < 0 || strlist_add(details, w.data) < 0
                       ? error_oom(reterr)
                       : 0;
}

static int allow_add(Policy *policy, const char *rule, Error *reterr) {
        for (size_t i = 0; i < policy->net_allow.count; i++)
                if (streq(policy->net_allow.items[i], rule))
                        return 0;
        return policy_set(policy, "network.allow", rule, ORIGIN_CALLER, "grants", reterr);
}

/* Takes back what allow_store() has changed in memory. */
static void allow_undo(Policy *policy, unsigned mode, size_t count) {
        policy->network = mode;
        while (policy->net_allow.count > count)
                free(policy->net_allow.items[--policy->net_allow.count]);
}

int allow_store(Settings *settings, Store *store, bool asked, const StrList *rules, Error *reterr) {
        Policy *policy = &settings->policy;
        const unsigned mode = policy->network;
        const size_t count = policy->net_allow.count;
        _cleanup_(strlist_clear) StrList details = { 0 };
        int r = 0;

        if (mode != NETWORK_ALLOW)
                r = policy_set(policy, "network.mode", "allow", ORIGIN_CALLER, "grants", reterr);
        for (size_t i = 0; r == 0 && i < rules->count; i++) {
                r = allow_add(policy, rules->items[i], reterr);
                if (r == 0)
                        r = allow_describe(rules->items[i], false, asked, &details, reterr);
        }
        if (r == 0)
                r = settings_write_policy(settings, store, "grant", &details, reterr);
        if (r < 0)
                allow_undo(policy, mode, count);
        return r;
}

int allow_once(Settings *settings, Store *store, uint32_t id, bool asked, const StrList *rules,
               Error *reterr) {
        _cleanup_(strlist_clear) StrList details = { 0 };
        int r = 0;

        for (size_t i = 0; r == 0 && i < rules->count; i++) {
                r = allow_describe(rules->items[i], true, asked, &details, reterr);
                if (r == 0 && settings_add_once(settings, id + (uint32_t)i, rules->items[i]) < 0)
                        r = error_oom(reterr);
        }
        if (r == 0)
                r = settings_write_policy(settings, store, "grant", &details, reterr);
        for (size_t i = 0; r < 0 && i < rules->count; i++)
                settings_use_once(settings, id + (uint32_t)i);
        return r;
}

int allow_refuse_networkless(const char *session, const char *rule, Error *reterr) {
        int r = error_set(reterr, ERROR_USAGE, 0,
                          "a grant for one connection needs a session with a network, and session "
                          "\"%s\" has none",
                          session);

        return error_cure(reterr, r,
                          "Add a rule that lasts: holt stop %s, then holt allow %s " ALLOW_NET
                          "%s\nOr create a session with --net.",
                          session, session, rule);
}

/* Whether the settings say that the session has no network. If they cannot be read, it may have
 * one. */
static bool allow_is_networkless(const char *session) {
        _cleanup_(at_rest_close) AtRest rest = AT_REST_NONE;
        Error ignored;

        return at_rest_open(session, &rest, &ignored) == 0 &&
               rest.settings.policy.network == NETWORK_NONE;
}

int allow_read(const StrList *grants, StrList *ret, Error *reterr) {
        if (grants->count == 0)
                return error_set(reterr, ERROR_USAGE, 0, "grants: the list is empty");
        for (size_t i = 0; i < grants->count; i++) {
                const char *rule;
                int r = allow_parse(grants->items[i], &rule, reterr);

                if (r == 0 && strlist_add(ret, rule) < 0)
                        r = error_oom(reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

int allow_refuse_once(const char *session, const StrList *grants, Error *reterr) {
        _cleanup_(strlist_clear) StrList rules = { 0 };
        int r = allow_read(grants, &rules, reterr);

        if (r < 0)
                return r;
        if (allow_is_networkless(session))
                return allow_refuse_networkless(session, rules.items[0], reterr);
        r = error_set(reterr, ERROR_USAGE, 0,
                      "session \"%s\" is at rest, and a grant for one connection ends with the "
                      "live session",
                      session);
        return error_cure(reterr, r,
                          "Start it first, for example: holt exec %s -- true\n"
                          "A grant that lasts needs no start.",
                          session);
}

int allow_at_rest(const char *session, const StrList *grants, Error *reterr) {
        _cleanup_(at_rest_close) AtRest rest = AT_REST_NONE;
        _cleanup_(strlist_clear) StrList rules = { 0 };
        int r = allow_read(grants, &rules, reterr);

        if (r < 0)
                return r;
        r = at_rest_open(session, &rest, reterr);
        if (r < 0)
                return r;
        r = allow_check_mode(&rest.settings, reterr);
        if (r < 0)
                return r;
        return allow_store(&rest.settings, rest.store, false, &rules, reterr);
}
