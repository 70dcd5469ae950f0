/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/list.h"
#include "mcp/mcp-internal.h"

enum { EDIT_MAX = 512 * 1024 };

McpCall *mcp_call_new(JsonDocument *message) {
        McpCall *call = calloc(1, sizeof(*call));
        const JsonValue *root = json_root(message), *params = json_member(root, "params");
        const JsonValue *token = json_member(json_member(params, "_meta"), "progressToken");

        if (!call) {
                (void)json_free(message);
                return NULL;
        }
        call->arguments = message;
        call->given = json_member(params, "arguments");
        json_copy(&call->id, NULL, json_member(root, "id"));
        if (token && (json_type(token) == JSON_STRING || json_type(token) == JSON_NUMBER))
                json_copy(&call->progress, NULL, token);
        return call;
}

void mcp_call_free(McpCall *call) {
        json_write_clear(&call->id);
        json_write_clear(&call->progress);
        free(call->watched);
        (void)json_free(call->arguments);
        free(call);
}

/* --- results --- */

void mcp_tell(Mcp *mcp, const JsonWriter *id, const char *text) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        mcp_reply_begin(id, &w);
        json_write_array(&w, "content");
        mcp_write_text(text, &w);
        json_write_end(&w);
        json_write_bool(&w, "isError", true);
        mcp_reply_end(mcp, &w);
}

void mcp_call_fail(Mcp *mcp, McpCall *call, const char *text) {
        mcp_tell(mcp, &call->id, text);
        mcp_call_free(call);
}

char *mcp_error_text(const Error *error) {
        char buf[ERROR_SENTENCE_MAX];
        /* The cures of the command line are no use to a model. */
        const char *cure = error->kind == ERROR_NO_PROCESS
                                   ? "The tool process_list lists the processes."
                                   : error->cure;
        size_t length = strlen(error_sentence(error, buf));

        if (length > 0 && buf[length - 1] == '.')
                length--;
        return str_format("holt: %.*s.%s%s", (int)length, buf, cure[0] ? " " : "", cure);
}

static void call_fail_with(Mcp *mcp, McpCall *call, const Error *error) {
        _cleanup_free_ char *text = mcp_error_text(error);

        mcp_call_fail(mcp, call, text ? text : "holt: out of memory");
}

static void call_write_json(const JsonValue *result, JsonWriter *w) {
        _cleanup_(json_write_clear) JsonWriter text = { 0 };

        json_copy(&text, NULL, result);
        mcp_write_text(text.data ? text.data : "", w);
}

/* The exit code of a command is its result: that of grep is 1 if it finds nothing. The tool has
 * failed if the command did not end by itself, or if Python code has raised an exception. */
static bool call_has_failed(const McpTool *tool, const JsonValue *result) {
        const JsonValue *exception = json_member(result, "error");

        return tool->runs && (!streq(json_member_text(result, "cause"), "exited") ||
                              (exception && json_type(exception) == JSON_OBJECT));
}

void mcp_call_answer(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const McpTool *tool = call->tool;
        char line[MCP_REFUSED_LINE];

        if (!result)
                return call_fail_with(mcp, call, error);
        if (tool == mcp_tool_find("bash"))
                (void)snprintf(mcp->shell, sizeof(mcp->shell), "%s",
                               json_member_text(result, "id"));
        mcp_reply_begin(&call->id, &w);
        json_write_array(&w, "content");
        if (tool->write_content)
                tool->write_content(mcp, result, &w);
        else
                call_write_json(result, &w);
        if (tool->noun) {
                mcp_content_end(mcp, tool, result, line);
                mcp_write_text(line, &w);
        }
        if (mcp->notice)
                mcp_write_text(mcp->notice, &w);
        free(TAKE_PTR(mcp->notice));
        json_write_end(&w);
        if (!tool->plain)
                mcp_write_structured(result, tool->noun ? line : NULL, &w);
        json_write_bool(&w, "isError", call_has_failed(tool, result));
        mcp_reply_end(mcp, &w);
        mcp_call_free(call);
}

/* --- requests --- */

static const McpArgument *call_find_argument(const McpTool *tool, const char *name) {
        for (size_t i = 0; i < MCP_ARGUMENTS_MAX; i++)
                if (tool->arguments[i].name && streq(tool->arguments[i].name, name))
                        return &tool->arguments[i];
        return NULL;
}

static bool call_fits(RpcType type, const JsonValue *value) {
        const JsonType wanted = type == RPC_BOOL   ? JSON_BOOL
                                : type == RPC_UINT ? JSON_NUMBER
                                                   : JSON_STRING;

        return json_type(value) == wanted;
}

/* Returns NULL, or which argument has a wrong type. The keeper checks the values, but its errors
 * have the names of its parameters. */
