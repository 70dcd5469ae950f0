/* SPDX-License-Identifier: Apache-2.0 */
/* Gets the credentials of a route before a request is sent to the upstream. */
#pragma once

#include "gateway/gateway.h"
#include "gateway/scrub.h"

enum { SECRET_KEPT = 60 }; /* Seconds after which a file or a command is asked again. */

/* why is NULL if all credentials of the route are there; otherwise it says what is missing, in a
 * text without the credential. told is what a failed command has written to stderr, for the caller
 * alone, or "". */
typedef void (*SecretFn)(void *data, const char *why, const char *told);

/* Gets the credentials of the route, and calls fn once: now or later. */
void secrets_get(Gateway *gateway, const Route *route, SecretFn fn, void *data);
/* Forgets a call to fn with this data. */
void secrets_forget(Gateway *gateway, const void *data);
/* Whether requests of the route get a credential. */
bool secrets_has_any(const Route *route);
/* Returns the value of the header or parameter: with the credential, if there is one. Owned by the
 * caller, who erases it; NULL without memory. */
char *secret_value(const Inject *inject);
/* Adds the forms in which a response could repeat the credential. Returns 0 or -ENOMEM. */
int secret_scrub(const Inject *inject, Scrub *scrub);
/* Watches the fetcher's socket. Returns 0 or a negative errno. */
int secrets_watch(Gateway *gateway, Error *reterr);
