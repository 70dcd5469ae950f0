/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json-schema.h"
#include "base/time.h"
#include "base/utf8.h"
#include "inside/tools-internal.h"
#include "store/unwritten.h"

struct ToolCall {
        ToolCall *previous, *next;
        Tools *all;
        Tool *tool; /* A counted reference. */
        Grant *grant;
        char id[24], exec[16];
        JsonWriter params;   /* Parameters for the client; freed once they are sent. */
        RpcRequest *request; /* NULL until it is sent. */
        LoopTimer *timer;
        uint64_t started_ms;
        char *preview; /* NULL if memory ran out. */
        ToolDoneFn fn;
        void *data;
};

static int tool_call_fail(ToolFailure *failure, ToolFailureKind kind, const char *fmt, ...)
        _printf_(3, 4);
static int tool_call_fail(ToolFailure *failure, ToolFailureKind kind, const char *fmt, ...) {
        va_list args;

        failure->kind = kind;
        va_start(args, fmt);
        (void)vsnprintf(failure->message, sizeof(failure->message), fmt, args);
        va_end(args);
        return -EINVAL;
}

/* --- history and audit --- */

/* Returns the JSON of a value, shortened, on the heap. */
static char *tool_call_preview(const JsonValue *value) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        size_t used = 0;

        if (!value)
                return strdup("");
        json_copy(&w, NULL, value);
        if (json_write_finish(&w) < 0)
                return NULL;
        for (size_t i = 0; i < TOOL_PREVIEW_MAX && w.data[used] != '\n'; i++)
                used += utf8_sequence(w.data + used, w.length - used);
        return strndup(w.data, used);
}

typedef struct Note {
        const char *tool, *exec, *request;
        uint64_t started_ms;
        const char *response;     /* NULL for a failure. */
        const char *failure_name; /* NULL for a success. */
} Note;

static void tool_call_write_request(const Note *note, JsonWriter *w) {
        json_write_string(w, "tool", note->tool);
        json_write_string(w, "exec", note->exec);
        json_write_string(w, "requestPreview", note->request);
}

static void write_response(const Note *note, JsonWriter *w) {
        json_write_bool(w, "success", note->failure_name == NULL);
        if (note->failure_name)
                json_write_string(w, "errorType", note->failure_name);
        else
                json_write_string(w, "responsePreview", note->response);
}

static void write_down(struct Unwritten *unwritten, const Note *note) {
        _cleanup_(json_write_clear) JsonWriter params = { 0 }, result = { 0 }, detail = { 0 };

        json_write_object(&params, NULL);
        tool_call_write_request(note, &params);
        json_write_end(&params);
        json_write_object(&result, NULL);
        write_response(note, &result);
        json_write_end(&result);
        json_write_object(&detail, NULL);
        tool_call_write_request(note, &detail);
        write_response(note, &detail);
        json_write_end(&detail);
        if (json_write_finish(&params) < 0 || json_write_finish(&result) < 0 ||
            json_write_finish(&detail) < 0)
                return;
        unwritten_audited(unwritten,
                          &(const StoreHistory){ .name = "tool.call",
                                                 .params = params.data,
                                                 .result = result.data,
                                                 .started_ms = note->started_ms,
                                                 .ended_ms = time_epoch_ms() },
                          "tool", detail.data);
}

static void note_end(const ToolCall *call, const JsonValue *value, const char *failure_name) {
        _cleanup_free_ char *response = value ? tool_call_preview(value) : NULL;
        const Note note = { .tool = call->tool->name,
                            .exec = call->exec,
                            .request = call->preview,
                            .started_ms = call->started_ms,
                            .response = response,
                            .failure_name = failure_name };

        write_down(call->all->unwritten, &note);
}

