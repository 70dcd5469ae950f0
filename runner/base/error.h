/* SPDX-License-Identifier: Apache-2.0 */
/* One failure as data: the attempted operation, the path, the errno, and the cure.
 *
 * An Error is never on the heap and fits into one write to a pipe (PIPE_BUF). So the same type
 * serves stderr, a report, JSON-RPC and the child after clone. Functions that can fail return 0 or
 * a negative errno, which callers forward. They write *reterr only on failure, and reterr may be
 * NULL. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"

/* The kind of a failure from the caller's point of view. The exit code follows from it
 * (error_exit_code). */
typedef enum ErrorKind {
        ERROR_SETUP,  /* 125: the host, or holt itself, could not do it */
        ERROR_USAGE,  /* 125: a mistake in the command line */
        ERROR_POLICY, /* 125: a mistake in a policy field or file */
        ERROR_LAYER,  /* 125: a layer of the sandbox that this host refuses; see Error.layer */
        ERROR_NOT_EXECUTABLE, /* 126 */
        ERROR_NOT_FOUND,      /* 127 */
        ERROR_MISSING,        /* 125: no such session, file, tool or mount */
        ERROR_NO_KEY,         /* 125: the session has no such key */
        ERROR_NO_PROCESS,     /* 125: the session has no such process */
        ERROR_EXISTS,         /* 125: the thing to create already exists */
        ERROR_BUSY,           /* 125: another process uses it, or it still runs */
        ERROR_LIMIT,          /* 125: a limit of holt or of the disk is reached */
        ERROR_DATA,           /* 125: a file of holt's is damaged, or a newer holt wrote it */
        ERROR_PROTOCOL,       /* 125: a malformed message */
        ERROR_KIND_MAX,
} ErrorKind;

typedef struct Error {
        int errnum; /* positive errno; 0 if none applies */
        ErrorKind kind;
        int layer;       /* a Layer of policy/layers.h when kind is ERROR_LAYER */
        char text[1400]; /* the attempted operation and its path; no newline, untrusted bytes quoted
                          */
        char cure[1400]; /* the cure, lines separated by '\n'; "" if there is none */
} Error;

static_assert(sizeof(Error) <= 4096, "an Error crosses a pipe in one write");

/* Each function returns -errnum, or -EINVAL if errnum is 0, so that "return error_set(...)" works.
 * Text that does not fit is cut at the end. */
int error_set(Error *reterr, ErrorKind kind, int errnum, const char *fmt, ...) _printf_(4, 5);
int error_layer(Error *reterr, int layer, int errnum, const char *fmt, ...) _printf_(4, 5);
int error_oom(Error *reterr);
/* The cure of an errno that always has the same one, or "". error_set() and error_layer() put it
 * into the error. */
const char *error_usual_cure(int errnum);

/* Adds a cure to an error that has been set. Returns ret, so that a function can end with the call.
 */
int error_cure(Error *reterr, int ret, const char *fmt, ...) _printf_(3, 4);

/* Returns "ENOENT", or "errno 999". The string is static or belongs to the thread. */
const char *error_errno_name(int errnum);

/* The exit code that holt uses for the error: 125, 126 or 127. */
int error_exit_code(const Error *error);

/* "setup", "usage", "policy", "layer", "not-executable", "not-found", "missing" and so on: the
 * names above in lower case. */
const char *error_kind_name(ErrorKind kind);

/* Wraps each function above and shows the compiler that its result is negative. GCC's analyzer sees
 * one file at a time. Without this wrapper it assumes that code after "if (r < 0)" runs with unset
 * values. */
static inline int error_negative(int r) {
        return r < 0 ? r : -EINVAL;
}
#define error_set(...) error_negative(error_set(__VA_ARGS__))
#define error_layer(...) error_negative(error_layer(__VA_ARGS__))
#define error_oom(reterr) error_negative(error_oom(reterr))
#define error_cure(reterr, ret, ...)                                                               \
        ({                                                                                         \
                const int cured_ = (ret);                                                          \
                (void)error_cure(reterr, cured_, __VA_ARGS__);                                     \
                cured_;                                                                            \
        })

/* For checks whose callers make the Error: says why a text is refused. Returns -EINVAL. */
static inline int error_why(const char **ret_why, const char *why) {
        *ret_why = why;
        return -EINVAL;
}

/* Writes the error as one line for people: "TEXT: No such file or directory (ENOENT).", or only
 * TEXT if errnum is 0. Returns buf. */
enum { ERROR_SENTENCE_MAX = 4 * sizeof(((Error *)NULL)->text) + 160 };
const char *error_sentence(const Error *error, char buf[ERROR_SENTENCE_MAX]);

/* Makes one line of a cure, or a text, safe for a terminal. Returns buf. */
const char *error_line(const char *line, size_t length, char buf[ERROR_SENTENCE_MAX]);

/* Names the verb of this command line, which error_print() shows in usage errors. verb must stay
 * valid until the process ends. */
void error_name_verb(const char *verb);

/* Prints "holt: TEXT: No such file or directory (ENOENT).\n CURE\n". A usage error begins with
 * "holt VERB: " instead, so texts of errors contain neither prefix. Only cli/ calls it. */
void error_print(const Error *error, FILE *out);
