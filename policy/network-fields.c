/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/network-fields.h"

#include <errno.h>
#include <string.h>

#include "policy/net/rules.h"

static const char mode_path[] = "network.mode", rules_path[] = "network.allow";
static const char mode_option[] = "--network", rules_option[] = "--net", ask_option[] = "--ask";

/* --- values --- */

const char *const network_modes[] = {
        [NETWORK_NONE] = "none",
        [NETWORK_ALLOW] = "allow",
        [NETWORK_HOST] = "host",
        [NETWORK_MODE_MAX] = NULL,
};
const unsigned char network_ranks[] = {
        [NETWORK_HOST] = 0,
        [NETWORK_ALLOW] = 1,
        [NETWORK_NONE] = 2,
};
static_assert(ELEMENTSOF(network_ranks) == NETWORK_MODE_MAX, "every mode has a rank");

const char *const network_sni[] = {
        [SNI_OPTIONAL] = "optional",
        [SNI_REQUIRED] = "required",
        [SNI_MAX] = NULL,
};
const unsigned char network_sni_ranks[] = {
        [SNI_OPTIONAL] = 0,
        [SNI_REQUIRED] = 1,
};
static_assert(ELEMENTSOF(network_sni_ranks) == SNI_MAX, "every value has a rank");

/* --- options --- */

/* Whether the option has set a field. */
static bool network_has_option(const Policy *policy, const char *option) {
        for (size_t i = 0; i < policy->notes_count; i++)
                if (streq(policy->notes[i].where, option))
                        return true;
        return false;
}

static int network_refuse_both(const char *option, const char *mode, Error *reterr) {
        int r = error_set(reterr, ERROR_USAGE, 0, "%s and --network %s contradict each other",
                          option, mode);

        return error_cure(
                reterr, r,
                "--net allows the hosts of its rules, and --ask those that you allow when "
                "holt asks. Leave --network out.\n"
                "--network none allows nothing, and --network host allows everything.");
}

int network_set_mode(Policy *policy, const char *value, Error *reterr) {
        int r = policy_set(policy, mode_path, value, ORIGIN_CALLER, mode_option, reterr);

        for (size_t i = 0; r == 0 && policy->network != NETWORK_ALLOW && i < 2; i++) {
                const char *option = i == 0 ? rules_option : ask_option;

                if (network_has_option(policy, option))
                        r = network_refuse_both(option, value, reterr);
        }
        return r;
}

/* Makes the mode "allow", also if a policy file says otherwise, because an option wins over it. */
static int network_allow_by_option(Policy *policy, const char *option, Error *reterr) {
        const PolicyNote *note = policy_note(policy, mode_path, NULL);
        const char *mode = policy_field(mode_path)->names[policy->network];

        if (policy->network == NETWORK_ALLOW)
                return 0;
        if (note && streq(note->where, mode_option))
                return network_refuse_both(option, mode, reterr);
        return policy_set(policy, mode_path, "allow", ORIGIN_CALLER, option, reterr);
}

static bool network_is_mode(const char *text) {
        for (const char *const *name = policy_field(mode_path)->names; *name; name++)
                if (streq(*name, text))
                        return true;
        return false;
}

/* A reason may contain commas, so it goes on to the end of the option. */
static size_t rule_length(const char *text) {
        const size_t length = strcspn(text, ",#");

        return text[length] == '#' ? strlen(text) : length;
}

int network_set_rules(Policy *policy, const char *value, Error *reterr) {
        int r;

        if (network_is_mode(value))
                return network_set_mode(policy, value, reterr);
        for (const char *rest = value;; rest++) {
                const size_t length = rule_length(rest);
                _cleanup_free_ char *rule = strndup(rest, length);

                if (!rule)
                        return error_oom(reterr);
                r = policy_set(policy, rules_path, rule, ORIGIN_CALLER, rules_option, reterr);
                if (r < 0)
                        return r;
                rest += length;
                if (*rest == '\0')
                        return network_allow_by_option(policy, rules_option, reterr);
        }
}

int network_set_ask(Policy *policy, const char *value, Error *reterr) {
        int r = policy_set(policy, "network.ask", "true", ORIGIN_CALLER, ask_option, reterr);

        (void)value;
        return r < 0 ? r : network_allow_by_option(policy, ask_option, reterr);
}

/* --- policy files --- */

int network_imply_mode(Policy *policy, const char *where, Error *reterr) {
        if (policy->network != NETWORK_NONE || streq(where, rules_option) ||
            streq(where, ask_option) || policy_note(policy, mode_path, NULL))
                return 0;
        return policy_set(policy, mode_path, "allow", ORIGIN_CALLER, where, reterr);
}

int network_imply_ask_mode(Policy *policy, const char *where, Error *reterr) {
        return policy->net_ask ? network_imply_mode(policy, where, reterr) : 0;
}

void network_note_host(Policy *policy) {
        if (policy->network != NETWORK_HOST)
                return;
        policy->net_unlimited = true;
        strlist_clear(&policy->net_allow);
}

/* Moves the caller's rules to net_callers when the project's first rule comes. The rules in force
 * are then those of the project that the caller's rules cover. A project that has rules does not
 * want the host's network. */
static void network_begin_narrow(Policy *policy) {
        if (policy->net_narrowed)
                return;
        policy->net_narrowed = true;
        network_note_host(policy);
        if (policy->network == NETWORK_HOST)
                policy->network = NETWORK_ALLOW;
        policy->net_callers = policy->net_allow;
        policy->net_allow = (StrList){ 0 };
}

static int narrow_texts(const NetRules *rules, StrList *ret) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < rules->count; i++) {
                const char *reason = rules->items[i].reason;
                _cleanup_free_ char *text = net_rule_text(&rules->items[i]);

                if (!text)
                        return -ENOMEM;
                r = reason ? strlist_take(ret, str_format("%s # %s", text, reason))
                           : strlist_add(ret, text);
        }
        return r;
}

int network_narrow(Policy *policy, const char *text, StrList *ret) {
        _cleanup_(net_rules_clear) NetRules allowed = { 0 }, rules = { 0 };
        const char *why;
        int r = 0;

        network_begin_narrow(policy);
        /* Also counts the rules that are dropped, because comparing one with all of the caller's
         * takes time. */
        if (policy->net_asked++ >= POLICY_LIST_MAX)
                return -E2BIG;
        if (streq(text, "none")) {
                strlist_clear(&policy->net_allow);
                strlist_clear(&policy->net_project);
                return 0;
        }
        if (strlist_add(&policy->net_project, text) < 0)
                return -ENOMEM;
        if (policy->net_unlimited)
                return strlist_add(ret, text);
        for (size_t i = 0; r == 0 && i < policy->net_callers.count; i++)
                r = net_rules_add(&allowed, policy->net_callers.items[i], &why);
        if (r == 0)
                r = net_rules_narrow(&rules, &allowed, text, &why);
        return r < 0 ? -ENOMEM : narrow_texts(&rules, ret);
}
