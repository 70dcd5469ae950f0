/* SPDX-License-Identifier: Apache-2.0 */
/* What a parameter is, for people: in the reference and in errors. */
#pragma once

#include "rpc/server.h"

/* "a string", "true or false". */
const char *rpc_type_name(RpcType type);

/* "a string of at most 256 bytes, required". Returns buf. */
enum { RPC_PARAM_TEXT_MAX = 120 };
const char *rpc_param_text(const RpcParam *param, char buf[RPC_PARAM_TEXT_MAX]);
