/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "links/range.h"
#include "links/server.h"

static const struct {
        unsigned status;
        const char *phrase, *text;
} answers[] = {
        { 200, "OK", "" },
        { 201, "Created", "The file is stored." },
        { 206, "Partial Content", "" },
        { 400, "Bad Request", "The request is malformed." },
        { 403, "Forbidden", "The link is not valid here." },
        { 404, "Not Found", "There is no such link, or its file is missing." },
        { 405, "Method Not Allowed", "A link allows either GET, or one PUT or POST." },
        { 409, "Conflict",
          "The path cannot be used: it is protected, or not that of a plain file." },
        { 410, "Gone", "The link has expired, was revoked, or was used." },
        { 411, "Length Required", "An upload needs a Content-Length, or comes in chunks." },
        { 413, "Content Too Large", "The upload is larger than the link allows." },
        { 416, "Range Not Satisfiable", "The file has no such bytes." },
        { 421, "Misdirected Request", "The Host must be 127.0.0.1 or localhost, with the port." },
        { 423, "Locked", "Another request uses this link. Try again when it has ended." },
        { 431, "Request Header Fields Too Large", "The head of the request is too large." },
        { 500, "Internal Server Error", "The file cannot be used." },
        { 501, "Not Implemented", "The only transfer coding of an upload is chunked." },
        { 503, "Service Unavailable", "The session is busy. Try again." },
        { 507, "Insufficient Storage", "The disk is full." },
};

/* Adds text to the response; a response always fits. */
_printf_(2, 3) static void response_add(Request *request, const char *fmt, ...) {
        const size_t room = sizeof(request->out) - request->out_length;
        va_list args;
        int n;

        va_start(args, fmt);
        n = vsnprintf(request->out + request->out_length, room, fmt, args);
        va_end(args);
        assert(n >= 0 && (size_t)n < room);
        request->out_length += (size_t)n;
}

/* The fields keep a browser from running or keeping the content, from giving the link to other
 * sites, and from using it in their pages. */
static void response_begin(Request *request, size_t row) {
        request->status = answers[row].status;
        request->out_length = request->out_at = 0;
        response_add(request,
                     "HTTP/1.1 %u %s\r\n"
                     "Connection: close\r\n"
                     "Cache-Control: no-store\r\n"
                     "Content-Security-Policy: sandbox; default-src 'none'\r\n"
                     "Cross-Origin-Resource-Policy: same-origin\r\n"
                     "Referrer-Policy: no-referrer\r\n"
                     "X-Content-Type-Options: nosniff\r\n",
                     answers[row].status, answers[row].phrase);
}

/* A status without a row is one of 500. */
static size_t response_row(unsigned status) {
        size_t row = 0;

        while (row < ELEMENTSOF(answers) && answers[row].status != status)
                row++;
        return row < ELEMENTSOF(answers) ? row : response_row(500);
}

static void response_send(Request *request) {
        link_request_wait(request, REQUEST_SENDING, EPOLLOUT, REQUEST_SILENT_TIME);
}

void link_request_respond(Request *request, unsigned status) {
        const size_t row = response_row(status);
        const char *text = answers[row].text;

        response_begin(request, row);
        if (status == 405)
                response_add(request, "Allow: %s\r\n",
                             request->link.upload ? "PUT, POST" : "GET, HEAD");
        response_add(request,
                     "Content-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n\r\n",
                     strlen(text) + 1);
        if (!request->head_only)
                response_add(request, "%s\n", text);
        request->left = 0;
        response_send(request);
}

/* RFC 6266 wants both forms of the name, and RFC 8187 defines the second. */
static void response_name(Request *request) {
        const char *slash = strrchr(request->link.path, '/');
        const char *name = slash ? slash + 1 : request->link.path;

        response_add(request, "Content-Disposition: attachment; filename=\"");
        for (const char *c = name; *c; c++)
                response_add(request, "%c",
                             *c < ' ' || *c > '~' || strchr("\"\\%/", *c) ? '_' : *c);
        response_add(request, "\"; filename*=UTF-8''");
        for (const char *c = name; *c; c++)
                response_add(request,
                             strchr("-._~", *c) || (*c >= '0' && *c <= '9') ||
                                             ((*c | 32) >= 'a' && (*c | 32) <= 'z')
                                     ? "%c"
                                     : "%%%02X",
                             (unsigned)(uint8_t)*c);
        response_add(request, "\r\n");
}

/* Selects the part of the file. Returns the status. */
static unsigned response_select(Request *request, uint64_t size) {
        int r = request->has_range ? range_read(request->range.at, request->range.length, size,
                                                &request->start, &request->left)
                                   : 0;

        if (r < 0)
                return 416;
        if (r == 0) {
                request->start = 0;
                request->left = size;
        }
        return r == 0 ? 200 : 206;
}

void link_request_respond_file(Request *request, uint64_t size) {
        const unsigned status = response_select(request, size);

        if (status == 416) {
                request->file_fd = fd_close(request->file_fd);
                return link_request_respond(request, status);
        }
        response_begin(request, response_row(status));
        response_add(request,
                     "Content-Type: application/octet-stream\r\n"
                     "Accept-Ranges: bytes\r\n"
                     "Content-Length: %" PRIu64 "\r\n",
                     request->left);
        if (status == 206)
                response_add(request,
                             "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n",
                             request->start, request->start + request->left - 1, size);
        response_name(request);
        response_add(request, "\r\n");
        if (request->head_only)
                request->left = 0;
        response_send(request);
}
