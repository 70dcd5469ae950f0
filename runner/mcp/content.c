/* SPDX-License-Identifier: Apache-2.0 */
/* The content of results. The last item of a command's result is one line that only the server
 * writes. It says how the call ended, what was refused, and which grant would allow it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "mcp/mcp-internal.h"

enum { CONTENT_DENIALS_MAX = 4, CONTENT_LINE_MAX = 2048 };

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

static void content_write_end(const Mcp *mcp, const JsonValue *result, const char *noun,
                              JsonWriter *w) {
        const JsonValue *denials = json_member(result, "denials");
        const uint64_t dropped = json_member_uint(result, "stdout_dropped") +
                                 json_member_uint(result, "stderr_dropped");
        char line[CONTENT_LINE_MAX];
        size_t used = 0, count = 0;
        bool kept = true, missed = false;

        content_add(line, &used, "holt: %s, exit code %" PRIu64, json_member_text(result, "cause"),
                    json_member_uint(result, "exit_code"));
        for (const JsonValue *d = json_first(denials); d; d = json_next(d))
                if (count++ < CONTENT_DENIALS_MAX)
                        content_add_denial(mcp->settings.session, d, line, &used);
        if (count > CONTENT_DENIALS_MAX)
                content_add(line, &used, "; %zu more refusals", count - CONTENT_DENIALS_MAX);
        if (json_bool(json_member(result, "network_missed"), &missed) == 0 && missed)
                content_add(line, &used,
                            "; refused the network (only the user can allow a host: holt stop %s, "
                            "then holt allow %s net:HOST)",
                            mcp->settings.session, mcp->settings.session);
        if (dropped > 0)
                content_add(line, &used, "; %" PRIu64 " bytes of output are left out", dropped);
        (void)json_bool(json_member(result, "state_kept"), &kept);
        if (!kept)
                content_add(line, &used, "; the %s has ended, and the next call gets a new one",
                            noun);
        mcp_write_text(line, w);
}

uint64_t mcp_content_refusals(const char *session, const JsonValue *rows, uint64_t after,
                              JsonWriter *w) {
        uint64_t last = after;
        size_t used = 0, count = 0;
        char line[CONTENT_LINE_MAX];

        content_add(line, &used, "holt: the sandbox refused connections");
        for (const JsonValue *row = json_first(rows); row; row = json_next(row)) {
                const uint64_t id = json_member_uint(row, "id");
                const JsonValue *detail = json_member(row, "detail");

                if (id > last)
                        last = id;
                if (id > after && streq(json_member_text(detail, "layer"), "network") &&
                    count++ < CONTENT_DENIALS_MAX)
                        content_add_denial(session, detail, line, &used);
        }
        if (count > 0 && w)
                mcp_write_text(line, w);
        return last;
}

static void content_write_streams(const JsonValue *result, JsonWriter *w) {
        static const char *const names[] = { "stdout", "stderr" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (json_member_text(result, names[i])[0])
                        mcp_write_text(json_member_text(result, names[i]), w);
}

void mcp_content_command(const Mcp *mcp, const JsonValue *result, JsonWriter *w) {
        content_write_streams(result, w);
        content_write_end(mcp, result, "shell", w);
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

        content_write_streams(result, w);
        for (const JsonValue *d = json_first(displays); d; d = json_next(d))
                if (!content_write_image(d, w) && json_member_string(d, "text/plain") &&
                    !(value && streq(value, json_member_text(d, "text/plain"))))
                        mcp_write_text(json_member_text(d, "text/plain"), w);
        if (value)
                mcp_write_text(value, w);
        if (traceback[0])
                mcp_write_text(traceback, w);
        content_write_end(mcp, result, "interpreter", w);
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

void mcp_write_structured(const JsonValue *result, JsonWriter *w) {
        json_write_object(w, "structuredContent");
        for (const JsonValue *v = json_first(result); v; v = json_next(v)) {
                if (!streq(json_key(v), "displays")) {
                        json_copy(w, json_key(v), v);
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
