/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and judges the head of a request. All of it is an attacker's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        HTTP_HEAD_MAX = 16 * 1024,
        HTTP_BODY_MAX = 1 << 20,
        HTTP_SESSION_ID = 32, /* hexadecimal digits */
};

typedef enum HttpMethod { HTTP_POST, HTTP_GET, HTTP_DELETE, HTTP_METHOD_MAX } HttpMethod;

typedef struct HttpHead {
        HttpMethod method;
        size_t body;                       /* bytes of the body */
        char session[HTTP_SESSION_ID + 1]; /* "" if there is none */
} HttpHead;

/* Reads the head, which ends with an empty line and is changed. Returns 0, or the status of the
 * response that refuses the request. */
int http_head_read(char *head, size_t length, uint16_t port, const char *token, HttpHead *ret);
