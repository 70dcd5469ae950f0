/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/net/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "base/util.h"
#include "policy/net/text.h"

enum { PORT_MAX = 65535 };

/* --- names --- */

static bool name_byte_valid(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static char name_lower(char c) {
        return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Writes the usual form to ret, which has room for NET_NAME_MAX + 1 bytes. */
static int name_fold(const char *name, size_t length, char *ret, const char **ret_why) {
        size_t label = 0;

        if (length > 0 && name[length - 1] == '.')
                length--;
        if (length == 0)
                return error_why(ret_why, "has no name; write NAME:PORT");
        if (length > NET_NAME_MAX)
                return error_why(ret_why, "has a name of more than 253 bytes");
        for (size_t i = 0; i < length; i++) {
                ret[i] = name_lower(name[i]);
                if (ret[i] == '.' && label == 0)
                        return error_why(ret_why, "has an empty part between two dots, or before "
                                                  "the first dot");
                if (ret[i] != '.' && !name_byte_valid(ret[i]))
                        return error_why(ret_why, "has a character that no name contains; only "
                                                  "letters, digits, \"-\", \"_\" and \".\" may be "
                                                  "in a name");
                label = ret[i] == '.' ? 0 : label + 1;
                if (label > NET_LABEL_MAX)
                        return error_why(ret_why,
                                         "has more than 63 bytes between two dots of its name");
        }
        if (label == 0)
                return error_why(ret_why, "has two dots at the end of its name");
        ret[length] = '\0';
        return 0;
}

int net_name_normal(const char *name, size_t length, char ret[NET_NAME_MAX + 1]) {
        char folded[NET_NAME_MAX + 1];
        const char *why;

        if (name_fold(name, length, folded, &why) < 0)
                return -EINVAL;
        memcpy(ret, folded, strlen(folded) + 1);
        return 0;
}

/* The top-level domains of real names have a letter (RFC 3696). */
bool net_name_numeric(const char *name) {
        const char *dot = strrchr(name, '.'), *label = dot ? dot + 1 : name;

        if (label[0] == '0' && label[1] == 'x')
                return strspn(label + 2, "0123456789abcdef") == strlen(label + 2);
        return strspn(label, "0123456789") == strlen(label);
}

static bool name_is_below(const char *name, const char *parent) {
        size_t length = strlen(name), tail = strlen(parent);

        return length > tail + 1 && name[length - tail - 1] == '.' &&
               streq(name + length - tail, parent);
}

/* Reads NAME or *.NAME. */
static int rule_read_name(NetRule *rule, const char *host, size_t length, const char **ret_why) {
        int r;

        rule->kind = NET_NAME;
        if (length == 1 && host[0] == '*')
                return error_why(ret_why,
                                 "allows every name\nName the domain: *.example.org. For a "
                                 "network without rules, use --network host");
        if (length >= 2 && host[0] == '*' && host[1] == '.') {
                rule->kind = NET_WILDCARD;
                host += 2;
                length -= 2;
        }
        if (memchr(host, '*', length))
                return error_why(ret_why, "has a \"*\" that does not stand alone before the first "
                                          "dot; write *.example.org");
        r = name_fold(host, length, rule->name, ret_why);
        if (r < 0)
                return r;
        if (rule->kind == NET_WILDCARD && !strchr(rule->name, '.'))
                return error_why(ret_why, "is too wide: it allows a whole top-level domain; name "
                                          "more of it, such as *.example.org");
        if (net_name_numeric(rule->name))
                return error_why(ret_why, "is an address in an unusual form; write an IPv4 "
                                          "address as four decimal numbers, such as 192.0.2.1");
        if (streq(rule->name, "localhost") || name_is_below(rule->name, "localhost"))
                return error_why(ret_why, "names the sandbox's own loopback\nTo reach a port of "
                                          "the host's loopback, import it: --import PORT");
        return 0;
}

/* --- ports --- */

int net_port_read(const char *text, size_t length, uint16_t *ret) {
        unsigned port = 0;

        if (length == 0 || length > 5 || text[0] == '0')
                return -EINVAL;
        for (size_t i = 0; i < length; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return -EINVAL;
                port = port * 10 + (unsigned)(text[i] - '0');
        }
        if (port > PORT_MAX)
                return -EINVAL;
        *ret = (uint16_t)port;
        return 0;
}

/* Reads "443", "8000-8010" or "*". */
static int rule_read_ports(NetRule *rule, const char *text, size_t length, const char **ret_why) {
        const char *dash = memchr(text, '-', length);
        size_t first = dash ? (size_t)(dash - text) : length;

        if (length == 1 && text[0] == '*') {
                rule->first = 1;
                rule->last = PORT_MAX;
                return 0;
        }
        if (net_port_read(text, first, &rule->first) < 0)
                return error_why(ret_why, "has no valid port: write a number from 1 to 65535, a "
                                          "range such as 8000-8010, or \"*\" for all ports");
        rule->last = rule->first;
        if (dash && net_port_read(dash + 1, length - first - 1, &rule->last) < 0)
                return error_why(ret_why, "has a range of ports without a valid end; write it "
                                          "like 8000-8010");
        if (rule->last < rule->first)
                return error_why(ret_why, "has a range of ports whose end is before its start");
        return 0;
}

/* --- addresses --- */

static bool block_has_host_bits(const NetAddress *address, unsigned prefix) {
        const unsigned size = address->family == AF_INET ? 4 : 16;

        for (unsigned bit = prefix; bit < size * 8; bit++)
                if (address->bytes[bit / 8] & (0x80 >> bit % 8))
                        return true;
        return false;
}

/* Refuses blocks to which no connection is possible, and blocks written in a misleading way. */
static int rule_check_block(const NetRule *rule, const char **ret_why) {
        const NetAddress unmapped = net_address_unmapped(&rule->address);

        if (block_has_host_bits(&rule->address, rule->prefix))
                return error_why(ret_why, "has bits of a host after its prefix; write the first "
                                          "address of the block, such as 10.0.0.0/8");
        if (unmapped.family != rule->address.family)
                return error_why(ret_why, "is an IPv4 address inside an IPv6 address; write the "
                                          "IPv4 form, such as 10.0.0.1");
        if (net_address_in_pool(&rule->address) &&
            rule->prefix >= (rule->address.family == AF_INET ? NET_POOL4_PREFIX : NET_POOL6_PREFIX))
                return error_why(ret_why, "lies in a block that the sandbox uses itself "
                                          "(" NET_POOL4 "/15 and " NET_POOL6 "/64)");
        if (net_block_useless(&rule->address, rule->prefix))
                return error_why(ret_why, "cannot be the address of a server: it is unspecified, "
                                          "multicast, broadcast or reserved");
        return 0;
}

static int prefix_read(const char *text, size_t length, unsigned max, uint8_t *ret) {
        unsigned prefix = 0;

        if (length == 0 || length > 3 || (text[0] == '0' && length > 1))
                return -EINVAL;
        for (size_t i = 0; i < length; i++) {
                if (text[i] < '0' || text[i] > '9')
                        return -EINVAL;
                prefix = prefix * 10 + (unsigned)(text[i] - '0');
        }
        if (prefix > max)
                return -EINVAL;
        *ret = (uint8_t)prefix;
        return 0;
}

/* Reads "ADDRESS" and "/PREFIX", which may be empty. */
static int rule_read_block(NetRule *rule, const NetAddress *address, const char *slash,
                           size_t length, const char **ret_why) {
        const unsigned bits = address->family == AF_INET ? 32 : 128;

        rule->kind = NET_BLOCK;
        rule->address = *address;
        rule->prefix = (uint8_t)bits;
        if (length > 0 && prefix_read(slash + 1, length - 1, bits, &rule->prefix) < 0)
                return error_why(ret_why, "has no valid prefix after the \"/\"; write a number "
                                          "up to 32 for IPv4, or up to 128 for IPv6");
        return rule_check_block(rule, ret_why);
}

/* Reads "[ADDRESS]:PORTS" or "[ADDRESS]/PREFIX:PORTS". */
static int rule_read_brackets(NetRule *rule, const char *text, size_t length,
                              const char **ret_why) {
        const char *close = memchr(text, ']', length), *end = text + length, *colon;
        NetAddress address;
        int r;

        if (!close || net_address_parse(text + 1, (size_t)(close - text - 1), &address) < 0 ||
            address.family != AF_INET6)
                return error_why(ret_why, "has no valid IPv6 address in its brackets; write it "
                                          "like [2001:db8::1]:443");
        close++;
        colon = memchr(close, ':', (size_t)(end - close));
        if (!colon)
                return error_why(ret_why, "has no port; write it like [2001:db8::1]:443");
        if (close != colon && *close != '/')
                return error_why(ret_why, "has text between its address and its port");
        r = rule_read_block(rule, &address, close, (size_t)(colon - close), ret_why);
        return r < 0 ? r : rule_read_ports(rule, colon + 1, (size_t)(end - colon - 1), ret_why);
}

/* --- rules --- */

/* Refuses text that belongs to a URL, to a shell or to another script. */
static int rule_check_bytes(const char *text, size_t length, const char **ret_why) {
        if (length == 0)
                return error_why(ret_why, "is empty; write NAME:PORT");
        for (size_t i = 0; i < length; i++) {
                const unsigned char c = (unsigned char)text[i];

                if (c <= 0x20 || c == 0x7f)
                        return error_why(ret_why, "has a blank or a control character; write "
                                                  "NAME:PORT without blanks");
                if (c >= 0x80)
                        return error_why(ret_why, "has a character that is not ASCII; write the "
                                                  "form that DNS uses, which begins with xn--");
                if (c == '@')
                        return error_why(ret_why, "has a user name before an \"@\"; write only "
                                                  "NAME:PORT");
                if (c == ',')
                        return error_why(ret_why, "has a comma; write each rule as an item of its "
                                                  "own");
        }
        if (memmem(text, length, "://", 3))
                return error_why(ret_why, "is a URL; write only its host and its port, such as "
                                          "example.org:443");
        return 0;
}

/* Reads HOST of HOST:PORTS, without brackets. */
static int rule_read_host(NetRule *rule, const char *text, size_t length, bool port,
                          const char **ret_why) {
        const char *slash = memchr(text, '/', length);
        size_t first = slash ? (size_t)(slash - text) : length;
        NetAddress address;

        if (net_address_parse(text, first, &address) == 0) {
                if (!port)
                        return error_why(ret_why, "has no port; write it like "
                                                  "192.0.2.1:443");
                return rule_read_block(rule, &address, slash, length - first, ret_why);
        }
        if (slash && first > 0 && strspn(text, "0123456789.") == first)
                return error_why(ret_why, "has no valid address before the \"/\"; write a block "
                                          "like 10.0.0.0/8");
        if (slash)
                return error_why(ret_why, "has a path; rules judge only the host and the port, so "
                                          "write NAME:PORT");
        return rule_read_name(rule, text, length, ret_why);
}

/* Whether --net would take the name for a mode. A program inside can look up any name, and holt
 * then suggests a rule with this name. It must never suggest "--net host". */
static bool name_is_mode(const char *name) {
        static const char *const modes[] = { "none", "allow", "host" };

        for (size_t i = 0; i < ELEMENTSOF(modes); i++)
                if (streq(modes[i], name))
                        return true;
        return false;
}

/* Reads everything except the reason. *ret_web is true if the rule has no ports, so that 80 and 443
 * are meant. */
static int rule_read(NetRule *rule, const char *text, size_t length, bool *ret_web,
                     const char **ret_why) {
        const char *colon = memchr(text, ':', length);
        size_t host = colon ? (size_t)(colon - text) : length;
        NetAddress address;
        int r = rule_check_bytes(text, length, ret_why);

        *ret_web = false;
        if (r < 0)
                return r;
        if (text[0] == '[')
                return rule_read_brackets(rule, text, length, ret_why);
        if (net_address_parse(text, length, &address) == 0 && address.family == AF_INET6)
                return error_why(ret_why, "is an IPv6 address without brackets; write it like "
                                          "[2001:db8::1]:443");
        if (colon && memchr(colon + 1, ':', length - host - 1))
                return error_why(ret_why, "has more than one \":\"; write NAME:PORT, and an IPv6 "
                                          "address in brackets: [2001:db8::1]:443");
        r = rule_read_host(rule, text, host, colon, ret_why);
        if (r < 0)
                return r;
        if (colon)
                return rule_read_ports(rule, colon + 1, length - host - 1, ret_why);
        if (name_is_mode(rule->name))
                return error_why(ret_why, "is also a mode of the network; write the name with its "
                                          "port, such as host:443");
        *ret_web = true;
        return 0;
}

/* Splits "RULE # reason". Returns the length of RULE; *ret_reason is NULL or the reason. */
static int rule_split(const char *text, size_t *ret_length, const char **ret_reason,
                      const char **ret_why) {
        const char *hash = strchr(text, '#'), *reason = hash;
        size_t length = hash ? (size_t)(hash - text) : strlen(text);

        if (hash) {
                while (length > 0 && text[length - 1] == ' ')
                        length--;
                reason = hash + 1 + strspn(hash + 1, " ");
                if (reason[0] == '\0')
                        return error_why(ret_why, "has no reason after the \"#\"");
                if (strlen(reason) > NET_REASON_MAX)
                        return error_why(ret_why, "has a reason of more than 200 bytes");
                if (!net_text_plain(reason))
                        return error_why(ret_why, "has a control character in its reason");
        }
        *ret_length = length;
        *ret_reason = reason;
        return 0;
}

static int rules_push(NetRules *rules, const NetRule *rule, const char *reason) {
        NetRule *items = reallocarray(rules->items, rules->count + 1, sizeof(*items));

        if (!items)
                return -ENOMEM;
        rules->items = items;
        items[rules->count] = *rule;
        items[rules->count].reason = reason ? strdup(reason) : NULL;
        if (reason && !items[rules->count].reason)
                return -ENOMEM;
        rules->count++;
        return 0;
}

static int rules_add_text(NetRules *rules, const char *text, size_t length, const char *reason,
                          const char **ret_why) {
        static const uint16_t web[] = { 80, 443 };
        NetRule rule = { 0 };
        bool both;
        int r = rule_read(&rule, text, length, &both, ret_why);

        if (r < 0 || !both)
                return r < 0 ? r : rules_push(rules, &rule, reason);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(web); i++) {
                rule.first = rule.last = web[i];
                r = rules_push(rules, &rule, reason);
        }
        return r;
}

static int rules_add_set(NetRules *rules, const char *text, size_t length, const char *reason,
                         const char **ret_why) {
        _cleanup_free_ char *name = strndup(text + 1, length - 1);
        const NetSet *set = name ? net_set(name) : NULL;
        int r = 0;

        if (!name)
                return -ENOMEM;
        if (!set)
                return net_set_refuse(name, ret_why);
        for (const char *const *rule = set->rules; r == 0 && *rule; rule++)
                r = rules_add_text(rules, *rule, strlen(*rule), reason, ret_why);
        return r;
}

static void rules_truncate(NetRules *rules, size_t count) {
        while (rules->count > count)
                free(rules->items[--rules->count].reason);
}

int net_rules_add(NetRules *rules, const char *text, const char **ret_why) {
        const size_t before = rules->count;
        const char *reason;
        size_t length;
        int r = rule_split(text, &length, &reason, ret_why);

        if (r < 0)
                return r;
        r = (text[0] == '@' ? rules_add_set : rules_add_text)(rules, text, length, reason, ret_why);
        if (r < 0)
                rules_truncate(rules, before);
        return r;
}

int net_rule_check(const char *text, const char **ret_why) {
        NetRules rules = { 0 };
        int r = net_rules_add(&rules, text, ret_why);

        net_rules_clear(&rules);
        if (r == -ENOMEM)
                return error_why(ret_why, "cannot be checked: out of memory");
        return r;
}

void net_rules_clear(NetRules *rules) {
        rules_truncate(rules, 0);
        free(rules->items);
        *rules = (NetRules){ 0 };
}

/* --- judging --- */

static bool rule_names(const NetRule *rule, const char *name) {
        if (rule->kind == NET_WILDCARD)
                return name_is_below(name, rule->name);
        return rule->kind == NET_NAME && streq(rule->name, name);
}

static bool rule_has_port(const NetRule *rule, uint16_t port) {
        return port >= rule->first && port <= rule->last;
}

bool net_rules_name(const NetRules *rules, const char *name) {
        for (size_t i = 0; i < rules->count; i++)
                if (rule_names(&rules->items[i], name))
                        return true;
        return false;
}

const char *net_rules_reason(const NetRules *rules, const char *name, const NetAddress *address) {
        for (size_t i = 0; i < rules->count; i++) {
                const NetRule *rule = &rules->items[i];
                const bool named = name ? rule_names(rule, name)
                                        : address && rule->kind == NET_BLOCK &&
                                                   net_address_in(address, &rule->address,
                                                                  rule->prefix);

                if (named && rule->reason)
                        return rule->reason;
        }
        return NULL;
}

const NetRule *net_rules_find(const NetRules *rules, const char *name, uint16_t port) {
        for (size_t i = 0; i < rules->count; i++)
                if (rule_has_port(&rules->items[i], port) && rule_names(&rules->items[i], name))
                        return &rules->items[i];
        return NULL;
}

/* port: NULL for any. */
static const NetRule *rules_find_block(const NetRules *rules, const NetAddress *address,
                                       const uint16_t *port) {
        const NetAddress unmapped = net_address_unmapped(address);

        if (net_address_in_pool(&unmapped))
                return NULL;
        for (size_t i = 0; i < rules->count; i++) {
                const NetRule *rule = &rules->items[i];

                if (rule->kind == NET_BLOCK && (!port || rule_has_port(rule, *port)) &&
                    net_block_allows(&rule->address, rule->prefix, &unmapped))
                        return rule;
        }
        return NULL;
}

const NetRule *net_rules_find_address(const NetRules *rules, const NetAddress *address,
                                      uint16_t port) {
        return rules_find_block(rules, address, &port);
}

bool net_rules_address(const NetRules *rules, const NetAddress *address) {
        return rules_find_block(rules, address, NULL) != NULL;
}

static bool rule_covers_host(const NetRule *outer, const NetRule *inner) {
        if ((outer->kind == NET_BLOCK) != (inner->kind == NET_BLOCK))
                return false;
        if (outer->kind == NET_BLOCK)
                return net_block_covers(&outer->address, outer->prefix, &inner->address,
                                        inner->prefix);
        if (outer->kind == inner->kind && streq(outer->name, inner->name))
                return true;
        return outer->kind == NET_WILDCARD && name_is_below(inner->name, outer->name);
}

bool net_rule_covers(const NetRule *outer, const NetRule *inner) {
        return inner->first >= outer->first && inner->last <= outer->last &&
               rule_covers_host(outer, inner);
}

/* Two hosts of rules share addresses only if one contains the other. So two rules together allow
 * the smaller host, with the ports of both. The check at the end keeps a wide block from narrowing
 * to private addresses that it does not allow. */
static bool rule_common(const NetRule *a, const NetRule *b, NetRule *ret) {
        const NetRule *inner = rule_covers_host(a, b) ? b : a;
        NetRule common = *inner;

        common.reason = NULL;
        common.first = a->first > b->first ? a->first : b->first;
        common.last = a->last < b->last ? a->last : b->last;
        if (common.first > common.last || !net_rule_covers(a, &common) ||
            !net_rule_covers(b, &common))
                return false;
        *ret = common;
        return true;
}

/* Returns the reason of the rule that the narrower one keeps: its own, or that of the wider rule.
 */
static const char *rule_common_reason(const NetRule *rule, const NetRule *allowed) {
        return rule->reason ? rule->reason : allowed->reason;
}

static bool rules_cover(const NetRules *rules, const NetRule *rule) {
        for (size_t i = 0; i < rules->count; i++)
                if (net_rule_covers(&rules->items[i], rule))
                        return true;
        return false;
}

int net_rules_narrow(NetRules *rules, const NetRules *allowed, const char *text,
                     const char **ret_why) {
        const size_t before = rules->count;
        NetRules wanted = { 0 };
        int r = net_rules_add(&wanted, text, ret_why);

        for (size_t i = 0; r == 0 && i < wanted.count * allowed->count; i++) {
                const NetRule *a = &wanted.items[i / allowed->count];
                const NetRule *b = &allowed->items[i % allowed->count];
                NetRule common;

                if (rule_common(a, b, &common) && !rules_cover(rules, &common))
                        r = rules_push(rules, &common, rule_common_reason(a, b));
        }
        net_rules_clear(&wanted);
        if (r < 0)
                rules_truncate(rules, before);
        return r;
}

/* --- text --- */

static char *rule_host_text(const NetRule *rule) {
        const bool v4 = rule->address.family == AF_INET;
        char address[NET_ADDRESS_TEXT], prefix[8] = "";

        if (rule->kind != NET_BLOCK)
                return str_format("%s%s", rule->kind == NET_WILDCARD ? "*." : "", rule->name);
        if (rule->prefix != (v4 ? 32 : 128))
                (void)snprintf(prefix, sizeof(prefix), "/%u", (unsigned)rule->prefix);
        (void)net_address_text(&rule->address, address);
        return str_format(v4 ? "%s%s" : "[%s]%s", address, prefix);
}

char *net_rule_text(const NetRule *rule) {
        _cleanup_free_ char *host = rule_host_text(rule);

        if (!host)
                return NULL;
        if (rule->first == 1 && rule->last == PORT_MAX)
                return str_format("%s:*", host);
        if (rule->first == rule->last)
                return str_format("%s:%u", host, (unsigned)rule->first);
        return str_format("%s:%u-%u", host, (unsigned)rule->first, (unsigned)rule->last);
}