/* Notes a call that was refused before it began. */
static void note_refusal(Tools *all, Grant *grant, const char *name, const JsonValue *payload,
                         const ToolFailure *failure) {
        _cleanup_free_ char *request = NULL;
        char shown[TOOL_NAME_MAX + 1];

        if (grant->refusals >= TOOL_REFUSALS_NOTED_MAX)
                return;
        grant->refusals++;
        request = tool_call_preview(payload);
        (void)snprintf(shown, sizeof(shown), "%s", name);
        write_down(all->unwritten,
                   &(const Note){ .tool = shown,
                                  .exec = grant->exec,
                                  .request = request,
                                  .started_ms = time_epoch_ms(),
                                  .failure_name = tool_failure_name(failure->kind) });
}

/* --- the end of a call --- */

static void tool_call_call_unlink(ToolCall *call) {
        Tools *all = call->all;

        if (call->previous)
                call->previous->next = call->next;
        else
                all->first = call->next;
        if (call->next)
                call->next->previous = call->previous;
        else
                all->last = call->previous;
        all->calls--;
        all->waiting -= call->params.length;
}

static void tool_call_call_free(ToolCall *call) {
        (void)loop_timer_free(call->timer);
        (void)rpc_request_cancel(call->request);
        (void)tool_unref(call->tool);
        json_write_clear(&call->params);
        free(call->preview);
        free(call);
}

void tool_calls_drop(Tools *all) {
        while (all->first) {
                ToolCall *call = all->first;

                tool_call_call_unlink(call);
                tool_call_call_free(call);
        }
}

/* Tells a client that was asked already that nobody waits for its reply any more. */
static void tell_client(const ToolCall *call) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (!call->request)
                return;
        json_write_object(&w, NULL);
        json_write_string(&w, "call", call->id);
        json_write_end(&w);
        if (json_write_finish(&w) == 0)
                (void)rpc_tell(call->tool->owner, "tool.cancel", &w);
}

static void tool_call_end(ToolCall *call, const JsonValue *value, const ToolFailure *failure) {
        Tools *all = call->all;
        const RpcConnection *owner = call->tool->owner;

        tool_call_call_unlink(call);
        /* The caller is served before the note is written; value still belongs to the client's
         * reply. */
        call->fn(call->data, value, failure);
        note_end(call, value, failure ? tool_failure_name(failure->kind) : NULL);
        tool_call_call_free(call);
        tools_pump(all, owner);
}

ToolCall *tool_call_cancel(ToolCall *call) {
        Tools *all;
        const RpcConnection *owner;

        if (!call)
                return NULL;
        all = call->all;
        owner = call->tool->owner;
        note_end(call, NULL, "cancelled");
        tell_client(call);
        tool_call_call_unlink(call);
        tool_call_call_free(call);
        tools_pump(all, owner);
        return NULL;
}

void tool_calls_end(Tools *all, const Grant *grant, const RpcConnection *owner) {
        ToolFailure failure;
        ToolCall *call = all->first;

        if (grant)
                (void)tool_call_fail(&failure, TOOL_PERMISSION,
                                     "the exec that this token belongs to has ended");
        else
                (void)tool_call_fail(&failure, TOOL_INTERNAL,
                                     "the client that offers the tool has gone");
        while (call) {
                if ((grant && call->grant != grant) || (owner && call->tool->owner != owner)) {
                        call = call->next;
                        continue;
                }
                if (grant)
                        tell_client(call);
                tool_call_end(call, NULL, &failure);
                call = all->first; /* The failure may have ended other calls, too. */
        }
}

static void tool_call_on_time(void *data) {
        ToolCall *call = data;
        ToolFailure failure;

        (void)tool_call_fail(&failure, TOOL_TIMED_OUT, "Tool '%s' timed out after %" PRIu64 " ms",
                             call->tool->name, call->tool->timeout_ms);
        tell_client(call);
        tool_call_end(call, NULL, &failure);
}

/* --- replies of the client --- */

/* The client may name one of these kinds for its error; otherwise the error is internal. */
static ToolFailureKind failure_kind(const JsonValue *error) {
        static const ToolFailureKind kept[] = { TOOL_VALIDATION, TOOL_PERMISSION };
        const JsonValue *data = json_member(error, "data");
        const char *type = json_member_string(data, "type");

        for (size_t i = 0; type && i < ELEMENTSOF(kept); i++)
                if (streq(type, tool_failure_name(kept[i])))
                        return kept[i];
        return TOOL_INTERNAL;
}

