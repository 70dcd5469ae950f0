/* SPDX-License-Identifier: Apache-2.0 */
/* The root of a fake sandbox, and a directory beside it that calls must not reach. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "files/files.h"

/* The working directory is the parent of "root" and "outside". */
typedef struct Fixture {
        char path[64];
        int root_fd;
        Files *files; /* the working directory of the calls is /work, which exists */
        Error error;
} Fixture;

int fixture_setup(void **state);
/* Fails if any file in "outside" has changed. */
int fixture_teardown(void **state);
void assert_outside_untouched(void);

void make_file(const char *path, const char *text);
void assert_file(const char *path, const char *text);
bool there(const char *path);

/* Nothing is refused to root, so a test of permissions becomes another user for a while. */
void become_user(Fixture *f);
void become_root(void);

#define files_test(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

#define assert_works(fixture, call)                                                                \
        do {                                                                                       \
                if ((call) < 0)                                                                    \
                        fail_msg(#call ": %s: errno %d. %s", (fixture)->error.text,                \
                                 (fixture)->error.errnum, (fixture)->error.cure);                  \
        } while (0)

#define assert_fails(fixture, call, expected_kind, expected_errno)                                 \
        do {                                                                                       \
                assert_int_equal(call, -(expected_errno));                                         \
                assert_string_equal(error_kind_name((fixture)->error.kind),                        \
                                    error_kind_name(expected_kind));                               \
        } while (0)

static inline int write_text(Fixture *f, const char *path, const char *text) {
        return files_write(f->files, path, text, strlen(text), 0, false, &f->error);
}

/* Reads the start of a file with files_read(). The result is static. */
const char *read_text(Fixture *f, const char *path);
