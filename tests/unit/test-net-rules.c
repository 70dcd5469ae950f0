/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strings.h"
#include "policy/net/rules.h"

static NetAddress address_of(const char *text) {
        NetAddress address = { 0 };

        assert_int_equal(net_address_parse(text, strlen(text), &address), 0);
        return address;
}

static void rules_of(NetRules *rules, const char *text) {
        const char *why = "";

        if (net_rules_add(rules, text, &why) < 0)
                fail_msg("%s %s", text, why);
}

/* The texts of all rules, with a blank between them. */
static char *rules_text(const NetRules *rules) {
        char *all = str_format("%s", "");

        for (size_t i = 0; i < rules->count; i++) {
                _cleanup_free_ char *text = net_rule_text(&rules->items[i]);
                char *next = str_format("%s%s%s", all, i ? " " : "", text);

                free(all);
                all = next;
        }
        return all;
}

static void test_rules_in_their_usual_form(void **state) {
        static const struct {
                const char *rule, *text;
        } cases[] = {
                { "example.org:443", "example.org:443" },
                { "example.org", "example.org:80 example.org:443" },
                { "*.example.org", "*.example.org:80 *.example.org:443" },
                { "EXAMPLE.Org:443", "example.org:443" },
                { "example.org.:443", "example.org:443" },
                { "*.Example.ORG.:22", "*.example.org:22" },
                { "example.org:8000-8010", "example.org:8000-8010" },
                { "example.org:443-443", "example.org:443" },
                { "example.org:*", "example.org:*" },
                { "example.org:1-65535", "example.org:*" },
                { "xn--bcher-kva.example:443", "xn--bcher-kva.example:443" },
                { "_dmarc.example.org:1", "_dmarc.example.org:1" },
                { "a-.-b.example:1", "a-.-b.example:1" },
                { "registry:5000", "registry:5000" },
                { "host:443", "host:443" },
                { "*.host.example:443", "*.host.example:443" },
                { "1.example.org:1", "1.example.org:1" },
                { "0x7f.example:1", "0x7f.example:1" },
                { "192.0.2.1:443", "192.0.2.1:443" },
                { "192.0.2.1/32:443", "192.0.2.1:443" },
                { "10.0.0.0/8:5432", "10.0.0.0/8:5432" },
                { "0.0.0.0/0:443", "0.0.0.0/0:443" },
                { "127.0.0.1:5432", "127.0.0.1:5432" },
                { "169.254.169.254:80", "169.254.169.254:80" },
                { "[2001:DB8::1]:443", "[2001:db8::1]:443" },
                { "[2001:db8::]/32:1-2", "[2001:db8::]/32:1-2" },
                { "[::]/0:443", "[::]/0:443" },
                { "[::1]:*", "[::1]:*" },
                { "example.org:443 # the build needs it", "example.org:443" },
                { "example.org:443 # f\xc3\xbcr \xe2\x82\xac", "example.org:443" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(net_rules_clear) NetRules rules = { 0 };
                _cleanup_free_ char *text = NULL;
                const char *why = NULL;

                rules_of(&rules, cases[i].rule);
                text = rules_text(&rules);
                assert_string_equal(text, cases[i].text);
                assert_int_equal(net_rule_check(cases[i].rule, &why), 0);
        }
}

#define LABEL63 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff123"
#define LABELS127 LABEL63 "." LABEL63

/* Texts that are no rule, and a part of the reason. */
static const struct {
        const char *rule, *why;
} wrong_texts[] = {
        { "", "is empty" },
        { ":443", "no name" },
        { ".:443", "no name" },
        { " example.org:443", "blank" },
        { "example.org :443", "blank" },
        { "example.org:443 ", "blank" },
        { "exam\tple.org:443", "control" },
        { "exam\x7fple.org:443", "control" },
        { "b\xc3\xbc"
          "cher.example:443",
          "xn--" },
        { "\xef\xbd\x85xample.org:443", "xn--" }, /* a full-width letter */
        { "example\xe3\x80\x82org:443", "xn--" }, /* an ideographic full stop */
        { "user@example.org:443", "user name" },
        { "user:pw@example.org:443", "user name" },
        { "example.org:443@evil.example", "user name" },
        { "https://example.org", "URL" },
        { "https://example.org:443/", "URL" },
        { "example.org/path", "path" },
        { "example.org:443/path", "no valid port" },
        { "example.org,example.net:443", "comma" },
        { "exa%6dple.org:443", "character" },
        { "exa\\mple.org:443", "character" },
        { "example.org?:443", "character" },
        { "a..b:443", "empty part" },
        { ".example.org:443", "empty part" },
        { "example.org..:443", "two dots" },
        { LABEL63 "4.example:443", "63" },
        { LABELS127 "." LABEL63 ".a." LABEL63 ":443", "253" },
        { "*:443", "every name" },
        { "*", "every name" },
        { "*.:443", "no name" },
        { "*.*:443", "does not stand alone" },
        { "*.com:443", "too wide" },
        { "*.COM.:443", "too wide" },
        { "a.example:1 # \xc2\x9b"
          "31mred",
          "control character" },
        { "a.example:1 # txt.\xe2\x80\xae"
          "exe",
          "control character" },
        { "a.example:1 # \xe2\x81\xa6", "control character" },
        { "host", "is also a mode" },
        { "NONE", "is also a mode" },
        { "allow. # copied", "is also a mode" },
        { "**.example.org:443", "does not stand alone" },
        { "*example.org:443", "does not stand alone" },
        { "a.*.example.org:443", "does not stand alone" },
        { "*.a.*.org:443", "does not stand alone" },
        { "localhost:80", "--import" },
        { "LocalHost.:80", "--import" },
        { "db.localhost:80", "--import" },
        { "*.db.localhost:80", "--import" },
        { "2130706433:80", "unusual form" },
        { "0177.0.0.1:80", "unusual form" },
        { "0x7f.1:80", "unusual form" },
        { "0x7f.0x0.0x0.0x1:80", "unusual form" },
        { "0X7F000001:80", "unusual form" },
        { "0x:80", "unusual form" },
        { "127.1:80", "unusual form" },
        { "127.0.0.1.:80", "unusual form" },
        { "256.1.1.1:80", "unusual form" },
        { "1.2.3.4.5:80", "unusual form" },
        { "*.0.0.1:80", "unusual form" },
        { "192.0.2.1", "has no port" },
        { "10.0.0.0/8", "has no port" },
        { "[2001:db8::1]", "has no port" },
        { "[2001:db8::]/32", "has no port" },
        { "10.0.0.1/8:443", "bits of a host" },
        { "0.0.0.1/0:443", "bits of a host" },
        { "[2001:db8::1]/64:443", "bits of a host" },
        { "10.0.0.0/33:443", "prefix" },
        { "10.0.0.0/08:443", "prefix" },
        { "10.0.0.0/:443", "prefix" },
        { "10.0.0.0/-1:443", "prefix" },
        { "10.0.0.0/255.0.0.0:443", "prefix" },
        { "10/8:443", "no valid address" },
        { "010.0.0.0/8:443", "no valid address" },
        { "[2001:db8::]/129:443", "prefix" },
        { "[::ffff:10.0.0.1]:443", "IPv4 form" },
        { "[::ffff:0:0]/96:443", "IPv4 form" },
        { "[::FFFF:a00:1]:443", "IPv4 form" },
        { "[fe80::1%eth0]:443", "brackets" },
        { "[192.0.2.1]:443", "brackets" },
        { "[2001:db8::1:443", "brackets" },
        { "[]:443", "brackets" },
        { "[2001:db8::1]443", "has no port" },
        { "[2001:db8::1]x:443", "text between" },
        { "2001:db8::1", "without brackets" },
        { "2001:db8::1:443", "without brackets" },
        { "::1", "without brackets" },
        { "example.org:443:443", "more than one" },
        { "2001:db8:::443", "more than one" },
        { "198.18.0.1:53", "uses itself" },
        { "198.18.0.0/15:*", "uses itself" },
        { "[fd00:686f:6c74::1]:53", "uses itself" },
        { "0.0.0.0:443", "cannot be the address of a server" },
        { "224.0.0.1:443", "cannot be the address of a server" },
        { "255.255.255.255:443", "cannot be the address of a server" },
        { "[::]:443", "cannot be the address of a server" },
        { "[ff02::1]:443", "cannot be the address of a server" },
        { "example.org:", "no valid port" },
        { "example.org:0", "no valid port" },
        { "example.org:65536", "no valid port" },
        { "example.org:0443", "no valid port" },
        { "example.org:+443", "no valid port" },
        { "example.org:https", "no valid port" },
        { "example.org:99999999999999999999", "no valid port" },
        { "example.org:-", "no valid port" },
        { "example.org:1-", "valid end" },
        { "example.org:1-65536", "valid end" },
        { "example.org:1-2-3", "valid end" },
        { "example.org:1-*", "valid end" },
        { "example.org:8010-8000", "before its start" },
        { "example.org:443 #", "no reason" },
        { "example.org:443 #  ", "no reason" },
        { "example.org:443 # a\x1b[31mb", "control" },
        { " # reason", "is empty" },
        { "@", "not a known set" },
        { "@nosuchset", "not a known set; the sets are @alpine, @arch, " },
        { "@nmp", "not a known set; did you mean @npm?" },
        { "@PYTHON", "not a known set" },
        { "@python:443", "not a known set" },
        { "@python @npm", "not a known set" },
};

static void test_other_texts_are_refused(void **state) {
        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(wrong_texts); i++) {
                const char *why = "is allowed";

                if (net_rule_check(wrong_texts[i].rule, &why) != -EINVAL ||
                    !strstr(why, wrong_texts[i].why))
                        fail_msg("\"%s\" %s (expected: %s)", wrong_texts[i].rule, why,
                                 wrong_texts[i].why);
        }
}

