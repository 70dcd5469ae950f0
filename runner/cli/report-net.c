/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report-net.h"

#include <inttypes.h>
#include <string.h>

#include "base/strings.h"
#include "policy/net/rules.h"

/* A name that was only looked up has no port, and its rule has the default ports. */
static void report_net_name(const char *name, const char *grant, const char *who_allows,
                            FILE *out) {
        const NetSet *set = net_set_with(name);

        (void)fprintf(out, "%s%s allows it on ports 80 and 443", who_allows, grant);
        if (set)
                (void)fprintf(out, ", and @%s its whole set", set->name);
        (void)fputc('\n', out);
}

void report_net_denial(const char *peer, uint64_t count, const char *answer, const char *reason,
                       const char *grant, const char *why_not, const char *who_allows, FILE *out) {
        (void)fprintf(out, "holt: refused %s (%" PRIu64 "x, %s): %s; ", peer, count, answer,
                      reason);
        if (!grant[0])
                (void)fprintf(out, "%s\n", why_not);
        else if (strchr(peer, ':'))
                (void)fprintf(out, "%s%s allows it\n", who_allows, grant);
        else
                report_net_name(peer, grant, who_allows, out);
}

void report_net_failure(const char *peer, const char *answer, const char *reason, FILE *out) {
        if (streq(answer, "NXDOMAIN"))
                (void)fprintf(out, "holt: could not resolve %s: %s\n", peer, reason);
        else
                (void)fprintf(out, "holt: could not connect to %s (%s)%s%s\n", peer, answer,
                              reason[0] ? ": " : "", reason);
}

void report_net_omitted(uint64_t count, FILE *out) {
        if (count > 0)
                (void)fprintf(out, "holt: and %" PRIu64 " more of other hosts and ports\n", count);
}

void report_lost(const char *session, const char *what, const char *program, FILE *out) {
        (void)fprintf(out, "holt: the %s lost its %s, because %s ended\n",
                      session ? "session has" : "sandbox", what, program);
        if (session)
                (void)fprintf(out,
                              "  Stop the session: holt stop %s. Its next use starts it again.\n",
                              session);
}

void report_net_denials(const NetDenials *denials, FILE *out) {
        for (unsigned i = 0; denials && i < denials->count; i++) {
                const NetDenial *denial = &denials->items[i];
                char peer[NET_PEER_TEXT], rule[NET_PEER_TEXT], grant[NET_GRANT_TEXT] = "";
                char reason[NET_REASON_TEXT];

                net_denial_peer(denial, peer);
                net_denial_reason(denial, reason);
                if (net_denial_rule(denial, rule))
                        net_denial_grant(rule, grant);
                if (net_denial_refused(denial)) {
                        report_net_denial(peer, net_denial_count(denial), net_denial_answer(denial),
                                          reason, grant, net_denial_why_not(denial), "", out);
                        continue;
                }
                (void)net_denial_failure(denial, reason);
                report_net_failure(peer, net_denial_answer(denial), reason, out);
        }
        report_net_omitted(net_denials_omitted(denials, NULL), out);
}

void report_gateway_denial(const char *what, uint64_t count, const char *answer, const char *reason,
                           FILE *out) {
        (void)fprintf(out, "holt: answered %s with %s (%" PRIu64 "x): %s\n", what, answer, count,
                      reason);
}

void report_gateway_denials(const GatewayDenials *denials, FILE *out) {
        for (unsigned i = 0; denials && i < denials->count; i++) {
                const GatewayDenial *denial = &denials->items[i];
                char what[GATEWAY_WHAT_TEXT], answer[16];

                if (denial->count == 0)
                        continue;
                gateway_denial_what(denial, what);
                (void)snprintf(answer, sizeof(answer), "%u", denial->event.status);
                report_gateway_denial(what, denial->count, answer, denial->event.reason, out);
                if (denial->event.told[0])
                        (void)fprintf(out, "  It said: %s\n", denial->event.told);
        }
}
