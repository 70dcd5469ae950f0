/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of its own for each test, the working directory while it runs, and the room's
 * insides.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/store-internal.h"

#define STORE_DB "session.db"

int enter_directory(void **state);
int leave_directory(void **state);

/* Fails the test, by the error's words, where it can't. The disk is not waited for: no test takes
 * the machine's power away, and thousands of writes would wait for all others' that use it. */
Store *open_store(const char *path, StoreMode mode);
/* The same as a new one. */
Store *create_store(void);
/* Fails the test where it can; the text and cure have to have those words. */
void refuse_store(const char *path, StoreMode mode, ErrorKind kind, const char *words);

/* Succeeds, or fails the test with the error's words. */
#define OK(call) ok((call), &error)
void ok(int r, const Error *error);

/* store_history_put() of what took a millisecond. */
int add_history_row(Store *store, const char *name, const char *params, const char *result,
                    uint64_t started_ms, Error *reterr);

/* Whole files. The result is owned by the caller. */
char *read_file(const char *path, size_t *ret_size);
void write_file(const char *path, const void *data, size_t size);
