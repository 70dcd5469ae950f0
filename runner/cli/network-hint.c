/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/network-hint.h"

#include <string.h>

#include "base/strings.h"
#include "base/util.h"
#include "outcome/network-words.h"
#include "policy/net/rules.h"
#include "policy/policy.h"

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
                const char *found = network_words_find(text, length, before[i]);
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
        if (hint->asked)
                (void)fputs(
                        ": the project's .holt.json has rules for one, but can only narrow yours",
                        out);
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
        if (!network_words_missed(hint->mode, hint->text, hint->length))
                return;
        if (hint->mode == NETWORK_NONE)
                network_hint_print_none(hint, out);
        else if (!hint->told)
                network_hint_print_rules(hint->session, out);
}
