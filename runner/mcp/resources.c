/* SPDX-License-Identifier: Apache-2.0 */
/* Resources: the files of /mnt/files. The URI of a file is "holt:///mnt/files/" and its name, in
 * which "%" and bytes that URIs do not allow are escaped. */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "mcp/mcp-internal.h"
#include "mcp/uri.h"

#define RESOURCE_PREFIX "holt:///mnt/files/"
#define RESOURCE_FILES "/mnt/files"

enum { RESOURCES_MAX = 1000 };

static const char unreserved[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";

/* The caller owns the URI; NULL if memory is out. */
static char *resource_uri(const char *name) {
        char *uri = malloc(strlen(RESOURCE_PREFIX) + 3 * strlen(name) + 1), *p = uri;

        if (!uri)
                return NULL;
        p = stpcpy(p, RESOURCE_PREFIX);
        for (; *name; name++)
                if (strchr(unreserved, *name))
                        *p++ = *name;
                else
                        p += sprintf(p, "%%%02X", (unsigned)(unsigned char)*name);
        *p = '\0';
        return uri;
}

static char *resource_decode(const char *uri) {
        _cleanup_free_ char *name = NULL;

        if (!uri || !str_starts(uri, RESOURCE_PREFIX))
                return NULL;
        name = uri_decode(uri + strlen(RESOURCE_PREFIX));
        return name ? str_format(RESOURCE_FILES "/%s", name) : NULL;
}

/* Only the files below /mnt/files are resources. */
static bool resource_is_below(const char *path) {
        for (const char *at = path; (at = strstr(at, "/..")); at += strlen("/.."))
                if (at[3] == '/' || at[3] == '\0')
                        return false;
        return true;
}

char *mcp_resource_path(const char *uri) {
        char *path = resource_decode(uri);

        if (path && resource_is_below(path))
                return path;
        free(path);
        return NULL;
}

static void resource_fail(Mcp *mcp, McpCall *call, const Error *error) {
        _cleanup_free_ char *text = mcp_error_text(error);

        mcp_fail(mcp, &call->id,
                 error->kind == ERROR_MISSING ? MCP_NO_RESOURCE : MCP_INTERNAL_ERROR,
                 text ? text : "holt: out of memory");
        mcp_call_free(call);
}

/* --- resources/list --- */

static void resources_listed(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const char *next = json_member_string(result, "next");

        if (!result)
                return resource_fail(mcp, call, error);
        mcp_reply_begin(&call->id, &w);
        json_write_array(&w, "resources");
        for (const JsonValue *e = json_first(json_member(result, "entries")); e; e = json_next(e)) {
                const char *name = json_member_text(e, "name");
                _cleanup_free_ char *uri = NULL;

                if (!streq(json_member_text(e, "type"), "file") || json_member(e, "raw"))
                        continue;
                uri = resource_uri(name);
                json_write_object(&w, NULL);
                json_write_string(&w, "uri", uri ? uri : "");
                json_write_string(&w, "name", name);
                json_write_uint(&w, "size", json_member_uint(e, "size"));
                json_write_end(&w);
        }
        json_write_end(&w);
        if (next)
                json_write_string(&w, "nextCursor", next);
        mcp_reply_end(mcp, &w);
        mcp_call_free(call);
}

/* A cursor is the name after which the next page begins. */
void mcp_resources_list(Mcp *mcp, JsonDocument *message) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const char *cursor = json_member_string(json_member(json_root(message), "params"),
                                                "cursor");
        McpCall *call;

        json_write_object(&w, NULL);
        json_write_string(&w, "path", RESOURCE_FILES);
        json_write_bool(&w, "recursive", true);
        json_write_uint(&w, "limit", RESOURCES_MAX);
        if (cursor)
                json_write_string(&w, "after", cursor);
        call = mcp_call_new(message);
        if (call)
                mcp_ask(mcp, call, "files.list", &w, resources_listed);
}

/* --- resources/read --- */

static void resource_read(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const JsonValue *params = json_member(json_root(call->arguments), "params");
        const char *encoded = json_member_text(result, "content");
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;

        if (!result)
                return resource_fail(mcp, call, error);
        mcp_reply_begin(&call->id, &w);
        json_write_array(&w, "contents");
        json_write_object(&w, NULL);
        json_write_string(&w, "uri", json_member_text(params, "uri"));
        if (base64_decode(encoded, &bytes, &length) == 0 && strlen(bytes) == length &&
            utf8_valid(bytes)) {
                json_write_string(&w, "mimeType", "text/plain");
                json_write_string(&w, "text", bytes);
        } else {
                json_write_string(&w, "mimeType", "application/octet-stream");
                json_write_string(&w, "blob", encoded);
        }
        json_write_end(&w);
        json_write_end(&w);
        mcp_reply_end(mcp, &w);
        mcp_call_free(call);
}

/* A part of a file would look like the whole file. */
static void resource_check(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error) {
        bool eof = true;

        (void)json_bool(json_member(result, "eof"), &eof);
        if (result && !eof) {
                mcp_fail(
                        mcp, &call->id, MCP_INTERNAL_ERROR,
                        "the file is larger than 512 KiB; read it in parts with the tool download");
                return mcp_call_free(call);
        }
        resource_read(mcp, call, result, error);
}

void mcp_resources_read(Mcp *mcp, JsonDocument *message) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        McpCall *call = mcp_call_new(message);
        _cleanup_free_ char *path = NULL;

        if (!call)
                return;
        path = mcp_resource_path(
                json_member_string(json_member(json_root(message), "params"), "uri"));
        if (!path) {
                mcp_fail(mcp, &call->id, MCP_NO_RESOURCE, "unknown resource");
                return mcp_call_free(call);
        }
        json_write_object(&w, NULL);
        json_write_string(&w, "path", path);
        json_write_bool(&w, "base64", true);
        mcp_ask(mcp, call, "files.read", &w, resource_check);
}