static char *call_check_types(const Mcp *mcp, const McpCall *call) {
        for (const JsonValue *v = json_first(call->given); v; v = json_next(v)) {
                const RpcType type = mcp_tool_type(mcp, call->tool,
                                                   call_find_argument(call->tool, json_key(v)));

                if (!call_fits(type, v))
                        return str_format("holt: %s: the argument \"%s\" must be %s, not %s",
                                          call->tool->name, json_key(v),
                                          type == RPC_BOOL   ? "true or false"
                                          : type == RPC_UINT ? "a number"
                                                             : "a string",
                                          json_type_name(json_type(v)));
        }
        return NULL;
}

/* Returns NULL, or what is wrong with the arguments. */
static char *call_check(const Mcp *mcp, const McpCall *call) {
        char name[128];

        if (call->given && json_type(call->given) != JSON_OBJECT)
                return str_format("holt: arguments is not an object");
        for (const JsonValue *v = json_first(call->given); v; v = json_next(v))
                if (!call_find_argument(call->tool, json_key(v)))
                        return str_format("holt: %s has no argument \"%s\"", call->tool->name,
                                          str_visible(json_key(v), name, sizeof(name)));
        for (size_t i = 0; i < MCP_ARGUMENTS_MAX; i++)
                if (call->tool->arguments[i].name && call->tool->arguments[i].required &&
                    !json_member(call->given, call->tool->arguments[i].name))
                        return str_format("holt: %s needs the argument \"%s\"", call->tool->name,
                                          call->tool->arguments[i].name);
        return call_check_types(mcp, call);
}

static void call_send(Mcp *mcp, McpCall *call) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        const McpTool *tool = call->tool;

        json_write_object(&w, NULL);
        for (const JsonValue *v = json_first(call->given); v; v = json_next(v)) {
                const McpArgument *argument = call_find_argument(tool, json_key(v));

                json_copy(&w, argument->parameter ? argument->parameter : argument->name, v);
        }
        if (tool->write_fixed)
                tool->write_fixed(&w);
        if (tool->runs) {
                (void)snprintf(call->run, sizeof(call->run), "%" PRIu64, ++mcp->runs);
                json_write_string(&w, "run", call->run);
                if (call->progress.length > 0)
                        json_write_bool(&w, "watch", true);
        }
        mcp_ask(mcp, call, tool->method, &w, mcp_call_answer);
}

/* Looks at watched resources do not count. */
static unsigned call_count(const Mcp *mcp) {
        unsigned count = 0;

        for (const McpCall *call = mcp->calls; call; call = call->next)
                count += call->tool != NULL;
        return count;
}

void mcp_call_tool(Mcp *mcp, JsonDocument *message) {
        const JsonValue *params = json_member(json_root(message), "params");
        const McpTool *tool = mcp_tool_find(json_member_string(params, "name"));
        McpCall *call = mcp_call_new(message);
        _cleanup_free_ char *wrong = NULL;

        if (!call)
                return;
        if (!tool || !mcp_tool_is_served(mcp, tool)) {
                mcp_fail(mcp, &call->id, MCP_INVALID_PARAMS, "unknown tool");
                return mcp_call_free(call);
        }
        call->tool = tool;
        if (call_count(mcp) >= MCP_CALLS_MAX)
                return mcp_call_fail(mcp, call,
                                     "holt: too many calls are waiting; try again later");
        wrong = call_check(mcp, call);
        if (wrong)
                return mcp_call_fail(mcp, call, wrong);
        if (tool->start)
                return tool->start(mcp, call);
        call_send(mcp, call);
}

/* --- cancellation and progress --- */

void mcp_call_drop(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error) {
        (void)mcp;
        (void)result;
        (void)error;
        mcp_call_free(call);
}

/* The client expects no reply any more. */
void mcp_call_cancel(Mcp *mcp, const JsonValue *id) {
        _cleanup_(json_write_clear) JsonWriter wanted = { 0 }, w = { 0 };

        if (!id)
                return;
        json_copy(&wanted, NULL, id);
        list_each_safe(call, mcp->calls) {
                if (!wanted.data || !call->id.data || !streq(call->id.data, wanted.data) ||
                    call->answer == mcp_call_drop)
                        continue;
                call->answer = mcp_call_drop;
                call->deadline = 0;
                if (!call->tool || !call->tool->interrupt)
                        return;
                json_write_object(&w, NULL);
                json_write_string(&w, "run", call->run);
                json_write_end(&w);
                if (json_write_finish(&w) == 0)
                        mcp_ask_only(mcp, call->tool->interrupt, &w);
                return;
        }
        if (wanted.data)
                mcp_question_cancel(mcp, wanted.data);
}

