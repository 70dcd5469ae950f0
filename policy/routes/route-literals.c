/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that somebody has written into a policy itself. holt would store them with the
 * session, print them in the policy, and not mask them in responses. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/strings.h"
#include "policy/routes/route-internal.h"

/* --- by the name --- */

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

/* --- by the value --- */

enum {
        KNOWN_REST = 12, /* characters behind a known beginning */
        RUN = 20,        /* letters and digits in a row, in any value */
        RUN_HINTED = 12, /* the same, if the name hints at a credential */
        RUN_VARIETY = 6, /* different ones of them */
};

/* Beginnings of credentials of well-known services. */
static const char *const literal_beginnings[] = {
        "sk-",     "sk_live_", "sk_test_", "rk_live_", "rk_test_",  "whsec_",    "ghp_",  "gho_",
        "ghu_",    "ghs_",     "ghr_",     "github_",  "glpat-",    "AKIA",      "ASIA",  "AIza",
        "ya29.",   "GOCSPX-",  "eyJ",      "xoxa-",    "xoxb-",     "xoxp-",     "xoxr-", "xoxs-",
        "xapp-",   "npm_",     "pypi-",    "hf_",      "gsk_",      "xai-",      "r8_",   "nvapi-",
        "pplx-",   "tvly-",    "SG.",      "lin_api_", "ntn_",      "figd_",     "glsa_", "dop_v1_",
        "shpat_",  "shpca_",   "shppa_",   "shpss_",   "sq0csp-",   "ATATT3",    "PMAK-", "hvs.",
        "sntrys_", "hvb.",     "sbp_",     "lsv2_",    "dckr_pat_", "rubygems_",
};
/* Ends of names whose values may be credentials. */
static const char *const literal_hints[] = {
        "key", "token", "secret", "auth", "pass", "password", "credential", "signature", "jwt",
};
/* Ends of names whose values may be long, and are no credentials. */
static const char *const literal_ids[] = {
        "id",        "organization", "org",     "project", "account",     "tenant",
        "workspace", "user-agent",   "version", "beta",    "traceparent", "fingerprint",
};

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool literal_ends_in(const char *name, const char *const *ends, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (literal_ends(name, ends[i]))
                        return true;
        return false;
}

/* Whether one of the first length characters is in the set. */
static bool literal_has(const char *text, size_t length, const char *set) {
        return strcspn(text, set) < length;
}

static bool literal_begins(const char *word) {
        for (size_t i = 0; i < ELEMENTSOF(literal_beginnings); i++) {
                const char *rest = word + strlen(literal_beginnings[i]);
                size_t length;

                if (!str_starts(word, literal_beginnings[i]))
                        continue;
                length = strspn(rest, LETTERS DIGITS "-_.+/=");
                if (length >= KNOWN_REST && literal_has(rest, length, DIGITS))
                        return true;
        }
        return false;
}

/* Whether the letters and digits look random: many, of both kinds, and various. */
static bool literal_is_random(const char *run, size_t length, size_t enough) {
        size_t variety = 0;

        if (length < enough || !literal_has(run, length, LETTERS) ||
            !literal_has(run, length, DIGITS))
                return false;
        for (const char *c = LETTERS DIGITS; *c; c++)
                variety += memchr(run, *c, length) != NULL;
        return variety >= RUN_VARIETY;
}

bool route_literal_looks_secret(const char *name, const char *text) {
        const bool id = literal_ends_in(name, literal_ids, ELEMENTSOF(literal_ids));
        const bool hinted = literal_ends_in(name, literal_hints, ELEMENTSOF(literal_hints));

        while (*text) {
                const size_t length = strspn(text, LETTERS DIGITS);

                if (literal_begins(text) ||
                    (!id && literal_is_random(text, length, hinted ? RUN_HINTED : RUN)))
                        return true;
                text += length ? length : 1;
        }
        return false;
}

int route_refuse_literal(const RouteReader *reader, const char *path, const char *verb) {
        const int r = route_fail(reader, path,
                                 "%s a credential in plain text, which holt would store and not "
                                 "mask in responses",
                                 verb);

        return r == -ENOMEM ? r
                            : error_cure(reader->reterr, r,
                                         "Write {env:NAME} in its place, and set the variable NAME "
                                         "where you start holt; or {file:PATH}.");
}
