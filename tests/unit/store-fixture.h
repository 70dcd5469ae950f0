/* SPDX-License-Identifier: Apache-2.0 */
/* Stores in the directory of a test, and access to the internals of store/. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "directory-fixture.h"
#include "store/store-internal.h"

#define STORE_DB "session.db"

/* Fails the test with the error's words if it cannot open the store. Writes do not wait for the
 * disk: no test cuts the power, and thousands of waiting writes would slow every user of the disk.
 */
Store *open_store(const char *path, StoreMode mode);
/* The same for a new store. */
Store *create_store(void);
/* Fails the test if the store opens. The error's text and cure must contain the words. */
void refuse_store(const char *path, StoreMode mode, ErrorKind kind, const char *words);

/* Succeeds, or fails the test with the error's words. */
#define OK(call) ok((call), &error)
void ok(int r, const Error *error);

/* Sets a key of kv, and tells whether one exists. */
void set_key(Store *store, const char *key);
bool has_key(Store *store, const char *key);

/* Calls store_history_put() for a call that took a millisecond. */
int add_history_row(Store *store, const char *name, const char *params, const char *result,
                    uint64_t started_ms, Error *reterr);

/* Reads a whole file. The result is owned by the caller. */
char *read_file(const char *path, size_t *ret_size);
void write_file(const char *path, const void *data, size_t size);
