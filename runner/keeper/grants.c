/* SPDX-License-Identifier: Apache-2.0 */
/* Grants to a live session.
 *
 * Theory of operation. A grant is in force and stored, or neither. holt-egress first makes all that
 * the rules need, but does not follow them yet. Then the keeper stores them, for itself and the
 * next keeper, and tells holt-egress to keep or to drop them. Replies come in the order of the
 * commands. */
#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "keeper/keeper.h"
#include "policy/net/rules.h"
#include "session/allow.h"

/* A grant to which holt-egress has not replied yet. */
struct GrantWait {
        struct GrantWait *next;
        uint32_t question; /* It is the answer to this question, or 0. */
        bool once;         /* The rules hold for one connection each... */
        uint32_t id;       /* ...and the first of them has this number. */
        RpcCall *call;     /* NULL if the client has gone. */
        StrList rules;
        bool decided; /* The rules are stored, or `error` says why not. */
        int stored;   /* The result of storing them: 0 or a negative errno. */
        Error error;
};

enum { GRANTS_MAX = 16 }; /* Grants without a reply, at most. */

typedef struct GrantWait GrantWait;

static GrantWait *grant_free(GrantWait *wait) {
        if (wait)
                strlist_clear(&wait->rules);
        free(wait);
        return NULL;
}

static void grant_on_call_end(RpcCall *call, void *data) {
        GrantWait *wait = data;

        (void)call;
        wait->call = NULL;
}

/* --- for the method --- */

static int grant_check(const Keeper *keeper, const StrList *rules, bool once, Error *reterr) {
        size_t count = 0;
        int r = allow_check_mode(&keeper->settings, reterr);

        if (r < 0)
                return r;
        if (keeper->settings.policy.network != NETWORK_ALLOW) {
                if (once)
                        return allow_refuse_networkless(keeper->name, rules->items[0], reterr);
                r = error_set(reterr, ERROR_USAGE, 0,
                              "the live session was started without a network");
                return error_cure(reterr, r,
                                  "Stop it, and grant again; its next start has the network: "
                                  "holt stop %s",
                                  keeper->name);
        }
        for (const GrantWait *wait = keeper->grants; wait; wait = wait->next)
                count++;
        return count < GRANTS_MAX
                       ? 0
                       : error_set(reterr, ERROR_LIMIT, 0, "too many grants are being carried out");
}

/* Joins the lines of the command. */
static char *grant_text(const GrantWait *wait, const StrList *rules) {
        char *text = wait->once ? str_format("%u", wait->id) : strdup(rules->items[0]);

        for (size_t i = wait->once ? 0 : 1; text && i < rules->count; i++) {
                char *longer = str_format("%s\n%s", text, rules->items[i]);

                free(text);
                text = longer;
        }
        return text;
}

static int grant_send(Keeper *keeper, const GrantWait *wait, const StrList *rules, Error *reterr) {
        _cleanup_free_ char *text = grant_text(wait, rules);
        int r;

        if (!text)
                return error_oom(reterr);
        r = network_command(&keeper->sandbox.network, wait->once ? "grant-once" : "grant", text);
        if (r == -EMSGSIZE)
                return error_set(reterr, ERROR_LIMIT, 0,
                                 "the rules are too long for one grant; grant them in turn");
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot reach holt-egress") : 0;
}

static int grant_add(Keeper *keeper, StrList *rules, bool once, GrantWait **ret, Error *reterr) {
        int r = grant_check(keeper, rules, once, reterr);
        GrantWait *wait = r == 0 ? calloc(1, sizeof(*wait)) : NULL;

        if (r < 0)
                return r;
        if (!wait)
                return error_oom(reterr);
        wait->once = once;
        wait->id = keeper->once_next;
        r = grant_send(keeper, wait, rules, reterr);
        if (r < 0) {
                (void)grant_free(wait);
                return r;
        }
        if (once)
                keeper->once_next += (uint32_t)rules->count;
        wait->rules = *rules;
        *rules = (StrList){ 0 };
        list_append(&keeper->grants, wait);
        *ret = wait;
        return 0;
}