/* Calls of a kind end in order, so that output belongs to the oldest one. Output of another process
 * than the known shell is that of python, or of a new shell. */
static McpCall *call_find_watcher(const Mcp *mcp, const char *process) {
        const McpTool *const bash = mcp_tool_find("bash");
        const bool shell = streq(process, mcp->shell);
        McpCall *other = NULL;

        for (McpCall *call = mcp->calls; call; call = call->next) {
                if (call->progress.length == 0 || !call->tool || call->answer != mcp_call_answer)
                        continue;
                if (shell == (call->tool == bash))
                        return call;
                if (!other)
                        other = call;
        }
        return other;
}

void mcp_call_output(Mcp *mcp, const JsonValue *params) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        McpCall *call = call_find_watcher(mcp, json_member_text(params, "id"));

        if (!call)
                return;
        json_write_object(&w, NULL);
        json_write_string(&w, "jsonrpc", "2.0");
        json_write_string(&w, "method", "notifications/progress");
        json_write_object(&w, "params");
        json_write_value(&w, "progressToken", &call->progress);
        json_write_uint(&w, "progress", ++call->progressed);
        json_write_string(&w, "message", json_member_text(params, "text"));
        json_write_end(&w);
        json_write_end(&w);
        mcp_send(mcp, &w);
}

/* --- edit --- */

static void edit_written(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (!result)
                return call_fail_with(mcp, call, error);
        mcp_reply_begin(&call->id, &w);
        json_write_array(&w, "content");
        mcp_write_text("holt: the file was changed", &w);
        json_write_end(&w);
        mcp_reply_end(mcp, &w);
        mcp_call_free(call);
}

static size_t edit_count(const char *text, size_t length, const char *old) {
        const size_t step = strlen(old);
        size_t count = 0;

        for (const char *at = text, *end = text + length;
             (at = memmem(at, (size_t)(end - at), old, step)); at += step)
                count++;
        return count;
}

/* Returns the new content, which the caller owns, or NULL if it is too long or memory is out. */
static char *edit_replace(const char *text, size_t length, const char *old, const char *new,
                          size_t count, size_t *ret_length) {
        const size_t step = strlen(old), add = strlen(new), rest = length - count * step;
        const char *end = text + length, *found;
        char *made, *p;

        /* A few MB of text could become many GB. */
        if (rest > EDIT_MAX || (add > 0 && count > (EDIT_MAX - rest) / add))
                return NULL;
        made = p = malloc(rest + count * add + 1);
        if (!made)
                return NULL;
        while ((found = memmem(text, (size_t)(end - text), old, step))) {
                p = mempcpy(p, text, (size_t)(found - text));
                p = mempcpy(p, new, add);
                text = found + step;
        }
        p = mempcpy(p, text, (size_t)(end - text));
        *ret_length = (size_t)(p - made);
        return made;
}

static void edit_read(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_free_ char *text = NULL, *made = NULL, *encoded = NULL;
        const char *old = json_member_text(call->given, "old");
        bool all = false, eof = false;
        size_t length, count;

        if (!result)
                return call_fail_with(mcp, call, error);
        (void)json_bool(json_member(call->given, "all"), &all);
        (void)json_bool(json_member(result, "eof"), &eof);
        if (!eof)
                return mcp_call_fail(mcp, call, "holt: the file is larger than 512 KiB");
        if (base64_decode(json_member_text(result, "content"), &text, &length) < 0)
                return mcp_call_fail(mcp, call, "holt: the content could not be read");
        count = edit_count(text, length, old);
        if (count == 0)
                return mcp_call_fail(mcp, call, "holt: the file does not contain the old text");
        if (count > 1 && !all)
                return mcp_call_fail(mcp, call,
                                     "holt: the old text is not unique; pass more of its "
                                     "surroundings, or all: true");
        made = edit_replace(text, length, old, json_member_text(call->given, "new"), count,
                            &length);
        encoded = made ? base64_encode(made, length) : NULL;
        if (!encoded)
                return mcp_call_fail(mcp, call, "holt: the new content is larger than 512 KiB");
        json_write_object(&w, NULL);
        json_copy(&w, "path", json_member(call->given, "path"));
        json_write_string(&w, "base64", encoded);
        mcp_ask(mcp, call, "files.write", &w, edit_written);
}

void mcp_edit_start(Mcp *mcp, McpCall *call) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };

        if (!json_member_string(call->given, "new") ||
            json_member_text(call->given, "old")[0] == '\0')
                return mcp_call_fail(mcp, call,
                                     "holt: old and new must be texts, and old not empty");
        json_write_object(&w, NULL);
        json_copy(&w, "path", json_member(call->given, "path"));
        json_write_bool(&w, "base64", true);
        mcp_ask(mcp, call, "files.read", &w, edit_read);
}
