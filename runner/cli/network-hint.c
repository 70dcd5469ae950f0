/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/network-hint.h"

#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "base/util.h"
#include "policy/net/rules.h"

/* Messages of curl, git, glibc, node, apt, pip, Rust, Go, Java and the kernel, in any case. */
static const char *const lookups[] = {
        "could not resolve host",
        "unable to resolve host",
        "name resolution",
        "name or service not known",
        "temporary failure resolving",
        "eai_again",
        "getaddrinfo enotfound",
        "no matching distribution found",
        "failed to lookup address information",
        "dial tcp: lookup",
        "unknownhostexception",
};

/* An address without a route, or a port without a listener. */
static const char *const unreachable[] = {
        "network is unreachable",
        "network unreachable",
        "enetunreach",
};
static const char *const refused[] = {
        "connection refused",
        "couldn't connect to server",
        "econnrefused",
};
/* These names mean the sandbox itself: if no server listens inside, connections are refused,
 * too. */
static const char *const own[] = { "127.0.0.1", "localhost", "::1" };

/* Returns where the word begins, or NULL. */
static const char *network_hint_find(const char *text, size_t length, const char *word) {
        const size_t size = strlen(word);

        for (size_t i = 0; i + size <= length; i++)
                if (strncasecmp(text + i, word, size) == 0)
                        return text + i;
        return NULL;
}

static bool network_hint_find_any(const char *text, size_t length, const char *const *words,
                                  size_t count) {
        for (size_t i = 0; text && i < count; i++)
                if (network_hint_find(text, length, words[i]))
                        return true;
        return false;
}

#define FINDS(text, length, words) network_hint_find_any(text, length, words, ELEMENTSOF(words))

static bool network_hint_finds_peer(const char *text, size_t length) {
        return FINDS(text, length, unreachable) ||
               (FINDS(text, length, refused) && !FINDS(text, length, own));
}

bool network_hint_finds(const char *text, size_t length) {
        return FINDS(text, length, lookups) || network_hint_finds_peer(text, length);
}

static bool network_hint_is_host(char byte) {
        return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
               (byte >= 'A' && byte <= 'Z') || byte == '.' || byte == '-';
}

/* Copies the host that the command could not resolve, as curl, git and node name it. The text is
 * the command's, so the function returns false for anything that is no name for a rule. */
static bool network_hint_host(const char *text, size_t length, char ret[NET_NAME_MAX + 1]) {
        static const char *const before[] = { "could not resolve host: ", "getaddrinfo enotfound ",
                                              "getaddrinfo eai_again " };
        const char *ignored;

        for (size_t i = 0; text && i < ELEMENTSOF(before); i++) {
                const char *found = network_hint_find(text, length, before[i]);
                const char *host = found ? found + strlen(before[i]) : NULL;
                const size_t left = host ? length - (size_t)(host - text) : 0;
                size_t size = 0;

                while (size < left && size < NET_NAME_MAX && network_hint_is_host(host[size]))
                        size++;
                if (size == 0)
                        continue;
                (void)snprintf(ret, NET_NAME_MAX + 1, "%.*s", (int)size, host);
                return net_rule_check(ret, &ignored) == 0;
        }
        return false;
}

static void network_hint_print_none(const NetworkHint *hint, FILE *out) {
        const char *session = hint->session;
        char host[NET_NAME_MAX + 1];

        (void)fputs("holt: the sandbox has no network", out);
        if (hint->by_project) {
                (void)fputs(", because the project's .holt.json says so; change it there\n", out);
                return;
        }
        (void)fputs("\n  Allow the hosts that the command needs: ", out);
        if (session)
                (void)fprintf(out, "holt stop %s, then holt allow %s net:%s, or a set such as net:",
                              session, session,
                              network_hint_host(hint->text, hint->length, host) ? host
                                                                                : "NAME:PORT");
        else
                (void)fputs("--net NAME:PORT, or a set such as --net ", out);
        (void)fputs("@python; \"holt policy list\" lists the sets\n", out);
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

void network_hint_print(const NetworkHint *hint, FILE *out) {
        const char *text = hint->text;
        const size_t length = hint->length;

        if (streq(hint->mode, "none") &&
            (FINDS(text, length, lookups) || FINDS(text, length, unreachable)))
                network_hint_print_none(hint, out);
        else if (streq(hint->mode, "allow") && !hint->told && network_hint_finds_peer(text, length))
                network_hint_print_rules(hint->session, out);
}
