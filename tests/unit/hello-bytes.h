/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that clients send first, for the tests of wire/hello.h. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "wire/hello.h"

typedef struct Bytes {
        uint8_t at[3 * HELLO_MAX];
        size_t length;
} Bytes;

static inline void add(Bytes *b, const void *bytes, size_t length) {
        assert_true(length <= sizeof(b->at) - b->length);
        memcpy(b->at + b->length, bytes, length);
        b->length += length;
}

static inline Hello read_bytes(const void *bytes, size_t length) {
        uint8_t *copy = malloc(length + 1);
        Hello hello = { 0 };

        /* A copy of the exact size, so that a sanitizer sees each read past the end. */
        assert_non_null(copy);
        memcpy(copy + 1, bytes, length);
        hello_read(copy + 1, length, &hello);
        free(copy);
        return hello;
}

/* Gives the bytes one by one, and each of the states before the end must ask for more. */
static inline void read_slowly(const Bytes *b, HelloKind kind, const char *name) {
        Hello hello = { 0 };

        for (size_t length = 0; length < b->length; length++) {
                hello_read(b->at, length, &hello);
                assert_int_equal(hello.kind, HELLO_MORE);
                assert_string_equal(hello.name, "");
        }
        hello_read(b->at, b->length, &hello);
        assert_int_equal(hello.kind, kind);
        assert_string_equal(hello.name, name);
}
