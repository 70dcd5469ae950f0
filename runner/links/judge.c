/* SPDX-License-Identifier: Apache-2.0 */
/* Decides about the head of a request, before the keeper learns of it. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "links/server.h"

/* A page of another site can make its own name lead to 127.0.0.1, but cannot change the Host that
 * the browser sends (DNS rebinding). */
static bool judge_host(const Request *request, const HttpHead *head) {
        return head->has_host && head->host.port == request->server->settings.port &&
               (streq(head->host.host, "127.0.0.1") || streq(head->host.host, "localhost"));
}

static bool judge_text_is(const HttpText *text, const char *other) {
        return text->length == strlen(other) && memcmp(text->at, other, text->length) == 0;
}

static bool judge_method(const Request *request, const HttpHead *head) {
        if (request->link.upload)
                return judge_text_is(&head->method, "PUT") || judge_text_is(&head->method, "POST");
        return request->head_only || judge_text_is(&head->method, "GET");
}

/* --- the fields --- */

/* The fields that matter; each may come once. */
typedef struct JudgeFields {
        HttpText length, coding, expect, range, if_range;
} JudgeFields;

/* Returns 0, or the status of a refusal. */
static unsigned judge_collect(const HttpHead *head, JudgeFields *ret) {
        const struct {
                const char *name;
                HttpText *value;
        } known[] = {
                { "Content-Length", &ret->length }, { "Transfer-Encoding", &ret->coding },
                { "Expect", &ret->expect },         { "Range", &ret->range },
                { "If-Range", &ret->if_range },
        };
        HttpText rest = head->fields;
        HttpField field;

        while (http_field_next(&rest, &field))
                for (size_t i = 0; i < ELEMENTSOF(known); i++) {
                        if (!http_text_is(&field.name, known[i].name))
                                continue;
                        if (known[i].value->at)
                                return 400;
                        *known[i].value = field.value;
                }
        return 0;
}

static unsigned judge_upload(Request *request, const JudgeFields *fields) {
        char digits[24];

        request->expects = fields->expect.at != NULL;
        if (fields->coding.at) {
                request->chunked = http_text_is(&fields->coding, "chunked");
                request->length = LINKS_UNKNOWN;
                return fields->length.at ? 400 : request->chunked ? 0 : 501;
        }
        if (!fields->length.at)
                return 411;
        if (fields->length.length >= sizeof(digits))
                return 400;
        memcpy(digits, fields->length.at, fields->length.length);
        digits[fields->length.length] = '\0';
        if (str_to_uint(digits, INT64_MAX, &request->length) < 0)
                return 400;
        return 0;
}

static unsigned judge_fields(Request *request, const HttpHead *head) {
        JudgeFields fields = { 0 };
        const unsigned status = judge_collect(head, &fields);

        if (status)
                return status;
        if (request->link.upload)
                return judge_upload(request, &fields);
        /* A response has no validator, so If-Range never matches. */
        request->has_range = fields.range.at && !fields.if_range.at;
        request->range = fields.range;
        return 0;
}

/* --- the link --- */

static unsigned judge_signature(Request *request, const HttpHead *head) {
        int r = head->form == HTTP_ORIGIN ? link_read(&request->server->settings.key, head->path.at,
                                                      head->path.length, &request->link)
                                          : -EBADMSG;

        if (r < 0)
                return r == -EACCES ? 403 : 404;
        return request->link.expires_ms <= time_epoch_ms() ? 410 : 0;
}

unsigned link_request_judge(Request *request) {
        const char *why;
        HttpHead head;
        unsigned status;

        if (http_head_parse(request->head, request->seen, &head, &why) < 0)
                return 400;
        request->head_only = judge_text_is(&head.method, "HEAD");
        if (!judge_host(request, &head))
                return 421;
        status = judge_signature(request, &head);
        if (status)
                return status;
        return judge_method(request, &head) ? judge_fields(request, &head) : 405;
}
