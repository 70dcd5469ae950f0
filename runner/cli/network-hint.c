/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/network-hint.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "base/util.h"
#include "outcome/network-words.h"
#include "policy/net/ports.h"
#include "policy/net/rules.h"
#include "policy/plan.h"
#include "policy/policy.h"

static bool network_hint_is_host(char byte) {
        return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
               (byte >= 'A' && byte <= 'Z') || byte == '.' || byte == '-';
}

/* Copies the host that the command could not resolve, as curl, git, node, Go, Java, wget, urllib3,
 * Ruby and PHP name it. The text is the command's, so the function returns false for anything that
 * is no name for a rule. */
static bool network_hint_host(const char *text, size_t length, char ret[NET_NAME_MAX + 1]) {
        static const char *const before[] = { "could not resolve host: ",
                                              "getaddrinfo enotfound ",
                                              "getaddrinfo eai_again ",
                                              "dial tcp: lookup ",
                                              "unknown host ",
                                              "unknownhostexception: ",
                                              "unable to resolve host address ‘",
                                              "unable to resolve host address '",
                                              "temporary failure resolving '",
                                              "failed to resolve '",
                                              "failed to open tcp connection to ",
                                              "php_network_getaddresses: getaddrinfo for ",
                                              "could not reach host " };
        const char *ignored;

        for (size_t i = 0; text && i < ELEMENTSOF(before); i++) {
                const char *found = network_words_find(text, length, before[i]);
                const char *host = found ? found + strlen(before[i]) : NULL;
                const size_t left = host ? length - (size_t)(host - text) : 0;
                size_t size = 0;

                while (size < left && size < NET_NAME_MAX && network_hint_is_host(host[size]))
                        size++;
                if (size == 0)
                        continue;
                (void)snprintf(ret, NET_NAME_MAX + 1, "%.*s", (int)size, host);
                return ret[0] != '-' && net_rule_check(ret, &ignored) == 0;
        }
        return false;
}

/* Returns "NAME URL" of the route that leads to the host, or NULL. */
static const char *network_hint_route(const NetworkHint *hint, const char *host) {
        const size_t length = strlen(host);

        for (size_t i = 0; hint->routes && i < hint->routes->count; i++) {
                const char *url = strstr(hint->routes->items[i], "://");

                if (url && strncasecmp(url + 3, host, length) == 0 && strchr(":/", url[3 + length]))
                        return hint->routes->items[i];
        }
        return NULL;
}

/* The client has ignored the URL of the route. Returns false if no route leads to the host. */
static bool network_hint_print_route(const NetworkHint *hint, FILE *out) {
        char host[NET_NAME_MAX + 1];
        const char *route = network_hint_host(hint->text, hint->length, host)
                                    ? network_hint_route(hint, host)
                                    : NULL;
        const int name = route ? (int)strcspn(route, " ") : 0;

        if (route)
                (void)fprintf(
                        out,
                        "holt: the command looked up %s, but only the route %.*s leads to it\n"
                        "  Let it use the URL http://127.0.0.1:%d/%.*s, or add %s to "
                        "terminate_tls of the route\n",
                        host, name, route, ROUTES_PORT, name, route, host);
        return route;
}

/* Prints the option for the host that the command named, if any, and for a set. */
static void network_hint_print_options(const NetworkHint *hint, FILE *out) {
        char host[NET_NAME_MAX + 1];
        const bool named = network_hint_host(hint->text, hint->length, host);
        const NetSet *set = named ? net_set_with(host) : NULL;
        const char *option = hint->session ? "net:" : "--net ";

        if (hint->session)
                (void)fprintf(out, "holt stop %s, then holt allow %s ", hint->session,
                              hint->session);
        (void)fprintf(out, "%s%s, or %s %s@%s; \"holt policy list\" lists the sets\n", option,
                      named ? host : "NAME:PORT", set ? "its whole set" : "a set such as", option,
                      set ? set->name : "python");
}

