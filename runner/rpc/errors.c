/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/table.h"

static const RpcErrorRow errors[] = {
        [ERROR_SETUP] = { -32000, "setup", "the operation failed on the host or in holt" },
        [ERROR_USAGE] = { -32001, "usage",
                          "the request asks for something that is invalid or not possible" },
        [ERROR_POLICY] = { -32002, "policy", "a field or file of a policy is wrong" },
        [ERROR_LAYER] = { -32003, "layer", "the host refuses a layer; data.layer names it" },
        [ERROR_NOT_EXECUTABLE] = { -32004, "not-executable", "the command cannot be executed" },
        [ERROR_NOT_FOUND] = { -32005, "not-found", "the command does not exist" },
        [ERROR_MISSING] = { -32006, "missing", "the session, tool, mount or file does not exist" },
        [ERROR_NO_KEY] = { -32012, "no-key", "the session has no such key" },
        [ERROR_NO_PROCESS] = { -32013, "no-process", "the session has no such process" },
        [ERROR_EXISTS] = { -32007, "exists", "the session, file or tool already exists" },
        [ERROR_BUSY] = { -32008, "busy", "somebody else uses it, or it is still running" },
        [ERROR_LIMIT] = { -32009, "limit", "a limit of holt or of the disk is reached" },
        [ERROR_DATA] = { -32010, "data", "a file of holt is damaged, or was made by a newer holt" },
        [ERROR_PROTOCOL] = { -32011, "protocol", "the message is not allowed at this point" },
        [RPC_NO_JSON] = { -32700, "parse-error", "the line is not JSON" },
        [RPC_NO_REQUEST] = { -32600, "invalid-request", "the message is not a request" },
        [RPC_NO_METHOD] = { -32601, "unknown-method", "the method does not exist" },
        [RPC_BAD_PARAMS] = { -32602, "invalid-params",
                             "a parameter is unknown, missing or of the wrong type" },
};
static_assert(ELEMENTSOF(errors) == RPC_ERROR_MAX, "every error has a code and a name");

const RpcErrorRow *rpc_error_row(unsigned error) {
        assert(error < RPC_ERROR_MAX);
        return &errors[error];
}