static void test_long_names_and_reasons(void **state) {
        _cleanup_free_ char *reason = str_format("a.example:1 # %0*d", NET_REASON_MAX, 0);
        _cleanup_free_ char *longer = str_format("a.example:1 # %0*d", NET_REASON_MAX + 1, 0);
        const char *why = NULL;

        (void)state;
        assert_int_equal(strlen(LABEL63), NET_LABEL_MAX);
        assert_int_equal(net_rule_check(LABEL63 "." LABEL63 ".example:443", &why), 0);
        assert_int_equal(net_rule_check(reason, &why), 0);
        assert_int_equal(net_rule_check(longer, &why), -EINVAL);
}

static void test_names_from_outside(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
                const char *normal; /* NULL if it is refused */
        } cases[] = {
                { "Example.ORG", 11, "example.org" },
                { "example.org.", 12, "example.org" },
                { "a_b-c.9", 7, "a_b-c.9" },
                { "", 0, NULL },
                { ".", 1, NULL },
                { "..", 2, NULL },
                { "a..b", 4, NULL },
                { "a.b..", 5, NULL },
                { "a\0b", 3, NULL },
                { "a.example\0.b", 12, NULL },
                { "a b", 3, NULL },
                { "a\n", 2, NULL },
                { "\xc3\xa9", 2, NULL },
                { "*.a", 3, NULL },
                { "a:1", 3, NULL },
                { "a/b", 3, NULL },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char name[NET_NAME_MAX + 1] = "unchanged";
                int r = net_name_normal(cases[i].bytes, cases[i].length, name);

                assert_int_equal(r, cases[i].normal ? 0 : -EINVAL);
                assert_string_equal(name, cases[i].normal ? cases[i].normal : "unchanged");
        }
}

