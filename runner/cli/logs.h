/* SPDX-License-Identifier: Apache-2.0 */
/* The kept output of a process of a session. */
#pragma once

#include "base/error.h"
#include "rpc/client.h"

/* Prints it to stdout and stderr, and does not report dropped bytes. Returns 0 or a negative
 * errno. */
int logs_print(RpcClient *client, const char *id, Error *reterr);
