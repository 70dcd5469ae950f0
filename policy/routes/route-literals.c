/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that somebody has written into a policy itself. holt would store them with the
 * session, print them in the policy, and not mask them in responses. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "policy/routes/route-internal.h"

/* Ends of names whose values are always credentials. "_" counts as "-". */
static const char *const literal_names[] = {
        "authorization", "cookie",       "password",         "secret",     "api-key",
        "apikey",        "access-key",   "auth-key",         "secret-key", "functions-key",
        "access-token",  "api-token",    "subscription-key", "auth-token", "private-token",
        "vault-token",   "bearer-token",
};
/* Whole names of parameters. Headers such as X-Atlassian-Token are none. */
static const char *const literal_parameters[] = { "key", "token", "auth", "sig" };
/* Schemes of authentication, which make the value of any header a credential. */
static const char *const literal_schemes[] = { "bearer ", "basic ", "token ", "digest " };

/* Whether the name ends in these words. Letters before them belong to another word. */
static bool literal_ends(const char *name, const char *end) {
        const size_t length = strlen(name), size = strlen(end);
        const char *at = name + length - size;

        if (length < size || (at > name && !strchr("-_.", at[-1])))
                return false;
        for (size_t i = 0; i < size; i++)
                if ((at[i] == '_' ? '-' : at[i] | 0x20) != end[i])
                        return false;
        return true;
}

bool route_literal_is_secret(const char *name, bool query, const char *text) {
        if (!text[0])
                return false;
        for (size_t i = 0; i < ELEMENTSOF(literal_names); i++)
                if (literal_ends(name, literal_names[i]))
                        return true;
        for (size_t i = 0; query && i < ELEMENTSOF(literal_parameters); i++)
                if (strcasecmp(name, literal_parameters[i]) == 0)
                        return true;
        for (size_t i = 0; !query && i < ELEMENTSOF(literal_schemes); i++) {
                const size_t length = strlen(literal_schemes[i]);

                if (strncasecmp(text, literal_schemes[i], length) == 0 && text[length])
                        return true;
        }
        return false;
}

int route_refuse_literal(const RouteReader *reader, const char *path) {
        const int r = route_fail(reader, path,
                                 "is a credential in plain text, which holt would store and not "
                                 "mask in responses");

        return r == -ENOMEM ? r
                            : error_cure(reader->reterr, r,
                                         "Write {env:NAME} in its place, and set the variable NAME "
                                         "where you start holt; or {file:PATH}.");
}
