/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of a session has printed, as it is kept there. */
#pragma once

#include "base/error.h"
#include "rpc/client.h"

/* Writes it to stdout and stderr, each what it was, and no word of what is not kept. 0 or a
 * negative errno. */
int logs_print(RpcClient *client, const char *id, Error *reterr);
