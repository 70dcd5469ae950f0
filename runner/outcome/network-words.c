/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome/network-words.h"

#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "policy/policy.h"

/* Messages in any case. Programs that look up names in the usual ways print those of glibc, musl,
 * the languages' own resolvers and curl. The last ones are of programs that give no such reason. */
static const char *const lookups[] = {
        "name resolution",
        "name or service not known",
        "no address associated with hostname",
        "name does not resolve",
        "temporary failure resolving",
        "could not resolve host",
        "couldn't resolve host",
        "unable to resolve host",
        "eai_again",
        "getaddrinfo enotfound",
        "failed to lookup address information",
        "dial tcp: lookup",
        "unknownhostexception",
        ": unknown host ",               /* Maven, ping */
        "nxdomain",                      /* Erlang, Elixir, dig */
        "host or service not provided",  /* Lua */
        "could not contact dns servers", /* c-ares */
        "dns resolution failed",         /* gRPC */
        "dns lookup error",              /* apk */
        "no servers could be reached",   /* dig, nslookup */
        ": bad address '",               /* busybox */
        "unknown mysql server host",
        "unknown server host",                              /* MariaDB */
        "no matching distribution found",                   /* pip */
        "could not reach host ",                            /* Bundler */
        "all attempts to connect to ",                      /* Poetry */
        "http 000 connection failed",                       /* conda */
        "trouble with your network connection",             /* yarn */
        "unable to load the service index for source http", /* NuGet */
        "unable to access index for repository http",       /* R */
        "got socket error trying to find package",          /* Dart */
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
        "could not connect to server",
        "connect call failed",
        "econnrefused",
};
/* These names mean the sandbox itself: if no server listens inside, connections are refused,
 * too. */
static const char *const own[] = { "127.0.0.1", "localhost", "::1" };

const char *network_words_find(const char *text, size_t length, const char *word) {
        const size_t size = strlen(word);

        for (size_t i = 0; text && i + size <= length; i++)
                if ((text[i] | 0x20) == (word[0] | 0x20) && strncasecmp(text + i, word, size) == 0)
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

/* The texts between which a host and in front of which its port stands, as curl, node, psql, bash,
 * asyncio and urllib3 write them. */
static const struct {
        const char *before, *behind;
} ports[] = {
        { "", ":" },    { "[", "]:" },       { "", " port " },     { "\"", "\", port " },
        { "'", "', " }, { "'", "', port=" }, { "/dev/tcp/", "/" },
};

/* Reads a port at the start of the text. Returns 0 if there is none. */
static uint16_t network_words_port(const char *text, size_t length) {
        uint32_t port = 0;

        for (size_t i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++)
                if ((port = port * 10 + (uint32_t)(text[i] - '0')) > UINT16_MAX)
                        return 0;
        return (uint16_t)port;
}

/* Returns the port that the text names with the host, or 0. */
static uint16_t network_words_port_of(const char *text, size_t length, const char *host) {
        for (size_t i = 0; i < ELEMENTSOF(ports); i++) {
                _cleanup_free_ char *word = str_format("%s%s%s", ports[i].before, host,
                                                       ports[i].behind);
                const char *at = word ? network_words_find(text, length, word) : NULL;
                const size_t skip = at ? (size_t)(at - text) + strlen(word) : 0;
                const uint16_t port = at ? network_words_port(text + skip, length - skip) : 0;

                if (port)
                        return port;
        }
        return 0;
}

uint16_t network_words_own_port(const char *text, size_t length) {
        uint16_t port = 0;

        for (size_t i = 0; FINDS(text, length, refused) && !port && i < ELEMENTSOF(own); i++)
                port = network_words_port_of(text, length, own[i]);
        return port;
}
