/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of methods of a live session. The keeper serves it, `holt serve` passes its
 * requests on, and documents for clients are made from it. */
#pragma once

#include "rpc/table.h"

/* Returns all rows. The data of their functions is the Keeper. */
const RpcMethod *session_methods(size_t *ret_count);

/* Returns the rows of a reader (keeper/connect.h): those that read files, and session.show. */
const RpcMethod *reader_methods(size_t *ret_count);

/* Returns the i-th name that process.signal accepts, without SIG, or NULL past the last. */
const char *method_signal_name(size_t i);
