/* SPDX-License-Identifier: Apache-2.0 */
#include "network/denials.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/strings.h"
#include "base/time.h"
#include "policy/net/rules.h"
#include "policy/net/text.h"

/* A text is printed on the caller's terminal, so it must not contain control characters. */
static bool event_text_valid(const char *text, size_t size) {
        return memchr(text, '\0', size) && net_text_plain(text);
}

static bool event_name_valid(const char *name, size_t size) {
        for (size_t i = 0; i < size; i++) {
                if (name[i] == '\0')
                        return true;
                if (name[i] <= ' ' || name[i] > '~')
                        return false;
        }
        return false;
}

bool net_event_valid(const EgressEvent *event) {
        return event->type < EGRESS_TYPE_MAX && event->reason < EGRESS_REASON_MAX &&
               event->level < EGRESS_LEVEL_MAX &&
               event_name_valid(event->name, sizeof(event->name)) &&
               event_text_valid(event->other, sizeof(event->other)) &&
               event_text_valid(event->rule, sizeof(event->rule));
}

static bool denial_is(const NetDenial *denial, const EgressEvent *event) {
        return denial->event.type == event->type && denial->event.reason == event->reason &&
               denial->event.port == event->port && streq(denial->event.name, event->name) &&
               (event->name[0] != '\0' ||
                memcmp(denial->event.address, event->address, sizeof(event->address)) == 0);
}

/* Returns the place for a new denial, or NULL. */
static NetDenial *denials_place(NetDenials *all, uint64_t now) {
        NetDenial *place = &all->items[0];

        if (all->count < NET_DENIALS_MAX)
                return &all->items[all->count++];
        if (now < all->next)
                return NULL;
        all->next = now + 1000000 / NET_DENIALS_RATE;
        for (unsigned i = 1; i < all->count; i++)
                if (all->items[i].last < place->last)
                        place = &all->items[i];
        return place;
}

/* Whether the rules of the project's file leave out the host. A refused lookup has no port. */
static bool project_omits(const NetRules *project, const EgressEvent *event) {
        NetAddress address = { .family = event->family };

        if (!project)
                return false;
        if (event->name[0] != '\0')
                return event->port ? !net_rules_find(project, event->name, event->port)
                                   : !net_rules_name(project, event->name);
        memcpy(address.bytes, event->address, sizeof(address.bytes));
        return !net_rules_find_address(project, &address, event->port);
}

static NetDenial *denials_add(NetDenials *all, const EgressEvent *event, uint64_t now) {
        NetDenial *place = denials_place(all, now);

        if (!place)
                return NULL;
        *place = (NetDenial){
                .event = *event, .count = place->count + 1, .before = place->count, .last = now
        };
        return place;
}

const NetDenial *net_denials_note(NetDenials **denials, const EgressEvent *event,
                                  const NetRules *project) {
        const uint64_t now = time_now_usec();
        NetDenials *all = *denials;
        NetDenial *denial;

        if (event->type != EGRESS_DENIED && event->type != EGRESS_FAILED)
                return NULL;
        if (!all)
                all = *denials = calloc(1, sizeof(*all));
        if (!all)
                return NULL;
        all->total++;
        for (unsigned i = 0; i < all->count; i++)
                if (denial_is(&all->items[i], event)) {
                        all->items[i].count++;
                        all->items[i].last = now;
                        return NULL;
                }
        denial = denials_add(all, event, now);
        if (denial)
                denial->by_project = project_omits(project, event);
        return denial;
}

uint64_t net_denial_count(const NetDenial *denial) {
        return denial->count - denial->before;
}

/* Returns the number of these denials since the total count was `earlier`. */
static uint64_t denial_count_since(const NetDenial *denial, uint64_t earlier) {
        return denial->count - (earlier > denial->before ? earlier : denial->before);
}

void net_denials_count(const NetDenials *denials, NetCounts *ret) {
        ret->count = denials ? denials->count : 0;
        ret->total = denials ? denials->total : 0;
        for (unsigned i = 0; i < ret->count; i++)
                ret->items[i] = denials->items[i].count;
}

/* Why a request was refused, and the answer that the program got. why_not says why no rule would
 * help; it is NULL if a rule for the host helps. */