int keeper_grant(Keeper *keeper, StrList *rules, bool once, RpcCall *call, Error *reterr) {
        GrantWait *wait;
        int r = grant_add(keeper, rules, once, &wait, reterr);

        if (r < 0)
                return r;
        wait->call = call;
        rpc_call_on_end(call, grant_on_call_end, wait);
        return 0;
}

int keeper_grant_asked(Keeper *keeper, StrList *rules, bool once, uint32_t id, Error *reterr) {
        GrantWait *wait;
        int r = grant_add(keeper, rules, once, &wait, reterr);

        if (r == 0)
                wait->question = id;
        return r;
}

/* --- replies --- */

static int grant_refuse(const EgressEvent *event, Error *reterr) {
        int r;

        if (event->errnum == EADDRINUSE) {
                r = error_set(reterr, ERROR_BUSY, EADDRINUSE,
                              "a program in the session listens on port %u itself", event->port);
                return error_cure(reterr, r,
                                  "Let it listen only on 127.0.0.1, or on another port. A "
                                  "wildcard or a block needs the port on all addresses, "
                                  "127.0.0.1 included.");
        }
        if (event->errnum == ENOSPC)
                return error_set(reterr, ERROR_LIMIT, 0,
                                 "too many one-time grants of the session are not used yet");
        if (event->errnum == E2BIG)
                return error_set(reterr, ERROR_LIMIT, 0,
                                 "the session's rules would need more than %d listeners, one for "
                                 "each port, and this kernel cannot redirect ports instead "
                                 "(nf_tables with tproxy)",
                                 NET_LISTENERS_MAX);
        return error_set(reterr, ERROR_SETUP, (int)event->errnum, "cannot grant the rules");
}

/* Adds the new rules to the plan, because session.show prints the rules of the plan. */
static void grant_show(Keeper *keeper) {
        const StrList *allow = &keeper->settings.policy.net_allow;

        for (size_t i = keeper->plan.net_allow.count; i < allow->count; i++)
                if (strlist_add(&keeper->plan.net_allow, allow->items[i]) < 0)
                        return;
}

/* holt-egress has made all that the rules need. If it has ended, keeper_fail_grants() follows. */
static void grant_decide(Keeper *keeper, GrantWait *wait) {
        wait->stored = wait->once ? allow_once(&keeper->settings, keeper->store, wait->id,
                                               wait->question != 0, &wait->rules, &wait->error)
                                  : allow_store(&keeper->settings, keeper->store,
                                                wait->question != 0, &wait->rules, &wait->error);
        wait->decided = true;
        if (wait->stored == 0)
                grant_show(keeper);
        network_decide(&keeper->sandbox.network, wait->stored == 0);
}

/* Replies to the call. Rules that are stored wait for the next start if holt-egress is lost. */
static void grant_answer(Keeper *keeper, const EgressEvent *event, GrantWait *wait) {
        int r = wait->stored;

        if (!wait->decided)
                r = grant_refuse(event, &wait->error);
        if (wait->question)
                keeper_answer_question(keeper, wait->question,
                                       r < 0 ? EGRESS_ANSWER_NOBODY : EGRESS_ANSWER_YES);
        if (!wait->call)
                return;
        if (r < 0)
                return rpc_fail(wait->call, &wait->error);
        json_write_bool(rpc_result(wait->call), "live", event->errnum == 0);
        rpc_reply(wait->call);
}

static GrantWait *grant_take(Keeper *keeper) {
        GrantWait *wait = keeper->grants;

        if (wait) {
                (void)list_remove(&keeper->grants, wait);
                if (wait->call)
                        rpc_call_on_end(wait->call, NULL, NULL);
        }
        return wait;
}

void keeper_on_grant(Keeper *keeper, const EgressEvent *event) {
        GrantWait *wait = keeper->grants;

        if (wait && !wait->decided && event->errnum == 0)
                return grant_decide(keeper, wait);
        wait = grant_take(keeper);
        if (wait)
                grant_answer(keeper, event, wait);
        (void)grant_free(wait);
}

void keeper_fail_grants(Keeper *keeper) {
        const EgressEvent lost = { .errnum = EPIPE };

        while (keeper->grants)
                keeper_on_grant(keeper, &lost);
}

void keeper_grants_free(Keeper *keeper) {
        while (keeper->grants)
                (void)grant_free(grant_take(keeper));
}
