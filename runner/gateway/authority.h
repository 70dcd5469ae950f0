/* SPDX-License-Identifier: Apache-2.0 */
/* The CA of one sandbox, for hosts whose TLS the gateway terminates. */
#pragma once

#include "gateway/gateway.h"

/* If a route terminates TLS, makes a CA and signs one certificate for all hosts of the routes. The
 * CA's key is erased then, so nobody can sign another certificate. Sends holt the certificates that
 * programs inside trust (network/gateway-protocol.h).
 *
 * Writes gateway->tls_key and gateway->tls_certificate. Call it when the host's certificates were
 * read. Returns 0 or a negative errno. */
int authority_make(Gateway *gateway, Error *reterr);
