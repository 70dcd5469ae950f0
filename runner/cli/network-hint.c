/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/network-hint.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

/* Messages of curl, git, glibc, node, apt, pip, Rust, Go, Java and the kernel, in any case. */
static const char *const messages[] = {
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
        "network is unreachable",
        "network unreachable",
};

static bool network_hint_find(const char *text, size_t length, const char *word) {
        const size_t size = strlen(word);

        for (size_t i = 0; i + size <= length; i++)
                if (strncasecmp(text + i, word, size) == 0)
                        return true;
        return false;
}

void network_hint_print(const char *text, size_t length, FILE *out) {
        for (size_t i = 0; text && i < ELEMENTSOF(messages); i++)
                if (network_hint_find(text, length, messages[i])) {
                        (void)fputs("holt: the sandbox has no network, and in this version no "
                                    "option gives it one\n  Download what the command needs "
                                    "outside, and show it inside: --ro DIR\n",
                                    out);
                        return;
                }
}
