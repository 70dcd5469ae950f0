/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/grants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/list.h"
#include "base/strings.h"
#include "egress/once.h"
#include "egress/ports.h"
#include "egress/requests.h"
#include "egress/serving.h"

/* A listener, a route or a redirect that a grant needs, and that the maker makes. */
typedef struct GrantPart {
        struct GrantPart *next;
        struct Grant *grant;
        ListenerPlan at;
        RedirectPlan redirect; /* All zero if the part is no redirect. */
        int fd; /* The listener; FD_NONE until it is made, and for a route or a redirect. */
} GrantPart;

typedef struct Grant {
        struct Grant *next;
        Egress *egress;
        char *text;
        bool single;    /* The rules hold for one connection each. */
        NetRules rules; /* Lasting rules. */
        Once *once;     /* One-time grants. */
        GrantPart *parts;
        size_t waiting;      /* Number of parts without a reply of the maker. */
        ListenerPlan *moved; /* Listeners that were closed, because one for all addresses takes
                                their port. */
        size_t moved_count;
        bool made;    /* All parts are made, and holt decides whether the rules hold. */
        bool decided; /* holt has decided. */
        bool undoing; /* The grant has failed, and `moved` is made again. */
        int errnum;   /* The first error, and its port. */
        uint16_t port;
} Grant;

static void grant_begin(Grant *grant);
static void grant_finish(Grant *grant);

/* --- parts --- */

static void grant_fail(Grant *grant, int errnum, uint16_t port) {
        if (grant->errnum)
                return;
        grant->errnum = errnum;
        grant->port = port;
}

/* Notes a redirect that exists now. It stays even if the grant fails: its connections are then
 * refused when they are judged. */
static int egress_note_redirect(Egress *egress, const RedirectPlan *redirect) {
        NetPlan *plan = &egress->plan;
        RedirectPlan *grown = reallocarray(plan->redirects, plan->redirects_count + 1,
                                           sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        plan->redirects = grown;
        grown[plan->redirects_count++] = *redirect;
        return 0;
}

static void part_on_answer(void *data, int fd, int errnum) {
        GrantPart *part = data;

        part->fd = fd;
        if (errnum == 0 && part->redirect.first &&
            egress_note_redirect(part->grant->egress, &part->redirect) < 0)
                errnum = ENOMEM;
        if (errnum)
                grant_fail(part->grant, errnum, part->at.port);
        if (--part->grant->waiting == 0)
                grant_finish(part->grant);
}

static void grant_post(Grant *grant, const MakerRequest *request) {
        GrantPart *part = calloc(1, sizeof(*part));
        int r = part ? 0 : -ENOMEM;

        if (r == 0) {
                *part = (GrantPart){ .grant = grant,
                                     .at = { request->address, request->port },
                                     .redirect = request->redirect,
                                     .fd = FD_NONE };
                list_append(&grant->parts, part);
                grant->waiting++;
                r = request_send(grant->egress, request, part_on_answer, part);
                grant->waiting -= r < 0;
        }
        if (r < 0)
                grant_fail(grant, -r, request->port);
}

static void grant_request(Grant *grant, MadeKind kind, const ListenerPlan *at, uint8_t prefix) {
        const MakerRequest request = {
                .kind = kind, .address = at->address, .prefix = prefix, .port = at->port
        };

        grant_post(grant, &request);
}

/* Serves the listeners of the parts, or closes them. */
static void grant_take_parts(Grant *grant, bool serve) {
        list_each_safe(part, grant->parts) {
                Error ignored;

                if (part->fd >= 0 && serve)
                        (void)serving_add(grant->egress, &part->at, part->fd, &ignored);
                else
                        fd_close(part->fd);
                free(part);
        }
        grant->parts = NULL;
}

/* --- the plan --- */

/* Plans for the rules in force and the new ones together. The plan borrows names from *ret_items,
 * which the caller frees. */
static int grant_plan(const Grant *grant, NetRule **ret_items, NetPlan *ret) {
        const Egress *egress = grant->egress;
        const Once *const once[] = { egress->once, grant->once };
        const NetRules *const rules[] = { &egress->rules, &grant->rules };
        const size_t most = rules[0]->count + rules[1]->count + once_rules(once[0], NULL) +
                            once_rules(once[1], NULL);
        NetRule *items = calloc(most, sizeof(*items));
        NetRules all = { .items = items };
        const NetPort *imports;
        const size_t imports_count = ports_imports(grant->egress, &imports);

        *ret_items = items;
        if (!items)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(rules); i++) {
                for (size_t k = 0; k < rules[i]->count; k++)
                        items[all.count++] = rules[i]->items[k];
                all.count += once_rules(once[i], items + all.count);
        }
        return net_plan_make(&all, imports, imports_count, ret);
}