static void test_rules_judge_names(void **state) {
        _cleanup_(net_rules_clear) NetRules rules = { 0 };
        static const struct {
                const char *name;
                uint16_t port;
                bool named, allowed;
        } cases[] = {
                { "example.org", 443, true, true },
                { "example.org", 80, true, false },
                { "www.example.org", 443, false, false },
                { "xexample.org", 443, false, false },
                { "github.com", 443, false, false },
                { "api.github.com", 443, true, true },
                { "a.b.github.com", 443, true, true },
                { "xgithub.com", 443, false, false },
                { ".github.com", 443, false, false },
                { "github.com.evil.example", 443, false, false },
                { "web.example", 80, true, true },
                { "web.example", 443, true, true },
                { "web.example", 81, true, false },
                { "range.example", 7999, true, false },
                { "range.example", 8000, true, true },
                { "range.example", 8010, true, true },
                { "range.example", 8011, true, false },
                { "192.0.2.1", 443, false, false },
                { "", 443, false, false },
        };

        (void)state;
        rules_of(&rules, "example.org:443");
        rules_of(&rules, "*.github.com:443");
        rules_of(&rules, "web.example");
        rules_of(&rules, "range.example:8000-8010");
        rules_of(&rules, "192.0.2.0/24:443");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const bool found = net_rules_find(&rules, cases[i].name, cases[i].port) != NULL;

                if (net_rules_name(&rules, cases[i].name) != cases[i].named ||
                    found != cases[i].allowed)
                        fail_msg("%s:%u", cases[i].name, (unsigned)cases[i].port);
        }
}