static const struct {
        const char *text, *answer, *why_not;
} reasons[] = {
        [EGRESS_NO_RULE] = { "no rule of the network allows this name", "NXDOMAIN" },
        [EGRESS_NO_PORT] = { "no rule of the network allows this port", "ECONNRESET" },
        [EGRESS_NO_ADDRESS] = { "no rule of the network allows this address", "ECONNRESET" },
        [EGRESS_PRIVATE] = { "the name resolves to a private or special address", "NXDOMAIN",
                             "a rule for a name never allows such an address; if you trust it, add "
                             "a rule for the address itself, such as 10.1.0.5:443" },
        [EGRESS_OTHER_SNI] = { "the TLS client asked for another name than it had resolved",
                               "ECONNRESET", "a connection to a name may only ask for that name" },
        [EGRESS_NO_SNI] = { "the TLS client did not name its server", "ECONNRESET",
                            "the policy requires the name (network.sni)" },
        [EGRESS_OTHER_HOST] = { "the HTTP client asked for another host than it had resolved",
                                "ECONNRESET", "a connection to a name may only ask for that name" },
        [EGRESS_BAD_NAME] = { "the name is too long, or too many new names were asked for",
                              "NXDOMAIN", "a rule with the exact name has no such limit" },
        [EGRESS_USED_UP] = { "a grant for one connection to it is used up", "ECONNRESET" },
        [EGRESS_NOBODY] = { "no rule of the network allows it, and nobody could be asked",
                            "NXDOMAIN" },
        [EGRESS_NO_TERMINAL] = { "no rule of the network allows it, and nobody could be asked, "
                                 "because holt has no terminal to ask on",
                                 "NXDOMAIN" },
        [EGRESS_NO_CLIENT] = { "no rule of the network allows it, and nobody could be asked; only "
                               "holt exec --ask or a client of holt serve (network.attend) can "
                               "answer",
                               "NXDOMAIN" },
        [EGRESS_ANSWERED_NO] = { "no rule of the network allows it, and the answer was no",
                                 "ECONNRESET" },
        [EGRESS_NO_ANSWER] = { "no rule of the network allows it, and no answer came in time",
                               "ECONNRESET" },
        [EGRESS_QUESTIONS] = { "no rule of the network allows it, and too many questions were "
                               "asked",
                               "ECONNRESET" },
        [EGRESS_BUSY] = { "too many connections were open", "ECONNRESET",
                          "the number of connections is limited" },
        [EGRESS_UNREACHED] = { "a rule allows it, but it could not be reached", "ECONNRESET",
                               "the policy already allows it" },
        [EGRESS_NOT_LISTENING] = { "nothing listens on the host", "ECONNREFUSED",
                                   "the policy already allows it" },
        [EGRESS_UNRESOLVED] = { "a rule allows it, but the host found no address for it",
                                "NXDOMAIN", "the policy already allows it" },
        [EGRESS_YES_UNRESOLVED] = { "the answer allowed it, but the host found no address for "
                                    "it",
                                    "NXDOMAIN", "the policy already allows it" },
        [EGRESS_NO_UPSTREAM] = { "the proxy of network.upstream could not be reached", "ECONNRESET",
                                 "the policy already allows it" },
        [EGRESS_UPSTREAM_REFUSED] = { "the proxy of network.upstream refused to connect",
                                      "ECONNRESET", "the policy already allows it" },
};
static_assert(ELEMENTSOF(reasons) == EGRESS_REASON_MAX, "every reason has a row");

bool net_denial_refused(const NetDenial *denial) {
        return denial->event.type == EGRESS_DENIED;
}

void net_denial_reason(const NetDenial *denial, char ret[NET_REASON_TEXT]) {
        const char *rule = denial->event.rule;

        const char *other = denial->event.other;

        (void)snprintf(ret, NET_REASON_TEXT, "%s%s%s%s%s%s", reasons[denial->event.reason].text,
                       other[0] ? ": " : "", other, rule[0] ? " (a rule for this host says: " : "",
                       rule, rule[0] ? ")" : "");
}

bool net_denial_failure(const NetDenial *denial, char ret[NET_REASON_TEXT]) {
        ret[0] = '\0';
        if (denial->event.reason != EGRESS_UNREACHED)
                net_denial_reason(denial, ret);
        return ret[0] != '\0';
}

const char *net_denial_answer(const NetDenial *denial) {
        if (denial->event.errnum)
                return error_errno_name((int)denial->event.errnum);
        return reasons[denial->event.reason].answer;
}

/* --- hosts and rules --- */

enum { HOST_TEXT = NET_NAME_MAX + 3 };

static void denial_host(const EgressEvent *event, char ret[HOST_TEXT]) {
        NetAddress address = { .family = event->family };
        char text[NET_ADDRESS_TEXT];

        if (event->name[0] != '\0') {
                (void)snprintf(ret, HOST_TEXT, "%.*s", NET_NAME_MAX, event->name);
                return;
        }
        memcpy(address.bytes, event->address, sizeof(address.bytes));
        (void)snprintf(ret, HOST_TEXT, event->family == AF_INET6 ? "[%s]" : "%s",
                       net_address_text(&address, text));
}

static void net_denial_write_peer(const char *host, uint16_t port, char ret[NET_PEER_TEXT]) {
        if (port)
                (void)snprintf(ret, NET_PEER_TEXT, "%s:%u", host, port);
        else
                (void)snprintf(ret, NET_PEER_TEXT, "%s", host);
}

void net_denial_peer(const NetDenial *denial, char ret[NET_PEER_TEXT]) {
        char host[HOST_TEXT];

        denial_host(&denial->event, host);
        net_denial_write_peer(host, denial->event.port, ret);
}

/* Returns why no rule at all can allow this host, or NULL. */
static const char *net_denial_why_no_rule(const NetDenial *denial) {
        char peer[NET_PEER_TEXT];
        const char *why = reasons[denial->event.reason].why_not, *ignored;

        net_denial_peer(denial, peer);
        return !why && net_rule_check(peer, &ignored) < 0 ? "no rule can name this host" : why;
}