/* Gives the plan's names the numbers that they have in this sandbox. */
static int grant_number_name(Egress *egress, const NetPlan *plan, NetAddress *address) {
        const int planned = net_address_number(address);
        int number;

        if (planned < 0 || (size_t)planned >= plan->names_count)
                return 0;
        number = names_add(egress->names, plan->names[planned]);
        if (number < 0)
                return number;
        *address = net_address_of_number(address->family, (unsigned)number);
        return 0;
}

static int grant_make_way(Grant *grant, const ListenerPlan *at) {
        _cleanup_free_ ListenerPlan *places = NULL;
        const int count = serving_make_way(grant->egress, at, &places);
        ListenerPlan *grown;

        if (count <= 0)
                return count;
        grown = reallocarray(grant->moved, grant->moved_count + (size_t)count, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        grant->moved = grown;
        memcpy(grown + grant->moved_count, places, (size_t)count * sizeof(*places));
        grant->moved_count += (size_t)count;
        return 0;
}

static int grant_ask_listener(Grant *grant, const NetPlan *plan, ListenerPlan at) {
        Egress *egress = grant->egress;
        int r = grant_number_name(egress, plan, &at.address);

        if (r < 0 || serving_has(egress, &at) || (at.address.family == AF_INET6 && !egress->has6))
                return r;
        r = grant_make_way(grant, &at);
        if (r == 0)
                grant_request(grant, MADE_LISTENER, &at, 0);
        return r;
}

static void grant_ask_routes(Grant *grant, const NetRule *items, size_t count) {
        for (size_t i = 0; i < count; i++) {
                const NetRule *rule = &items[i];
                const ListenerPlan at = { .address = rule->address };

                if (rule->kind == NET_BLOCK &&
                    (rule->address.family == AF_INET || grant->egress->has6))
                        grant_request(grant, MADE_ROUTE, &at, rule->prefix);
        }
}

static void grant_ask_once_routes(Grant *grant) {
        const size_t count = once_rules(grant->once, NULL);
        _cleanup_free_ NetRule *items = count ? calloc(count, sizeof(*items)) : NULL;

        if (count && !items)
                return grant_fail(grant, ENOMEM, 0);
        (void)once_rules(grant->once, items);
        grant_ask_routes(grant, items, count);
}

static bool egress_redirects(const Egress *egress, const RedirectPlan *redirect) {
        for (size_t i = 0; i < egress->plan.redirects_count; i++)
                if (redirect_equal(&egress->plan.redirects[i], redirect))
                        return true;
        return false;
}

/* Asks for a redirect, unless it exists. */
static int grant_ask_redirect(Grant *grant, const NetPlan *plan, RedirectPlan redirect) {
        Egress *egress = grant->egress;
        MakerRequest request = { .kind = MADE_REDIRECT };
        int r = grant_number_name(egress, plan, &redirect.address);

        if (r < 0 || egress_redirects(egress, &redirect))
                return r;
        request.redirect = redirect;
        grant_post(grant, &request);
        return 0;
}

static int grant_ask(Grant *grant) {
        _cleanup_free_ NetRule *items = NULL;
        NetPlan plan;
        int r = grant_plan(grant, &items, &plan);

        if (r < 0)
                return r;
        grant_ask_routes(grant, grant->rules.items, grant->rules.count);
        grant_ask_once_routes(grant);
        for (size_t i = 0; r == 0 && i < plan.listeners_count; i++)
                r = grant_ask_listener(grant, &plan, plan.listeners[i]);
        for (size_t i = 0; r == 0 && i < plan.redirects_count; i++)
                r = grant_ask_redirect(grant, &plan, plan.redirects[i]);
        net_plan_clear(&plan);
        return r;
}

/* --- the grant --- */

/* Reads lasting rules, one a line; or the number of the first one-time grant, and then the rule of
 * each. */
static int grant_parse(Grant *grant) {
        char *rest = grant->text, *line;
        uint32_t id = grant->single ? (uint32_t)strtoul(strsep(&rest, "\n"), NULL, 10) : 0;
        const char *why;
        int r = 0;

        while (r == 0 && (line = strsep(&rest, "\n")))
                r = grant->single ? once_add(&grant->once, id++, line)
                                  : net_rules_add(&grant->rules, line, &why);
        if (r == 0 && once_count(grant->once) + once_count(grant->egress->once) > ONCE_GRANTS_MAX)
                r = -ENOSPC;
        return r;
}

/* Makes room, so that holt's decision cannot fail. */
static int grant_reserve(const Grant *grant) {
        NetRules *to = &grant->egress->rules;
        const size_t count = to->count + grant->rules.count;
        NetRule *grown;

        if (count == 0) /* realloc(3) would free the items. */
                return 0;
        grown = reallocarray(to->items, count, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        to->items = grown;
        return 0;
}

static void grant_add_rules(Grant *grant) {
        NetRules *to = &grant->egress->rules, *from = &grant->rules;

        if (from->count > 0)
                memcpy(to->items + to->count, from->items, from->count * sizeof(*to->items));
        to->count += from->count;
        from->count = 0; /* egress->rules owns the reasons now. */
        once_keep(grant->egress, &grant->once);
}

static void grant_reply(const Grant *grant) {
        const EgressEvent event = { .type = EGRESS_GRANTED,
                                    .errnum = (uint32_t)grant->errnum,
                                    .port = grant->port };

        egress_send(grant->egress, &event);
}

static void grant_close(Grant *grant) {
        Egress *egress = grant->egress;

        grant_reply(grant);
        (void)list_remove(&egress->grants, grant);
        net_rules_clear(&grant->rules);
        once_free(&grant->once);
        free(grant->moved);
        free(grant->text);
        free(grant);
        if (egress->grants)
                return grant_begin(egress->grants);
        once_prune(egress);
}

/* Makes the listeners in `moved` again, which were closed for this grant. */
static void grant_undo(Grant *grant) {
        grant->undoing = true;
        grant->waiting = 1; /* Counts this function until it has sent all requests. */
        for (size_t i = 0; i < grant->moved_count; i++)
                grant_request(grant, MADE_LISTENER, &grant->moved[i], 0);
        if (--grant->waiting == 0)
                grant_finish(grant);
}

/* Continues once the maker has answered for every part. */
static void grant_finish(Grant *grant) {
        if (!grant->errnum && !grant->decided && grant_reserve(grant) < 0)
                grant_fail(grant, ENOMEM, 0);
        if (!grant->errnum && !grant->decided) {
                grant->made = true;
                return grant_reply(grant);
        }
        if (!grant->errnum)
                grant_add_rules(grant);
        grant_take_parts(grant, !grant->errnum || grant->undoing);
        if (grant->errnum && !grant->undoing && grant->moved_count > 0)
                return grant_undo(grant);
        grant_close(grant);
}

void grants_decide(Egress *egress, const char *value) {
        Grant *grant = egress->grants;

        if (!grant || !grant->made || grant->decided)
                return;
        grant->decided = true;
        if (!streq(value, EGRESS_KEEP))
                grant_fail(grant, ECANCELED, 0);
        grant_finish(grant);
}

static void grant_begin(Grant *grant) {
        int r = grant->egress->ports_only ? -ENONET : grant_parse(grant);

        grant->waiting = 1; /* Counts this function until it has sent all requests. */
        if (r == 0)
                r = grant_ask(grant);
        if (r < 0)
                grant_fail(grant, -r, 0);
        if (--grant->waiting == 0)
                grant_finish(grant);
}

static void grants_append(Egress *egress, const char *value, bool single) {
        const EgressEvent failed = { .type = EGRESS_GRANTED, .errnum = ENOMEM };
        const bool idle = !egress->grants;
        Grant *grant = calloc(1, sizeof(*grant));

        if (grant)
                grant->text = strdup(value);
        if (!grant || !grant->text) {
                free(grant);
                return egress_send(egress, &failed);
        }
        grant->egress = egress;
        grant->single = single;
        list_append(&egress->grants, grant);
        if (idle)
                grant_begin(grant);
}

void grants_add(Egress *egress, const char *value) {
        grants_append(egress, value, false);
}

void grants_add_once(Egress *egress, const char *value) {
        grants_append(egress, value, true);
}
