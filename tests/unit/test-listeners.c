/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strings.h"
#include "maker/listeners.h"

/* Appends a word to a list of words. */
static void text_add(char **text, char *word) {
        char *longer = str_format("%s%s%s", *text, (*text)[0] ? " " : "", word);

        assert_non_null(longer);
        free(*text);
        free(word);
        *text = longer;
}

static char *listeners_text(const NetPlan *plan) {
        char *all = strdup(""), text[NET_ADDRESS_TEXT];

        for (size_t i = 0; i < plan->listeners_count; i++)
                text_add(&all,
                         str_format("%s/%u", net_address_text(&plan->listeners[i].address, text),
                                    plan->listeners[i].port));
        return all;
}

static char *routes_text(const NetPlan *plan) {
        char *all = strdup(""), text[NET_ADDRESS_TEXT];

        for (size_t i = 0; i < plan->routes_count; i++)
                text_add(&all, str_format("%s/%u", net_address_text(&plan->routes[i].address, text),
                                          plan->routes[i].prefix));
        return all;
}

static char *redirects_text(const NetPlan *plan) {
        char *all = strdup(""), text[NET_ADDRESS_TEXT];

        for (size_t i = 0; i < plan->redirects_count; i++) {
                const RedirectPlan *item = &plan->redirects[i];

                text_add(&all, str_format("%s/%u:%u-%u", net_address_text(&item->address, text),
                                          item->prefix, item->first, item->last));
        }
        return all;
}

#define REDIRECT "198.18.0.2/1 fd00:686f:6c74::2/1"
#define NAME0 "198.18.1.0/443 fd00:686f:6c74::100/443"
#define NAME1 "198.18.1.1/443 fd00:686f:6c74::101/443"
#define OWN_PROXY "198.18.0.1/3128"

/* Rules (one a word), an imported port or "", and the expected plan. */
static const struct {
        const char *rules, *imports, *listeners, *routes;
        bool proxy;
} cases[] = {
        { "", "", "", "" },
        /* A name has an address of its own, in each family. */
        { "a.example:443", "", NAME0, "" },
        { "a.example:443 b.example:443", "", NAME0 " " NAME1, "" },
        { "a.example:443 a.example:443", "", NAME0, "" },
        { "a.example:442-443", "",
          "198.18.1.0/442 fd00:686f:6c74::100/442 198.18.1.0/443 fd00:686f:6c74::100/443", "" },
        /* One address. */
        { "192.0.2.1:5432", "", "192.0.2.1/5432", "192.0.2.1/32" },
        { "[2001:db8::1]:5432", "", "2001:db8::1/5432", "2001:db8::1/128" },
        /* A wildcard and a block take the port of every address, and of the names. */
        { "*.a.example:443", "", "0.0.0.0/443 ::/443", "" },
        { "192.0.2.0/24:443", "", "0.0.0.0/443 ::/443", "192.0.2.0/24" },
        { "a.example:443 *.a.example:443", "", "0.0.0.0/443 ::/443", "" },
        { "192.0.2.1:443 *.a.example:443", "", "0.0.0.0/443 ::/443", "192.0.2.1/32" },
        { "a.example:443 *.a.example:80", "", NAME0 " 0.0.0.0/80 ::/80", "" },
        /* An imported port is on the loopback, unless a listener takes it of every address. */
        { "", "5432", "127.0.0.1/5432 ::1/5432", "" },
        { "", "5432:5433", "127.0.0.1/5433 ::1/5433", "" },
        { "*.a.example:5432", "5432", "0.0.0.0/5432 ::/5432", "" },
        /* The same holds for the proxy. */
        { "a.example:443", "", NAME0 " " OWN_PROXY, "", true },
        { "*.a.example:3128", "", "0.0.0.0/3128 ::/3128", "", true },
};

static void rules_read(const char *words, NetRules *ret) {
        _cleanup_free_ char *text = strdup(words);
        char *rest = text, *word;
        const char *why = "";

        while ((word = strsep(&rest, " ")))
                if (word[0] && net_rules_add(ret, word, &why) < 0)
                        fail_msg("%s %s", word, why);
}

static void test_plans(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(net_rules_clear) NetRules rules = { 0 };
                _cleanup_free_ char *listeners = NULL, *routes = NULL;
                const bool imports = cases[i].imports[0];
                const char *why = "";
                NetPort port = { 0 };
                NetPlan plan;

                rules_read(cases[i].rules, &rules);
                if (imports)
                        assert_int_equal(net_import_parse(cases[i].imports, &port, &why), 0);
                assert_int_equal(net_plan_make(&rules, &port, imports, &plan), 0);
                if (cases[i].proxy)
                        assert_int_equal(net_plan_add_proxy(&plan, &rules), 0);
                listeners = listeners_text(&plan);
                routes = routes_text(&plan);
                if (!streq(listeners, cases[i].listeners) || !streq(routes, cases[i].routes))
                        fail_msg("%s: %s; %s", cases[i].rules, listeners, routes);
                net_plan_clear(&plan);
        }
}

