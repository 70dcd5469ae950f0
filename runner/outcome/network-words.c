/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/network-words.h"

#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "policy/policy.h"

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

const char *network_words_find(const char *text, size_t length, const char *word) {
        const size_t size = strlen(word);

        for (size_t i = 0; text && i + size <= length; i++)
                if (strncasecmp(text + i, word, size) == 0)
                        return text + i;
        return NULL;
}

static bool network_words_any(const char *text, size_t length, const char *const *words,
                              size_t count) {
        for (size_t i = 0; i < count; i++)
                if (network_words_find(text, length, words[i]))
                        return true;
        return false;
}

#define FINDS(text, length, words) network_words_any(text, length, words, ELEMENTSOF(words))

bool network_words_missed(unsigned mode, const char *text, size_t length) {
        switch (mode) {
        case NETWORK_NONE:
                return FINDS(text, length, lookups) || FINDS(text, length, unreachable);
        case NETWORK_ALLOW:
                return FINDS(text, length, unreachable) ||
                       (FINDS(text, length, refused) && !FINDS(text, length, own));
        default:
                return false;
        }
}

/* Reads the port after a host: ":80", "]:80" or " port 80". Returns 0 if there is none. */
static uint16_t network_words_port(const char *text, size_t length) {
        static const char *const before[] = { ":", "]:", " port ", "\", port " };
        uint32_t port = 0;

        for (size_t i = 0; i < ELEMENTSOF(before); i++) {
                const size_t size = strlen(before[i]);

                if (size >= length || strncmp(text, before[i], size) != 0)
                        continue;
                for (size_t at = size; at < length && text[at] >= '0' && text[at] <= '9'; at++)
                        if ((port = port * 10 + (uint32_t)(text[at] - '0')) > UINT16_MAX)
                                return 0;
                if (port)
                        return (uint16_t)port;
        }
        return 0;
}

uint16_t network_words_own_port(const char *text, size_t length) {
        if (!FINDS(text, length, refused))
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(own); i++) {
                const char *at = network_words_find(text, length, own[i]);
                const char *end = at ? at + strlen(own[i]) : NULL;
                uint16_t port = at ? network_words_port(end, length - (size_t)(end - text)) : 0;

                if (port)
                        return port;
        }
        return 0;
}