static void network_hint_print_none(const NetworkHint *hint, FILE *out) {
        (void)fputs("holt: the sandbox has no network", out);
        if (hint->by_project) {
                (void)fputs(", because the project's .holt.json says so; change it there\n", out);
                return;
        }
        if (hint->asked)
                (void)fputs(
                        ": the project's .holt.json has rules for one, but can only narrow yours",
                        out);
        (void)fputs("\n  Allow the hosts that the command needs: ", out);
        network_hint_print_options(hint, out);
}

static void network_hint_print_rules(const char *session, FILE *out) {
        (void)fputs("holt: the sandbox reaches only the hosts and ports that rules allow; "
                    "connections to others fail immediately\n  If the command needs another host "
                    "or port, allow it: ",
                    out);
        if (session)
                (void)fprintf(out, "holt allow %s net:NAME:PORT, or net:ADDRESS:PORT\n", session);
        else
                (void)fputs("--net NAME:PORT, or --net ADDRESS:PORT\n", out);
}

/* Whether the address, as the kernel prints it, is 127.0.0.1, ::1, or every address. An imported
 * port leads to no other. */
static bool network_hint_is_loopback(const char *address) {
        const uint8_t one = 1;
        char loopback4[16], loopback6[40];

        (void)snprintf(loopback4, sizeof(loopback4), "%08X", htonl(INADDR_LOOPBACK));
        (void)snprintf(loopback6, sizeof(loopback6), "%024d%08X", 0, htonl(one));
        return address[strspn(address, "0")] == '\0' || streq(address, loopback4) ||
               streq(address, loopback6);
}

/* Whether a program of the host listens on the port of TCP (proc_net_tcp). */
static bool network_hint_host_listens(const char *path, uint16_t port) {
        enum { LISTENS = 0x0a };
        FILE *file = fopen(path, "re");
        unsigned local, state;
        char line[512], address[40];
        bool found = false;

        while (file && !found && fgets(line, sizeof(line), file))
                found = sscanf(line, " %*[0-9]: %39[0-9A-F]:%x %*[0-9A-F]:%*x %x", address, &local,
                               &state) == 3 &&
                        local == port && state == LISTENS && network_hint_is_loopback(address);
        if (file)
                (void)fclose(file);
        return found;
}

/* Whether the sandbox shares the port with the host already: what listens there is holt itself, or
 * the command has reached it. */
static bool network_hint_shares(const NetworkHint *hint, uint16_t port) {
        const char *ignored;
        NetPort shared;

        for (size_t i = 0; hint->publish && i < hint->publish->count; i++)
                if (net_publish_parse(hint->publish->items[i], &shared, &ignored) == 0 &&
                    (shared.host == port || shared.inside == port))
                        return true;
        for (size_t i = 0; hint->import && i < hint->import->count; i++)
                if (net_import_parse(hint->import->items[i], &shared, &ignored) == 0 &&
                    shared.inside == port)
                        return true;
        return false;
}

/* A port of the host's loopback is not that of the sandbox. */
static void network_hint_print_port(const NetworkHint *hint, FILE *out) {
        const uint16_t port = network_words_own_port(hint->text, hint->length);

        if (!port || network_hint_shares(hint, port) ||
            (!network_hint_host_listens("/proc/self/net/tcp", port) &&
             !network_hint_host_listens("/proc/self/net/tcp6", port)))
                return;
        (void)fprintf(out,
                      "holt: a program of the host listens on port %u, which the sandbox cannot "
                      "reach\n  If the command meant that one: %s--import %u\n",
                      port, hint->session ? "holt create NAME " : "", port);
}

void network_hint_print(const NetworkHint *hint, FILE *out) {
        if (hint->mode != NETWORK_HOST)
                network_hint_print_port(hint, out);
        if (!network_words_missed(hint->mode, hint->text, hint->length))
                return;
        if (hint->mode == NETWORK_NONE) {
                if (!network_hint_print_route(hint, out))
                        network_hint_print_none(hint, out);
        } else if (!hint->told)
                network_hint_print_rules(hint->session, out);
}
