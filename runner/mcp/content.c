/* SPDX-License-Identifier: Apache-2.0 */
/* The content of results. The last item of a command's result is one line that only the server
 * writes. It says how the call ended, what was refused, and which grant would allow it. It is also
 * the member "note" of structured content, because Codex shows its model nothing else. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "mcp/mcp-internal.h"

enum { CONTENT_DENIALS_MAX = 4, CONTENT_LINE_MAX = MCP_REFUSED_LINE };

void mcp_write_text(const char *text, JsonWriter *w) {
        json_write_object(w, NULL);
        json_write_string(w, "type", "text");
        json_write_string(w, "text", text);
        json_write_end(w);
}

/* Adds to the line of *used bytes. A text that does not fit is cut. */
__attribute__((format(printf, 3, 4))) static void content_add(char *line, size_t *used,
                                                              const char *fmt, ...) {
        va_list args;
        int n;

        va_start(args, fmt);
        n = vsnprintf(line + *used, CONTENT_LINE_MAX - *used, fmt, args);
        va_end(args);
        if (n > 0)
                *used += (size_t)n < CONTENT_LINE_MAX - *used ? (size_t)n
                                                              : CONTENT_LINE_MAX - *used - 1;
}

/* Grants name options of holt run and holt create, but this session exists already. This does not
 * send the model to request_grant: with --ask, the user has already answered. */
static void content_add_grant(const char *session, const char *grant, char *line, size_t *used) {
        const char *rule = str_starts(grant, "--net ") ? grant + strlen("--net ") : NULL;
        char shown[256];

        (void)str_visible(rule ? rule : grant, shown, sizeof(shown));
        if (!rule)
                content_add(line, used,
                            " (only the user can allow it, in a new session: holt create %s)",
                            shown);
        else
                content_add(line, used, " (only the user can allow it: holt allow %s net:%s)",
                            session, shown);
}

static void content_add_denial(const char *session, const JsonValue *denial, char *line,
                               size_t *used) {
        const char *grant = json_member_string(denial, "grant");
        const char *why_not = json_member_string(denial, "why_not");
        char what[256], reason[256], how[256];

        content_add(line, used, "; refused %s: %s",
                    str_visible(json_member_text(denial, "what"), what, sizeof(what)),
                    str_visible(json_member_text(denial, "reason"), reason, sizeof(reason)));
        if (grant)
                content_add_grant(session, grant, line, used);
        else if (why_not)
                content_add(line, used, " (%s)", str_visible(why_not, how, sizeof(how)));
}

static void content_add_limit(const JsonValue *limit, char *line, size_t *used) {
        const char *option = json_member_string(limit, "option");
        const char *why_not = json_member_string(limit, "why_not");

        content_add(line, used, "; reached the limit \"%s\": %s", json_member_text(limit, "limit"),
                    json_member_text(limit, "reason"));
        if (option)
                content_add(line, used,
                            " (only the user can raise it, in a new session: holt create %s)",
                            option);
        else if (why_not)
                content_add(line, used, " (%s)", why_not);
}

static void content_add_unreached(const JsonValue *unreached, char *line, size_t *used) {
        char what[256], answer[64];

        content_add(line, used, "; %s is allowed, but was not reached: %s",
                    str_visible(json_member_text(unreached, "what"), what, sizeof(what)),
                    str_visible(json_member_text(unreached, "answer"), answer, sizeof(answer)));
}

static bool content_says(const JsonValue *result, const char *key) {
        bool said = false;

        (void)json_bool(json_member(result, key), &said);
        return said;
}

static void content_add_refusals(const char *session, const JsonValue *result, char *line,
                                 size_t *used) {
        const JsonValue *denials = json_member(result, "denials");
        const JsonValue *limits = json_member(result, "limits_hit");
        const JsonValue *unreached = json_member(result, "unreached");
        size_t count = 0;

        for (const JsonValue *d = json_first(denials); d; d = json_next(d))
                if (count++ < CONTENT_DENIALS_MAX)
                        content_add_denial(session, d, line, used);
        if (count > CONTENT_DENIALS_MAX)
                content_add(line, used, "; %zu more refusals", count - CONTENT_DENIALS_MAX);
        for (const JsonValue *l = json_first(limits); l; l = json_next(l))
                content_add_limit(l, line, used);
        count = 0;
        for (const JsonValue *u = json_first(unreached); u; u = json_next(u))
                if (count++ < CONTENT_DENIALS_MAX)
                        content_add_unreached(u, line, used);
        if (content_says(result, "network_missed"))
                content_add(line, used,
                            "; refused the network (only the user can allow a host: holt stop %s, "
                            "then holt allow %s net:HOST)",
                            session, session);
        if (content_says(result, "network_lost") || content_says(result, "routes_lost"))
                content_add(line, used,
                            "; the network has ended, until the user runs: holt stop %s", session);
}

void mcp_content_end(const Mcp *mcp, const McpTool *tool, const JsonValue *result,
                     char ret[MCP_REFUSED_LINE]) {
        const uint64_t dropped = json_member_uint(result, "stdout_dropped") +
                                 json_member_uint(result, "stderr_dropped");
        size_t used = 0;
        bool kept = true;

        content_add(ret, &used, "holt: %s, exit code %" PRIu64, json_member_text(result, "cause"),
                    json_member_uint(result, "exit_code"));
        content_add_refusals(mcp->settings.session, result, ret, &used);
        if (dropped > 0)
                content_add(ret, &used, "; %" PRIu64 " bytes of output are left out", dropped);
        (void)json_bool(json_member(result, "state_kept"), &kept);
        if (!kept)
                content_add(ret, &used, "; the %s has ended, and the next call gets a new one",
                            tool->noun);
        else if (content_says(result, "new_shell") || content_says(result, "new_interpreter"))
                content_add(ret, &used, "; this %s is new: what the former one knew is lost",
                            tool->noun);
}

