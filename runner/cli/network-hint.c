/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/network-hint.h"

#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "base/util.h"

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
/* A program of the sandbox refuses connections, too. */
static const char *const own[] = { "127.0.0.1", "localhost", "::1" };

static bool network_hint_find(const char *text, size_t length, const char *word) {
        const size_t size = strlen(word);

        for (size_t i = 0; i + size <= length; i++)
                if (strncasecmp(text + i, word, size) == 0)
                        return true;
        return false;
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

void network_hint_print(const char *mode, bool told, const char *text, size_t length, FILE *out) {
        if (streq(mode, "none") &&
            (FINDS(text, length, lookups) || FINDS(text, length, unreachable)))
                (void)fputs("holt: the sandbox has no network\n  Allow the hosts that the command "
                            "needs: --net NAME:PORT, or a set such as --net @python; \"holt "
                            "policy list\" lists the sets\n",
                            out);
        else if (streq(mode, "allow") && !told && network_hint_finds_peer(text, length))
                (void)fputs("holt: the network has only the hosts and ports of its rules; a "
                            "connection to any other fails at once\n  If the command needs "
                            "another, allow it: --net NAME:PORT, or --net ADDRESS:PORT\n",
                            out);
}
