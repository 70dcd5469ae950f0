/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that open and close ports of the host for ports of a live session. */
#include <string.h>
#include <sys/socket.h>

#include "methods/area.h"
#include "policy/net/ports.h"

static int method_ports_forward(RpcCall *call, void *data, Error *error) {
        const char *address = rpc_string(call, "address");
        NetPort port = { .address = net_loopback[0],
                         .host = (uint16_t)rpc_uint(call, "host_port", 0),
                         .inside = (uint16_t)rpc_uint(call, "port", 0) };

        if (address && net_address_parse(address, strlen(address), &port.address) < 0) {
                int r = error_set(error, ERROR_USAGE, 0, "\"%.60s\" is no address", address);

                return error_cure(error, r, "Write it like 127.0.0.1, 0.0.0.0 or ::1.");
        }
        return keeper_forward_port(data, &port, call, error);
}

static int method_ports_close(RpcCall *call, void *data, Error *error) {
        return keeper_close_port(data, (uint16_t)rpc_uint(call, "port", 0),
                                 (uint16_t)rpc_uint(call, "host_port", 0), call, error);
}

/* --- the table --- */

static const RpcParam forward_params[] = {
        { "port", RPC_UINT, true, 65535, "the port inside, on the sandbox's loopback", .min = 1 },
        { "host_port", RPC_UINT, false, 65535, "port of the host; default 0, a free one" },
        { "address", RPC_STRING, false, 45, "address of the host; default 127.0.0.1" },
};

static const RpcParam close_params[] = {
        { "port", RPC_UINT, true, 65535, "the port inside", .min = 1 },
        { "host_port", RPC_UINT, false, 65535, "only this port of the host" },
};

static const RpcField port_fields[] = {
        { "address", RPC_STRING, RPC_ALWAYS, "address of the host, such as \"127.0.0.1:49152\"" },
        { "port", RPC_UINT, RPC_ALWAYS, "the port inside" },
};
const RpcShape method_port = { .name = "Port",
                               .help = "port of the host that leads to a port inside",
                               RPC_FIELDS(port_fields) };

static const RpcMethod methods[] = {
        {
                .name = "ports.forward",
                .help = "lets programs of the host connect to a port inside, until the session "
                        "stops",
                RPC_PARAMS(forward_params),
                .result = &method_port,
                .errors = RPC_ERROR(USAGE) | RPC_ERROR(BUSY),
                .example = { "{\"port\": 3000}",
                             "{\"address\": \"127.0.0.1:49152\", \"port\": 3000}" },
                .function = method_ports_forward,
        },
        {
                .name = "ports.close",
                .help = "closes the ports of the host that lead to a port inside; the reply has "
                        "the last one that was closed",
                RPC_PARAMS(close_params),
                .result = &method_port,
                .errors = RPC_ERROR(MISSING),
                .example = { "{\"port\": 3000}",
                             "{\"address\": \"127.0.0.1:49152\", \"port\": 3000}" },
                .function = method_ports_close,
        },
};
const MethodArea method_ports_area = { methods, ELEMENTSOF(methods) };
