/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of holt, which add and remove routes while holt-gateway serves. */
#pragma once

#include "gateway/gateway.h"

/* Carries out the commands of the control socket (network/gateway-protocol.h), and ends the loop
 * when holt closes it. Returns 0 or a negative errno. */
int commands_watch(Gateway *gateway, Error *reterr);
