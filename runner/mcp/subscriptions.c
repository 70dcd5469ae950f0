/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions to resources. The server asks for the size and the time of each file every second,
 * and tells the client if they have changed. */
#include <string.h>

#include "base/list.h"
#include "base/time.h"
#include "base/wait.h"
#include "mcp/mcp-internal.h"

enum { SUBSCRIPTION_TIME = HOLT_WAIT(1000000) }; /* usec between looks */

static McpSubscription *subscription_find(const Mcp *mcp, const char *uri) {
        for (McpSubscription *s = mcp->subscriptions; s; s = s->next)
                if (streq(s->uri, uri))
                        return s;
        return NULL;
}

static void subscription_free(Mcp *mcp, McpSubscription *subscription) {
        (void)list_remove(&mcp->subscriptions, subscription);
        mcp->subscriptions_count--;
        free(subscription->uri);
        free(subscription->path);
        free(subscription);
}

void mcp_subscriptions_free(Mcp *mcp) {
        while (mcp->subscriptions)
                subscription_free(mcp, mcp->subscriptions);
}

/* --- looks --- */

static void subscription_tell(Mcp *mcp, const char *uri) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        json_write_object(&w, NULL);
        json_write_string(&w, "jsonrpc", "2.0");
        json_write_string(&w, "method", "notifications/resources/updated");
        json_write_object(&w, "params");
        json_write_string(&w, "uri", uri);
        json_write_end(&w);
        json_write_end(&w);
        mcp_send(mcp, &w);
}

/* A missing file has the size and the time 0. */
static void subscription_seen(Mcp *mcp, McpCall *call, const JsonValue *result,
                              const Error *error) {
        McpSubscription *s = call->watched ? subscription_find(mcp, call->watched) : NULL;
        const uint64_t size = json_member_uint(result, "size");
        const uint64_t time = json_member_uint(result, "modified_ms");

        mcp_call_free(call);
        if (!s)
                return;
        s->asked = false;
        if (!result && error->kind != ERROR_MISSING)
                return;
        if (s->known && (s->size != size || s->time != time))
                subscription_tell(mcp, s->uri);
        s->known = true;
        s->size = size;
        s->time = time;
}

static void subscription_look(Mcp *mcp, McpSubscription *subscription) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        McpCall *call = calloc(1, sizeof(*call));

        if (!call)
                return;
        call->watched = strdup(subscription->uri);
        subscription->asked = true;
        json_write_object(&w, NULL);
        json_write_string(&w, "path", subscription->path);
        mcp_ask(mcp, call, "files.stat", &w, subscription_seen);
}

/* --- requests --- */

static void subscription_reply(Mcp *mcp, McpCall *call) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        mcp_reply_begin(&call->id, &w);
        mcp_reply_end(mcp, &w);
        mcp_call_free(call);
}

void mcp_subscribe(Mcp *mcp, JsonDocument *message) {
        McpCall *call = mcp_call_new(message);
        McpSubscription *made;
        const char *uri;

        if (!call)
                return;
        uri = json_member_text(json_member(json_root(message), "params"), "uri");
        if (subscription_find(mcp, uri))
                return subscription_reply(mcp, call);
        made = mcp->subscriptions_count < MCP_SUBSCRIPTIONS_MAX ? calloc(1, sizeof(*made)) : NULL;
        if (!made) {
                mcp_fail(mcp, &call->id, MCP_INTERNAL_ERROR, "too many subscriptions");
                return mcp_call_free(call);
        }
        list_push(&mcp->subscriptions, made);
        mcp->subscriptions_count++;
        made->uri = strdup(uri);
        made->path = mcp_resource_path(uri);
        if (!made->uri || !made->path) {
                subscription_free(mcp, made);
                mcp_fail(mcp, &call->id, MCP_NO_RESOURCE, "unknown resource");
                return mcp_call_free(call);
        }
        if (mcp->look_at < time_now_usec())
                mcp->look_at = time_now_usec() + SUBSCRIPTION_TIME;
        subscription_look(mcp, made);
        subscription_reply(mcp, call);
}

void mcp_unsubscribe(Mcp *mcp, JsonDocument *message) {
        McpCall *call = mcp_call_new(message);
        McpSubscription *found;

        if (!call)
                return;
        found = subscription_find(
                mcp, json_member_text(json_member(json_root(message), "params"), "uri"));
        if (found)
                subscription_free(mcp, found);
        subscription_reply(mcp, call);
}

/* --- time --- */

/* A session that has been stopped is not started for this. */
int mcp_subscriptions_wait(Mcp *mcp) {
        const uint64_t now = time_now_usec();
        uint64_t left;

        if (!mcp->subscriptions)
                return -1;
        if (now >= mcp->look_at) {
                mcp->look_at = now + SUBSCRIPTION_TIME;
                list_each_safe(s, mcp->subscriptions)
                        if (!s->asked && mcp->loop.keeper)
                                subscription_look(mcp, s);
        }
        left = mcp->look_at - now;
        return (int)(left / 1000) + 1;
}
