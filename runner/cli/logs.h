/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of a session has printed, as it is kept there. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "rpc/client.h"

/* Writes it to stdout and stderr, each what it was, from chunk *seq on, which is then the next. 0
 * or a negative errno. */
int logs_print(RpcClient *client, const char *id, uint64_t *seq, Error *reterr);
