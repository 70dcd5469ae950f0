/* SPDX-License-Identifier: Apache-2.0 */
/* The tool process_wait. The keeper replies when the process ends, perhaps never. So the server
 * replies to the client earlier, and keeps the request to the keeper. The next call about the same
 * process continues that request. Otherwise, calls that clients have cancelled would add up. */
#include <inttypes.h>
#include <string.h>

#include "base/time.h"
#include "mcp/mcp-internal.h"

enum { WAIT_DEFAULT = 30000, WAIT_MAX = 86400000 }; /* milliseconds */

static const char *wait_process(const McpCall *call) {
        return json_member_text(call->given, "id");
}

/* Returns the request that nobody waits for any more, or NULL. */
static McpCall *wait_find(const Mcp *mcp, const McpCall *call) {
        for (McpCall *c = mcp->calls; c; c = c->next)
                if (c->answer == mcp_call_drop && c->tool == call->tool &&
                    streq(wait_process(c), wait_process(call)))
                        return c;
        return NULL;
}

/* Gives the client's side of call to the request, and frees the call. */
static void wait_continue(McpCall *request, McpCall *call) {
        const McpCall old = *request;

        request->id = call->id;
        request->progress = call->progress;
        request->arguments = call->arguments;
        request->given = call->given;
        request->deadline = call->deadline;
        request->answer = mcp_call_answer;
        call->id = old.id;
        call->progress = old.progress;
        call->arguments = old.arguments;
        mcp_call_free(call);
}

void mcp_wait_start(Mcp *mcp, McpCall *call) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const JsonValue *given = json_member(call->given, "timeout_ms");
        uint64_t time = WAIT_DEFAULT;
        McpCall *request;

        if (given && json_uint(given, WAIT_MAX, &time) < 0)
                return mcp_call_fail(mcp, call,
                                     "holt: timeout_ms must be an integer from 0 to 86400000");
        call->deadline = time_now_usec() + time * 1000;
        request = wait_find(mcp, call);
        if (request)
                return wait_continue(request, call);
        json_write_object(&w, NULL);
        json_write_string(&w, "id", wait_process(call));
        json_write_bool(&w, "output", true);
        mcp_ask(mcp, call, "process.wait", &w, mcp_call_answer);
}

int mcp_waits_left(Mcp *mcp) {
        const uint64_t now = time_now_usec();
        uint64_t next = 0;
        char text[256];

        for (McpCall *call = mcp->calls; call; call = call->next) {
                if (call->deadline > now && (next == 0 || call->deadline < next))
                        next = call->deadline;
                if (call->deadline == 0 || call->deadline > now)
                        continue;
                (void)snprintf(text, sizeof(text),
                               "holt: %.64s still runs. process_read returns its output until now; "
                               "process_wait waits again.",
                               wait_process(call));
                mcp_tell(mcp, &call->id, text);
                call->deadline = 0;
                call->answer = mcp_call_drop;
        }
        return next == 0 ? -1 : (int)((next - now) / 1000) + 1;
}