static void test_rules_judge_addresses(void **state) {
        _cleanup_(net_rules_clear) NetRules rules = { 0 };
        static const struct {
                const char *address;
                uint16_t port;
                bool allowed, near; /* near: another port of it is allowed */
        } cases[] = {
                { "10.1.2.3", 5432, true },
                { "10.1.2.3", 5433, false, .near = true },
                { "11.1.2.3", 5432, false, .near = true },
                { "8.8.8.8", 443, true },
                { "10.1.2.3", 443, false, .near = true },
                { "127.0.0.1", 443, false },
                { "169.254.169.254", 443, false },
                { "198.18.1.0", 443, false },
                { "::ffff:10.1.2.3", 5432, true },
                { "::ffff:127.0.0.1", 443, false },
                { "2001:db8::1", 443, true },
                { "2001:db9::1", 443, false },
                { "fd00:686f:6c74::100", 443, false },
        };

        (void)state;
        rules_of(&rules, "10.0.0.0/8:5432");
        rules_of(&rules, "0.0.0.0/0:443");
        rules_of(&rules, "[2001:db8::]/32:443");
        rules_of(&rules, "*.example.org:*");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const NetAddress address = address_of(cases[i].address);

                if ((net_rules_find_address(&rules, &address, cases[i].port) != NULL) !=
                    cases[i].allowed)
                        fail_msg("%s:%u", cases[i].address, (unsigned)cases[i].port);
                if (net_rules_address(&rules, &address) != (cases[i].allowed || cases[i].near))
                        fail_msg("%s", cases[i].address);
        }
}

static void test_an_empty_list_allows_nothing(void **state) {
        const NetAddress address = address_of("8.8.8.8");
        const NetRules rules = { 0 };

        (void)state;
        assert_false(net_rules_name(&rules, "example.org"));
        assert_null(net_rules_find(&rules, "example.org", 443));
        assert_null(net_rules_find_address(&rules, &address, 443));
}

static void test_reasons(void **state) {
        _cleanup_(net_rules_clear) NetRules rules = { 0 };

        (void)state;
        rules_of(&rules, "example.org # for the build, # 7");
        rules_of(&rules, "@python #  packages");
        assert_string_equal(net_rules_find(&rules, "example.org", 80)->reason,
                            "for the build, # 7");
        assert_string_equal(net_rules_find(&rules, "example.org", 443)->reason,
                            "for the build, # 7");
        assert_string_equal(net_rules_find(&rules, "pypi.org", 443)->reason, "packages");
}

static void test_a_refused_rule_changes_nothing(void **state) {
        _cleanup_(net_rules_clear) NetRules rules = { 0 };
        const char *why = NULL;

        (void)state;
        rules_of(&rules, "example.org:443");
        assert_int_equal(net_rules_add(&rules, "example.org:0", &why), -EINVAL);
        assert_int_equal(net_rules_add(&rules, "@nosuch", &why), -EINVAL);
        assert_int_equal(rules.count, 1);
}

static void test_covering_rules(void **state) {
        static const struct {
                const char *outer, *inner;
                bool covers;
        } cases[] = {
                { "a.example:443", "a.example:443", true },
                { "a.example:*", "a.example:443", true },
                { "a.example:443", "a.example:*", false },
                { "a.example:443", "b.example:443", false },
                { "*.a.example:443", "b.a.example:443", true },
                { "*.a.example:443", "c.b.a.example:443", true },
                { "*.a.example:443", "a.example:443", false },
                { "a.example:443", "*.a.example:443", false },
                { "*.a.example:443", "*.a.example:443", true },
                { "*.a.example:443", "*.b.a.example:443", true },
                { "*.b.a.example:443", "*.a.example:443", false },
                { "b.a.example:443", "*.a.example:443", false },
                { "10.0.0.0/8:1-9", "10.1.0.0/16:2-3", true },
                { "10.1.0.0/16:1-9", "10.0.0.0/8:2-3", false },
                { "0.0.0.0/0:443", "10.0.0.1:443", false },
                { "0.0.0.0/0:443", "8.8.8.8:443", true },
                { "0.0.0.0/0:443", "a.example:443", false },
                { "a.example:443", "8.8.8.8:443", false },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(net_rules_clear) NetRules outer = { 0 }, inner = { 0 };

                rules_of(&outer, cases[i].outer);
                rules_of(&inner, cases[i].inner);
                if (net_rule_covers(outer.items, inner.items) != cases[i].covers)
                        fail_msg("%s, %s", cases[i].outer, cases[i].inner);
        }
}