const char *net_denial_why_not(const NetDenial *denial) {
        const char *why = net_denial_why_no_rule(denial);

        return !why && denial->by_project ? "the project's .holt.json narrows the network and "
                                            "leaves it out; change it there"
                                          : why;
}

/* A refused lookup has no port. The rule then has none either, and allows the ports 80 and 443. The
 * name comes from inside, so holt suggests a rule only if it would accept that rule. */
bool net_denial_rule(const NetDenial *denial, char ret[NET_PEER_TEXT]) {
        net_denial_peer(denial, ret);
        return net_denial_why_not(denial) == NULL;
}

/* --- denials in a document --- */

static void net_denial_write_policy(JsonWriter *w, const char *rule) {
        if (!rule)
                return json_write_null(w, "policy");
        json_write_object(w, "policy");
        json_write_object(w, "network");
        json_write_array(w, "allow");
        json_write_string(w, NULL, rule);
        for (int i = 0; i < 3; i++)
                json_write_end(w);
}

/* Writes the request that allows the host while the session runs. */
static void net_denial_write_call(JsonWriter *w, const char *rule) {
        char grant[NET_PEER_TEXT + 8];

        (void)snprintf(grant, sizeof(grant), "net:%s", rule);
        json_write_object(w, "call");
        json_write_string(w, "method", "session.allow");
        json_write_object(w, "params");
        json_write_array(w, "grants");
        json_write_string(w, NULL, grant);
        for (int i = 0; i < 3; i++)
                json_write_end(w);
}

void net_denial_grant(const char *rule, char ret[NET_GRANT_TEXT]) {
        (void)snprintf(ret, NET_GRANT_TEXT, "--net%c%s", rule[0] == '-' ? '=' : ' ', rule);
}

void net_denial_write(JsonWriter *w, const NetDenial *denial, uint64_t count, bool session) {
        char peer[NET_PEER_TEXT], rule[NET_PEER_TEXT], grant[NET_PEER_TEXT + 8];
        const bool granted = net_denial_rule(denial, rule);
        char reason[NET_REASON_TEXT];

        net_denial_peer(denial, peer);
        net_denial_reason(denial, reason);
        net_denial_grant(rule, grant);
        json_write_string(w, "layer", "network");
        json_write_string(w, "what", peer);
        json_write_uint(w, "count", count);
        json_write_string(w, "answer", net_denial_answer(denial));
        json_write_null(w, "path");
        json_write_string(w, "reason", reason);
        json_write_string(w, "grant", granted ? grant : NULL);
        net_denial_write_policy(w, granted ? rule : NULL);
        json_write_string(w, "why_not", granted ? NULL : net_denial_why_not(denial));
        if (granted && session)
                net_denial_write_call(w, rule);
}

/* Returns how often number i has happened since `before`. */
static uint64_t denials_count_since(const NetDenials *denials, const NetCounts *before,
                                    unsigned i) {
        return denial_count_since(&denials->items[i],
                                  before && i < before->count ? before->items[i] : 0);
}

uint64_t net_denials_omitted(const NetDenials *denials, const NetCounts *before) {
        uint64_t count = denials ? denials->total - (before ? before->total : 0) : 0;

        for (unsigned i = 0; denials && i < denials->count; i++)
                count -= denials_count_since(denials, before, i);
        return count;
}

void net_denials_write(JsonWriter *w, const NetDenials *denials, const NetCounts *before,
                       bool session) {
        for (unsigned i = 0; denials && i < denials->count; i++) {
                const NetDenial *denial = &denials->items[i];
                const uint64_t count = denials_count_since(denials, before, i);

                if (!net_denial_refused(denial) || count == 0)
                        continue;
                json_write_object(w, NULL);
                net_denial_write(w, denial, count, session);
                json_write_end(w);
        }
}

static void net_denial_write_unreached(JsonWriter *w, const NetDenial *denial, uint64_t count) {
        char peer[NET_PEER_TEXT], reason[NET_REASON_TEXT];

        net_denial_peer(denial, peer);
        json_write_object(w, NULL);
        json_write_string(w, "what", peer);
        json_write_uint(w, "count", count);
        json_write_string(w, "answer", net_denial_answer(denial));
        json_write_string(w, "reason", net_denial_failure(denial, reason) ? reason : NULL);
        json_write_end(w);
}

void net_denials_write_unreached(JsonWriter *w, const NetDenials *denials,
                                 const NetCounts *before) {
        bool any = false;

        for (unsigned i = 0; denials && i < denials->count; i++) {
                const NetDenial *denial = &denials->items[i];
                const uint64_t count = denials_count_since(denials, before, i);

                if (net_denial_refused(denial) || count == 0)
                        continue;
                if (!any)
                        json_write_array(w, "unreached");
                any = true;
                net_denial_write_unreached(w, denial, count);
        }
        if (any)
                json_write_end(w);
}
