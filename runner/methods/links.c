/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that make and revoke signed links (keeper/links.h). */
#include <string.h>

#include "keeper/links.h"
#include "methods/area.h"

#define LINKS_MOUNT "/mnt/files"

static int method_links_make(RpcCall *call, void *data, Error *error) {
        const char *path = keeper_link_path(rpc_string(call, "path"), error);
        const KeeperLink *link;
        int r;

        if (!path)
                return -EINVAL;
        r = keeper_link(data, path, rpc_bool(call, "upload", false),
                        rpc_uint(call, "for_ms", LINK_FOR_MS),
                        rpc_uint(call, "max_size", LINK_SIZE), &link, error);
        if (r < 0)
                return r;
        keeper_write_link(data, link, rpc_result(call));
        rpc_reply(call);
        return 0;
}

static int method_links_list(RpcCall *call, void *data, Error *error) {
        JsonWriter *w = rpc_result(call);

        (void)error;
        json_write_array(w, "links");
        for (const KeeperLink *link = keeper_first_link(data); link; link = link->next) {
                json_write_object(w, NULL);
                keeper_write_link(data, link, w);
                json_write_end(w);
        }
        json_write_end(w);
        rpc_reply(call);
        return 0;
}

static int method_links_revoke(RpcCall *call, void *data, Error *error) {
        const uint32_t id = (uint32_t)rpc_uint(call, "id", 0);
        const size_t count = keeper_revoke_links(data, id);

        if (id && count == 0) {
                int r = error_set(error, ERROR_MISSING, 0,
                                  "the session has no link %u; it may have expired", id);

                return error_cure(error, r, "links.list names the links.");
        }
        json_write_uint(rpc_result(call), "revoked", count);
        rpc_reply(call);
        return 0;
}

/* --- the table --- */

static const RpcParam make_params[] = {
        { "path", RPC_PATH, true, 4096,
          "path below " LINKS_MOUNT ", absolute or relative to " LINKS_MOUNT },
        { "for_ms", RPC_UINT, false, LINK_FOR_MAX_MS,
          "milliseconds until the link expires; default 3600000", .min = 1 },
        { "upload", RPC_BOOL, false, 0,
          "accept one upload of the file, by PUT or POST, instead of serving it" },
        { "max_size", RPC_UINT, false, LINK_SIZE_MAX,
          "for an upload: bytes at most; default 100 MiB" },
};

static const RpcParam revoke_params[] = {
        { "id", RPC_UINT, false, UINT32_MAX, "number of the link; default: all links", .min = 1 },
};

static const RpcField link_fields[] = {
        { "id", RPC_UINT, RPC_ALWAYS, "number of the link in its session" },
        { "url", RPC_STRING, RPC_ALWAYS, "URL of the link, on the host's loopback" },
        { "path", RPC_PATH, RPC_ALWAYS, "path below " LINKS_MOUNT },
        { "raw", RPC_PATH, RPC_SOMETIMES, "the bytes of the path, if they are not UTF-8" },
        { "upload", RPC_BOOL, RPC_ALWAYS, "whether the link accepts an upload" },
        { "expires_ms", RPC_UINT, RPC_ALWAYS, "end of the link, in milliseconds since the epoch" },
        { "max_size", RPC_UINT, RPC_OR_NULL, "bytes of an upload at most; null for a download" },
        { "used", RPC_BOOL, RPC_ALWAYS, "whether an upload was stored, which uses up the link" },
        { "requests", RPC_UINT, RPC_ALWAYS, "number of its requests that have ended" },
};
static const RpcShape link_shape = { .name = "Link",
                                     .help = "a signed link to a file of a session",
                                     RPC_FIELDS(link_fields) };

static const RpcField links_fields[] = {
        { "links", RPC_SHAPES, RPC_ALWAYS, "links that have not expired", .shape = &link_shape },
};
static const RpcShape links_shape = { .name = "Links", RPC_FIELDS(links_fields) };

static const RpcField revoked_fields[] = {
        { "revoked", RPC_UINT, RPC_ALWAYS, "number of the links that were revoked" },
};
static const RpcShape revoked_shape = { .name = "LinksRevoked", RPC_FIELDS(revoked_fields) };

#define EXAMPLE_LINK                                                                               \
        "{\"id\": 1, \"url\": \"http://127.0.0.1:49152/v1/get/1/1700003600000/9f0c/report.pdf\","  \
        " \"path\": \"report.pdf\", \"upload\": false, \"expires_ms\": 1700003600000,"             \
        " \"max_size\": null, \"used\": false, \"requests\": 0}"

static const RpcMethod methods[] = {
        {
                .name = "links.make",
                .help = "makes a signed URL by which programs of the host read a file "
                        "below " LINKS_MOUNT ", or write one once",
                RPC_PARAMS(make_params),
                .result = &link_shape,
                .errors = METHOD_FILE_ERRORS,
                .example = { "{\"path\": \"report.pdf\"}", EXAMPLE_LINK },
                .function = method_links_make,
        },
        {
                .name = "links.list",
                .help = "lists the links that have not expired",
                .result = &links_shape,
                .example = { "{}", "{\"links\": [" EXAMPLE_LINK "]}" },
                .function = method_links_list,
        },
        {
                .name = "links.revoke",
                .help = "revokes a link, or all of them, and ends their requests",
                RPC_PARAMS(revoke_params),
                .result = &revoked_shape,
                .errors = RPC_ERROR(MISSING),
                .example = { "{\"id\": 1}", "{\"revoked\": 1}" },
                .function = method_links_revoke,
        },
};
const MethodArea method_links_area = { methods, ELEMENTSOF(methods) };
