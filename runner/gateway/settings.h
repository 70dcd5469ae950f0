/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what holt sends: at the start the token, the routes, and rules for special addresses; later
 * more routes. */
#pragma once

#include "base/json.h"
#include "gateway/gateway.h"

/* Reads the settings from the control socket. Returns 0 or a negative errno. */
int gateway_settings_read(Gateway *gateway, Error *reterr);
/* Reads one more route into ret, which is zeroed. variables: "NAME=VALUE" of each variable that it
 * may read, each with its NUL, and an empty string after the last. A credential from a file or a
 * command is refused with -ENOTSUP. Returns 0 or a negative errno; clear ret in either case. */
int gateway_settings_route(Route *ret, const JsonValue *object, const char *variables);
/* Erases the credentials of a route. */
void gateway_settings_forget(Route *route);
/* The same, and frees the rest of it. */
void gateway_settings_clear(Route *route);