static int check_answer(const ToolCall *call, const RpcAnswer *answer, const JsonValue **ret,
                        ToolFailure *failure) {
        const JsonValue *value = json_member(answer->result, "value");
        Error error;

        if (!answer->result)
                return tool_call_fail(failure, failure_kind(answer->error), "%s", answer->why);
        if (!value)
                return tool_call_fail(
                        failure, TOOL_INTERNAL,
                        "the tool's reply has no value: the client must reply {\"value\": ...}");
        if (call->tool->output && !call->tool->checked_by_client &&
            json_schema_check(json_root(call->tool->output), value, &error) < 0)
                return tool_call_fail(failure, TOOL_VALIDATION, "result: %s", error.text);
        *ret = value;
        return 0;
}

static void tool_call_on_answer(void *data, const RpcAnswer *answer) {
        ToolCall *call = data;
        const JsonValue *value = NULL;
        ToolFailure failure;

        call->request = NULL;
        if (check_answer(call, answer, &value, &failure) < 0)
                tool_call_end(call, NULL, &failure);
        else
                tool_call_end(call, value, NULL);
}

/* --- asking the client --- */

/* Returns 0, -EAGAIN if the call must wait, or another negative errno if it must end. */
static int tool_call_ask(ToolCall *call) {
        int r = rpc_request(call->tool->owner, "tool.call", &call->params, tool_call_on_answer,
                            call, &call->request);

        if (r == -EBUSY)
                return -EAGAIN;
        if (r < 0)
                return r;
        call->all->waiting -= call->params.length;
        json_write_clear(&call->params);
        return 0;
}

/* If the client cannot be asked because it is about to go, the call ends with it. */
void tools_pump(Tools *all, const RpcConnection *owner) {
        for (ToolCall *call = all->first; call; call = call->next)
                if (!call->request && call->params.length > 0 && call->tool->owner == owner &&
                    tool_call_ask(call) < 0)
                        return;
}

static bool others_wait(const Tools *all, const RpcConnection *owner) {
        if (all->waiting > 0)
                for (const ToolCall *call = all->first; call; call = call->next)
                        if (!call->request && call->tool->owner == owner)
                                return true;
        return false;
}

static int write_params(ToolCall *call, const JsonValue *payload) {
        JsonWriter *w = &call->params;

        json_write_object(w, NULL);
        json_write_string(w, "name", call->tool->name);
        if (payload) {
                json_copy(w, "payload", payload);
        } else {
                json_write_object(w, "payload");
                json_write_end(w);
        }
        json_write_string(w, "call", call->id);
        json_write_string(w, "exec", call->exec);
        json_write_uint(w, "timeout_ms", call->tool->timeout_ms);
        json_write_end(w);
        return json_write_finish(w);
}

/* --- calls --- */

static unsigned depth_of(const JsonValue *value) {
        unsigned deepest = 0;

        if (json_type(value) != JSON_OBJECT && json_type(value) != JSON_ARRAY)
                return 0;
        for (const JsonValue *v = json_first(value); v; v = json_next(v)) {
                const unsigned depth = depth_of(v);

                if (depth > deepest)
                        deepest = depth;
        }
        return deepest + 1;
}

static int check_payload(const Tool *tool, const JsonValue *payload, ToolFailure *failure) {
        _cleanup_(json_freep) JsonDocument *empty = NULL;
        Error error;

        if (payload && json_type(payload) != JSON_OBJECT)
                return tool_call_fail(failure, TOOL_VALIDATION, "$: must be an object");
        if (payload && depth_of(payload) > TOOL_DEPTH_MAX)
                return tool_call_fail(failure, TOOL_VALIDATION,
                                      "$: exceeds %d nested objects and arrays", TOOL_DEPTH_MAX);
        if (tool->checked_by_client)
                return 0;
        if (!payload && json_parse("{}", 2, "payload", &empty, &error) < 0)
                return tool_call_fail(failure, TOOL_INTERNAL, "%s", error.text);
        if (json_schema_check(json_root(tool->input), payload ? payload : json_root(empty),
                              &error) < 0)
                return tool_call_fail(failure, TOOL_VALIDATION, "%s", error.text);
        return 0;
}