/* Rules (one a word), an imported port or "", and the expected redirects and listeners. */
static const struct {
        const char *rules, *imports, *redirects, *listeners;
        bool proxy;
} wide_cases[] = {
        /* An exact name: only its own addresses. */
        { "a.example:*", "", "198.18.1.0/32:1-65535 fd00:686f:6c74::100/128:1-65535", REDIRECT },
        { "a.example:443 b.example:1000-1999", "",
          "198.18.1.1/32:1000-1999 fd00:686f:6c74::101/128:1000-1999", NAME0 " " REDIRECT },
        { "a.example:* a.example:*", "", "198.18.1.0/32:1-65535 fd00:686f:6c74::100/128:1-65535",
          REDIRECT },
        /* A wildcard: all addresses of names. */
        { "*.a.example:*", "", "198.18.0.0/15:1-65535 fd00:686f:6c74::/64:1-65535", REDIRECT },
        /* A block, and one address. */
        { "10.0.0.0/8:*", "", "10.0.0.0/8:1-65535", REDIRECT },
        { "[2001:db8::1]:*", "", "2001:db8::1/128:1-65535", REDIRECT },
        /* A redirect takes no port of another rule, of an import or of the proxy. */
        { "*.a.example:* a.example:443", "", "198.18.0.0/15:1-65535 fd00:686f:6c74::/64:1-65535",
          REDIRECT " " NAME0 },
        { "*.a.example:* *.b.example:443", "", "198.18.0.0/15:1-65535 fd00:686f:6c74::/64:1-65535",
          REDIRECT " 0.0.0.0/443 ::/443" },
        { "*.a.example:*", "5432", "198.18.0.0/15:1-65535 fd00:686f:6c74::/64:1-65535",
          REDIRECT " 127.0.0.1/5432 ::1/5432 " OWN_PROXY, true },
};

static void test_rules_with_many_ports_are_redirected(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(wide_cases); i++) {
                _cleanup_(net_rules_clear) NetRules rules = { 0 };
                _cleanup_free_ char *listeners = NULL, *redirects = NULL;
                const bool imports = wide_cases[i].imports[0];
                const char *why = "";
                NetPort port = { 0 };
                NetPlan plan;

                rules_read(wide_cases[i].rules, &rules);
                if (imports)
                        assert_int_equal(net_import_parse(wide_cases[i].imports, &port, &why), 0);
                assert_int_equal(net_plan_make(&rules, &port, imports, &plan), 0);
                if (wide_cases[i].proxy)
                        assert_int_equal(net_plan_add_proxy(&plan, &rules), 0);
                listeners = listeners_text(&plan);
                redirects = redirects_text(&plan);
                if (!streq(listeners, wide_cases[i].listeners) ||
                    !streq(redirects, wide_cases[i].redirects))
                        fail_msg("%s: %s; %s", wide_cases[i].rules, redirects, listeners);
                net_plan_clear(&plan);
        }
}

/* Rules, and the numbers of listeners and of redirects. */
static const struct {
        const char *rules;
        size_t listeners, redirects;
} limits[] = {
        { "192.0.2.1:1001-1512", 512, 0 },
        { "192.0.2.1:1001-1513", 2, 1 },
        { "a.example:1001-1256", 512, 0 },
        { "a.example:1001-1257", 2, 2 },
        { "a.example:1001-1256 b.example:80", 4, 2 },
        { "192.0.2.1:1001-1200 192.0.2.2:1001-1200 192.0.2.3:1001-1100", 500, 0 },
        { "192.0.2.1:1001-1200 192.0.2.2:1001-1200 192.0.2.3:1001-1120", 122, 2 },
};

static void test_the_rules_with_the_most_ports_are_redirected_first(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
                _cleanup_(net_rules_clear) NetRules rules = { 0 };
                NetPlan plan;

                rules_read(limits[i].rules, &rules);
                assert_int_equal(net_plan_make(&rules, NULL, 0, &plan), 0);
                if (plan.listeners_count != limits[i].listeners ||
                    plan.redirects_count != limits[i].redirects)
                        fail_msg("%s: %zu %zu", limits[i].rules, plan.listeners_count,
                                 plan.redirects_count);
                net_plan_clear(&plan);
        }
}

static void test_more_imported_ports_than_listeners(void **state) {
        NetPort ports[NET_LISTENERS_MAX / 2 + 1] = { 0 };
        const NetRules rules = { 0 };
        NetPlan plan;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(ports); i++)
                ports[i].inside = (uint16_t)(i + 1);
        assert_int_equal(net_plan_make(&rules, ports, ELEMENTSOF(ports), &plan), -E2BIG);
        assert_int_equal(net_plan_make(&rules, ports, ELEMENTSOF(ports) - 1, &plan), 0);
        net_plan_clear(&plan);
}

static void test_names_have_their_numbers_in_order(void **state) {
        _cleanup_(net_rules_clear) NetRules rules = { 0 };
        NetPlan plan;

        (void)state;
        rules_read("b.example:1 *.c.example:2 a.example:1 b.example:3", &rules);
        assert_int_equal(net_plan_make(&rules, NULL, 0, &plan), 0);
        assert_int_equal(plan.names_count, 2);
        assert_string_equal(plan.names[0], "b.example");
        assert_string_equal(plan.names[1], "a.example");
        net_plan_clear(&plan);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plans),
                cmocka_unit_test(test_rules_with_many_ports_are_redirected),
                cmocka_unit_test(test_the_rules_with_the_most_ports_are_redirected_first),
                cmocka_unit_test(test_more_imported_ports_than_listeners),
                cmocka_unit_test(test_names_have_their_numbers_in_order),
        };

        return cmocka_run_group_tests_name("listeners", tests, NULL, NULL);
}