bool mcp_content_refused(const char *session, const JsonValue *result, char ret[MCP_REFUSED_LINE]) {
        size_t used = 0, head;

        content_add(ret, &used, "holt: the sandbox has limited this call");
        head = used;
        content_add_refusals(session, result, ret, &used);
        return used > head;
}

static void content_write_streams(const JsonValue *result, JsonWriter *w) {
        static const char *const names[] = { "stdout", "stderr" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (json_member_text(result, names[i])[0])
                        mcp_write_text(json_member_text(result, names[i]), w);
}

void mcp_content_command(const Mcp *mcp, const JsonValue *result, JsonWriter *w) {
        (void)mcp;
        content_write_streams(result, w);
}

/* A display is an attacker's: an image must be base64 of a type that clients expect. */
static bool content_write_image(const JsonValue *display, JsonWriter *w) {
        static const char *const types[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };

        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                const char *data = json_member_string(display, types[i]);
                _cleanup_free_ char *bytes = NULL;
                size_t length;

                if (!data || base64_decode(data, &bytes, &length) < 0)
                        continue;
                json_write_object(w, NULL);
                json_write_string(w, "type", "image");
                json_write_string(w, "data", data);
                json_write_string(w, "mimeType", types[i]);
                json_write_end(w);
                return true;
        }
        return false;
}

void mcp_content_python(const Mcp *mcp, const JsonValue *result, JsonWriter *w) {
        const JsonValue *displays = json_member(result, "displays");
        const char *value = json_member_string(result, "result");
        const char *traceback = json_member_text(json_member(result, "error"), "traceback");

        (void)mcp;
        content_write_streams(result, w);
        for (const JsonValue *d = json_first(displays); d; d = json_next(d))
                if (!content_write_image(d, w) && json_member_string(d, "text/plain") &&
                    !(value && streq(value, json_member_text(d, "text/plain"))))
                        mcp_write_text(json_member_text(d, "text/plain"), w);
        if (value)
                mcp_write_text(value, w);
        if (traceback[0])
                mcp_write_text(traceback, w);
}

/* Clients may pass structured content to a model as text. So images are only in the content, and
 * huge pages are nowhere. */
static void content_write_display(const JsonValue *display, JsonWriter *w) {
        json_write_object(w, NULL);
        for (const JsonValue *v = json_first(display); v; v = json_next(v))
                if (str_starts(json_key(v), "image/"))
                        json_write_string(w, json_key(v), "(see content)");
                else if (strlen(json_string(v) ? json_string(v) : "") > MCP_OUTPUT_MAX)
                        json_write_string(w, json_key(v), "(left out, because it is too long)");
                else
                        json_copy(w, json_key(v), v);
        json_write_end(w);
}

static void content_copy(const JsonValue *value, const char *key, JsonWriter *w) {
        const JsonType type = json_type(value);

        if (type != JSON_OBJECT && type != JSON_ARRAY)
                return json_copy(w, key, value);
        if (type == JSON_OBJECT)
                json_write_object(w, key);
        else
                json_write_array(w, key);
        for (const JsonValue *v = json_first(value); v; v = json_next(v))
                if (type == JSON_ARRAY)
                        content_copy(v, NULL, w);
                else if (mcp_shows(json_key(v)))
                        content_copy(v, json_key(v), w);
        json_write_end(w);
}

void mcp_write_structured(const JsonValue *result, const char *note, JsonWriter *w) {
        json_write_object(w, "structuredContent");
        if (note)
                json_write_string(w, "note", note);
        for (const JsonValue *v = json_first(result); v; v = json_next(v)) {
                if (!streq(json_key(v), "displays")) {
                        if (mcp_shows(json_key(v)))
                                content_copy(v, json_key(v), w);
                        continue;
                }
                json_write_array(w, "displays");
                for (const JsonValue *d = json_first(v); d; d = json_next(d))
                        content_write_display(d, w);
                json_write_end(w);
        }
        json_write_end(w);
}

/* Paths and processes of the host are no business of a model. */
void mcp_content_status(const Mcp *mcp, const JsonValue *result, JsonWriter *w) {
        static const char *const names[] = { "name", "cwd", "cpus", "limits", "network" };
        _cleanup_(json_write_clear) JsonWriter text = { 0 };

        (void)mcp;
        json_write_object(&text, NULL);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (json_member(result, names[i]))
                        json_copy(&text, names[i], json_member(result, names[i]));
        json_write_array(&text, "routes");
        for (const JsonValue *r = json_first(json_member(result, "routes")); r; r = json_next(r))
                json_write_string(&text, NULL, json_member_text(r, "name"));
        json_write_end(&text);
        json_write_end(&text);
        mcp_write_text(text.data ? text.data : "", w);
}

void mcp_content_read(const Mcp *mcp, const JsonValue *result, JsonWriter *w) {
        bool eof = true;
        char line[128];

        (void)mcp;
        mcp_write_text(json_member_text(result, "content"), w);
        (void)json_bool(json_member(result, "eof"), &eof);
        (void)snprintf(line, sizeof(line), "holt: %s; the file has %" PRIu64 " bytes",
                       eof ? "the end of the file" : "the file goes on",
                       json_member_uint(result, "size"));
        mcp_write_text(line, w);
}
