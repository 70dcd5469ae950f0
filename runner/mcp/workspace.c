/* SPDX-License-Identifier: Apache-2.0 */
/* The session of a client that names none.
 *
 * Theory of operation. The session is made at the first request that needs it, because its
 * workspace is the client's first root. The server then asks the client (roots/list), and holds
 * requests until the answer. It does not ask earlier: over HTTP, a question needs a response that
 * carries it. A mount of a live session cannot change. So if the client's roots change later, the
 * server asks again, and one result says that holt mcp must be restarted. */
#include <string.h>

#include "base/list.h"
#include "base/time.h"
#include "base/wait.h"
#include "mcp/mcp-internal.h"
#include "mcp/roots.h"

enum { ROOTS_TIME = HOLT_WAIT(10000000) }; /* usec for the client's answer */

static void held_free(Mcp *mcp, McpHeld *held) {
        (void)list_remove(&mcp->held, held);
        mcp->held_count--;
        (void)json_free(held->message);
        free(held);
}

void mcp_held_free(Mcp *mcp) {
        while (mcp->held)
                held_free(mcp, mcp->held);
        strlist_clear(&mcp->roots);
        free(mcp->notice);
}

static bool held_is(const McpHeld *held, const JsonValue *id) {
        _cleanup_(json_write_clear) JsonWriter own = { 0 }, wanted = { 0 };

        json_copy(&own, NULL, json_member(json_root(held->message), "id"));
        json_copy(&wanted, NULL, id);
        return own.data && wanted.data && streq(own.data, wanted.data);
}

bool mcp_held_cancel(Mcp *mcp, const JsonValue *id) {
        list_each_safe(held, mcp->held)
                if (id && held_is(held, id)) {
                        held_free(mcp, held);
                        return true;
                }
        return false;
}

/* --- the end of the wait --- */

static void workspace_go_on(Mcp *mcp) {
        mcp->roots_asked = 0;
        while (mcp->held && mcp_workspace_is_ready(mcp)) {
                McpHeld *held = mcp->held;
                JsonDocument *message = TAKE_PTR(held->message);

                held_free(mcp, held);
                mcp_serve_held(mcp, message);
        }
}

/* The next request asks again. Takes over text. */
static void workspace_fail(Mcp *mcp, char *text) {
        _cleanup_free_ char *owned = text;

        mcp->roots_asked = 0;
        list_each_safe(held, mcp->held) {
                mcp_refuse(mcp, json_root(held->message), owned ? owned : "holt: out of memory");
                held_free(mcp, held);
        }
}

static char *workspace_roots_text(const Error *error) {
        char sentence[ERROR_SENTENCE_MAX];

        return str_format("holt: %s Only the user can change that: open another folder in the "
                          "client, or start holt mcp with --workspace DIR or --no-roots.",
                          error_sentence(error, sentence));
}

/* Tells the model how the paths of its client are called inside. */
static void workspace_describe(Mcp *mcp) {
        char shown[1024];

        free(mcp->notice);
        mcp->notice = str_format("holt: /workspace is the client's root %s%s",
                                 str_visible(mcp->roots.items[0], shown, sizeof(shown)),
                                 mcp->roots.count > 1 ? "; its other roots have their own paths"
                                                      : "");
}

/* Makes the session, and serves the requests that wait for it. */
static void workspace_make(Mcp *mcp) {
        const char *name = NULL;
        Error error;

        if (mcp->settings.make(mcp->settings.data, &mcp->roots, &name, &error) < 0)
                return workspace_fail(mcp, mcp_error_text(&error));
        mcp->settings.session = name;
        if (mcp->roots.count > 0)
                workspace_describe(mcp);
        workspace_go_on(mcp);
}

/* roots: NULL if they are not known. */
static void workspace_note_change(Mcp *mcp, const StrList *roots) {
        mcp->roots_changed = false;
        if (roots && strlist_same(roots, &mcp->roots))
                return;
        free(mcp->notice);
        mcp->notice = strdup(
                "holt: the client's roots have changed, but the sandbox keeps those of "
                "its start. Only the user can change that: restart holt mcp");
}

/* result: NULL if the client has refused, with the reason in error. */
static void workspace_take_roots(Mcp *mcp, const JsonValue *result, Error *error) {
        _cleanup_(strlist_clear) StrList roots = { 0 };
        int r = result ? roots_read(result, &roots, error) : -EINVAL;

        if (mcp->settings.session) {
                workspace_note_change(mcp, r < 0 ? NULL : &roots);
                return workspace_go_on(mcp);
        }
        if (r < 0)
                return workspace_fail(mcp, workspace_roots_text(error));
        strlist_clear(&mcp->roots);
        mcp->roots = roots;
        roots = (StrList){ 0 };
        workspace_make(mcp);
}

/* --- roots/list --- */

static void workspace_ask(Mcp *mcp) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        mcp->roots_asked = ++mcp->asked;
        mcp->roots_until = time_now_usec() + ROOTS_TIME;
        json_write_object(&w, NULL);
        json_write_string(&w, "jsonrpc", "2.0");
        json_write_uint(&w, "id", mcp->roots_asked);
        json_write_string(&w, "method", "roots/list");
        json_write_end(&w);
        mcp_send(mcp, &w);
}

bool mcp_workspace_take_answer(Mcp *mcp, uint64_t id, const JsonValue *root) {
        const JsonValue *result = json_member(root, "result");
        Error error;

        if (id != mcp->roots_asked)
                return false;
        if (!result)
                (void)error_set(&error, ERROR_POLICY, 0, "the client did not list its roots");
        workspace_take_roots(mcp, result, &error);
        return true;
}

int mcp_workspace_left(Mcp *mcp) {
        const uint64_t now = time_now_usec();
        Error error;

        if (mcp->roots_asked && now >= mcp->roots_until) {
                (void)error_set(&error, ERROR_POLICY, 0,
                                "the client did not list its roots in time");
                workspace_take_roots(mcp, NULL, &error);
        }
        return mcp->roots_asked ? (int)((mcp->roots_until - now) / 1000) + 1 : -1;
}

/* --- requests --- */

static bool workspace_has_roots(const Mcp *mcp) {
        return mcp->lists_roots && mcp->settings.roots;
}

bool mcp_workspace_is_ready(const Mcp *mcp) {
        return mcp->settings.session && !mcp->roots_changed && !mcp->roots_asked;
}

void mcp_workspace_changed(Mcp *mcp) {
        mcp->roots_changed = workspace_has_roots(mcp) && mcp->settings.session;
}

void mcp_workspace_hold(Mcp *mcp, JsonDocument *message) {
        McpHeld *held = mcp->held_count < MCP_CALLS_MAX ? calloc(1, sizeof(*held)) : NULL;

        if (!held) {
                mcp_refuse(mcp, json_root(message),
                           "holt: too many calls are waiting; try again later");
                (void)json_free(message);
                return;
        }
        held->message = message;
        list_append(&mcp->held, held);
        mcp->held_count++;
        if (mcp->roots_asked)
                return;
        if (workspace_has_roots(mcp))
                return workspace_ask(mcp);
        workspace_make(mcp);
}
