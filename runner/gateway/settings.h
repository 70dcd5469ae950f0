/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what holt sends at the start: the token, the routes, and rules for special addresses. */
#pragma once

#include "gateway/gateway.h"

/* Reads the settings from the control socket. Returns 0 or a negative errno. */
int gateway_settings_read(Gateway *gateway, Error *reterr);