static void test_narrowing(void **state) {
        static const struct {
                const char *allowed, *wanted, *result;
        } cases[] = {
                { "a.example:443", "a.example:443", "a.example:443" },
                { "a.example:443", "a.example", "a.example:443" },
                { "a.example", "a.example:*", "a.example:80 a.example:443" },
                { "a.example:443", "b.example:443", "" },
                { "a.example:1-10", "a.example:5-20", "a.example:5-10" },
                { "*.a.example:443", "b.a.example:443", "b.a.example:443" },
                { "b.a.example:443", "*.a.example:443", "b.a.example:443" },
                { "*.a.example:443", "*.b.a.example:443", "*.b.a.example:443" },
                { "*.b.a.example:443", "*.a.example:443", "*.b.a.example:443" },
                { "*.a.example:443", "a.example:443", "" },
                { "a.example:443", "*.a.example:443", "" },
                { "10.0.0.0/8:*", "10.1.0.0/16:22", "10.1.0.0/16:22" },
                { "10.1.0.0/16:22", "10.0.0.0/8:*", "10.1.0.0/16:22" },
                { "8.0.0.0/8:443", "0.0.0.0/0:443", "8.0.0.0/8:443" },
                /* The caller did not mean private addresses, and the project must not add them. */
                { "0.0.0.0/0:443", "10.0.0.0/8:443", "" },
                { "0.0.0.0/0:443", "127.0.0.1:443", "" },
                { "0.0.0.0/0:443", "169.254.169.254:443", "" },
                { "169.254.0.0/16:80", "169.254.169.254:80", "" },
                { "10.0.0.0/8:443", "0.0.0.0/0:443", "" },
                { "0.0.0.0/0:443", "a.example:443", "" },
                { "@python", "*.pythonhosted.org:443", "files.pythonhosted.org:443" },
                { "pypi.org:443", "@python", "pypi.org:443" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(net_rules_clear) NetRules allowed = { 0 }, rules = { 0 };
                _cleanup_free_ char *text = NULL;
                const char *why = NULL;

                rules_of(&allowed, cases[i].allowed);
                assert_int_equal(net_rules_narrow(&rules, &allowed, cases[i].wanted, &why), 0);
                text = rules_text(&rules);
                if (!streq(text, cases[i].result))
                        fail_msg("%s, %s: %s", cases[i].allowed, cases[i].wanted, text);
        }
}

static void test_narrowing_nothing(void **state) {
        _cleanup_(net_rules_clear) NetRules rules = { 0 };
        const NetRules none = { 0 };
        const char *why = NULL;

        (void)state;
        assert_int_equal(net_rules_narrow(&rules, &none, "a.example:443", &why), 0);
        assert_int_equal(rules.count, 0);
        assert_int_equal(net_rules_narrow(&rules, &none, "a.example:0", &why), -EINVAL);
}

static void test_every_set_parses(void **state) {
        (void)state;
        assert_true(net_sets_count > 0);
        for (size_t i = 0; i < net_sets_count; i++) {
                _cleanup_(net_rules_clear) NetRules rules = { 0 };
                _cleanup_free_ char *name = str_format("@%s", net_sets[i].name);

                rules_of(&rules, name);
                assert_true(rules.count > 0);
                assert_true(strlen(net_sets[i].description) > 0);
                assert_ptr_equal(net_set(net_sets[i].name), &net_sets[i]);
                for (size_t j = 0; j < i; j++)
                        assert_string_not_equal(net_sets[i].name, net_sets[j].name);
        }
        assert_null(net_set("nosuch"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rules_in_their_usual_form),
                cmocka_unit_test(test_other_texts_are_refused),
                cmocka_unit_test(test_long_names_and_reasons),
                cmocka_unit_test(test_names_from_outside),
                cmocka_unit_test(test_rules_judge_names),
                cmocka_unit_test(test_rules_judge_addresses),
                cmocka_unit_test(test_an_empty_list_allows_nothing),
                cmocka_unit_test(test_reasons),
                cmocka_unit_test(test_a_refused_rule_changes_nothing),
                cmocka_unit_test(test_covering_rules),
                cmocka_unit_test(test_narrowing),
                cmocka_unit_test(test_narrowing_nothing),
                cmocka_unit_test(test_every_set_parses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