static int tool_call_check_call(const Tools *all, const Grant *grant, const char *name,
                                const JsonValue *payload, Tool **ret, ToolFailure *failure) {
        Tool *tool = tool_find(all, name);
        char quoted[TOOL_NAME_MAX + 40];

        /* A tool that is not granted looks the same as a tool that does not exist. */
        if (!tool || !grant_allows(grant, tool))
                return tool_call_fail(failure, TOOL_PERMISSION,
                                      "tool '%s' does not exist, or may not be called from here",
                                      str_quote(name, quoted, sizeof(quoted)));
        *ret = tool;
        if (all->calls >= TOOL_CALLS_MAX)
                return tool_call_fail(failure, TOOL_INTERNAL,
                                      "%d tool calls are open already: wait for some to end",
                                      TOOL_CALLS_MAX);
        return check_payload(tool, payload, failure);
}

static void tool_call_call_link(ToolCall *call) {
        Tools *all = call->all;

        call->previous = all->last;
        if (call->previous)
                call->previous->next = call;
        else
                all->first = call;
        all->last = call;
        all->calls++;
        all->waiting += call->params.length;
}

static ToolCall *call_new(Tools *all, Grant *grant, Tool *tool, const JsonValue *payload) {
        ToolCall *call = calloc(1, sizeof(*call));

        if (!call)
                return NULL;
        tool->references++;
        *call = (ToolCall){ .all = all,
                            .tool = tool,
                            .grant = grant,
                            .started_ms = time_epoch_ms(),
                            .preview = tool_call_preview(payload) };
        (void)snprintf(call->id, sizeof(call->id), "c%" PRIu64, ++all->last_call);
        (void)snprintf(call->exec, sizeof(call->exec), "%s", grant->exec);
        if (write_params(call, payload) == 0 &&
            loop_timer_new(all->loop, tool_call_on_time, call, &call->timer, NULL) == 0) {
                tool_call_call_link(call);
                return call;
        }
        tool_call_call_free(call);
        return NULL;
}

static int tool_call_start(Tools *all, Grant *grant, Tool *tool, const JsonValue *payload,
                           ToolCall **ret, ToolFailure *failure) {
        const bool waits = others_wait(all, tool->owner);
        ToolCall *call = call_new(all, grant, tool, payload);
        int r;

        if (!call)
                return tool_call_fail(failure, TOOL_INTERNAL, "out of memory");
        r = waits ? -EAGAIN : tool_call_ask(call);
        if (r == -EAGAIN && all->waiting > TOOL_WAITING_MAX)
                r = tool_call_fail(
                        failure, TOOL_INTERNAL,
                        "calls with %d MiB of payloads are waiting already: wait for some to end",
                        TOOL_WAITING_MAX >> 20);
        else if (r < 0 && r != -EAGAIN)
                r = tool_call_fail(failure, TOOL_INTERNAL,
                                   "the client that offers the tool has gone");
        if (r < 0 && r != -EAGAIN) {
                tool_call_call_unlink(call);
                tool_call_call_free(call);
                return r;
        }
        loop_timer_set(call->timer, time_now_usec() + tool->timeout_ms * 1000);
        *ret = call;
        return 0;
}

int tools_call(Tools *all, Grant *grant, const char *name, const JsonValue *payload, ToolDoneFn fn,
               void *data, ToolCall **ret, ToolFailure *failure) {
        Tool *tool = NULL;
        int r = tool_call_check_call(all, grant, name, payload, &tool, failure);

        if (r == 0) {
                assert(tool);
                r = tool_call_start(all, grant, tool, payload, ret, failure);
        }
        if (r < 0) {
                note_refusal(all, grant, name, payload, failure);
                return r;
        }
        (*ret)->fn = fn;
        (*ret)->data = data;
        return 0;
}
