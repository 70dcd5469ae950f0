/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an HTTP/1 request (RFC 9112): the request line and the fields. Pure.
 *
 * Servers repair malformed heads in different ways. An attacker could use this to let holt read one
 * host, and the server another. So a head is accepted only if all servers read it in the same way.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/authority.h"

/* A part of the head. It is not NUL-terminated. */
typedef struct HttpText {
        const char *at;
        size_t length;
} HttpText;

typedef struct HttpField {
        HttpText name;
        HttpText value; /* Without blanks around it. */
        HttpText line;  /* The whole line, with its CRLF. */
} HttpField;

typedef enum HttpForm {
        HTTP_ORIGIN,    /* A path. */
        HTTP_ABSOLUTE,  /* A URI with http or https. */
        HTTP_AUTHORITY, /* HOST:PORT of CONNECT. */
        HTTP_ASTERISK,  /* The "*" of OPTIONS. */
} HttpForm;

typedef struct HttpHead {
        HttpForm form;
        HttpText method;
        HttpText path; /* For HTTP_ORIGIN and HTTP_ABSOLUTE: the path and the query. A URI may have
                          neither. */
        bool secure;   /* The URI begins with https. */
        Authority target; /* For HTTP_ABSOLUTE and HTTP_AUTHORITY: the host and the port. */
        bool has_host;    /* The field exists and is not empty. */
        Authority host;
        unsigned minor;  /* The version is HTTP/1.minor. */
        HttpText fields; /* All lines of fields. */
} HttpHead;

/* Looks for the empty line that ends a head. The head begins at data + start. *seen is start before
 * the first call; each call moves it on. Returns 1 at the end, and *seen is then the offset after
 * the head. Returns 0 if more bytes are needed, or -EBADMSG for a line feed without a carriage
 * return. */
int http_head_end(const uint8_t *data, size_t length, size_t start, size_t *seen);

/* Reads a whole head, with its empty line. ret points into it. Returns 0, or -EBADMSG with a static
 * reason in *ret_why, such as "two Host fields". */
int http_head_parse(const void *data, size_t length, HttpHead *ret, const char **ret_why);

/* Takes the first field off *rest, which begins with the head's fields. Returns false after the
 * last one. */
bool http_field_next(HttpText *rest, HttpField *ret);

/* Compares, regardless of case. */
bool http_text_is(const HttpText *text, const char *other);

/* Whether the byte may be part of a method or of a field's name. */
bool http_is_token(uint8_t byte);
