/* SPDX-License-Identifier: Apache-2.0 */
/* One failure as data: what was tried, on which path, the errno, what to do.
 *
 * An Error is never on the heap and fits one write to a pipe (PIPE_BUF), so the same type serves
 * stderr, a report, JSON-RPC and the child after clone. Functions that can fail return 0, or a
 * negative errno that is forwarded, and write *reterr only then; reterr may be NULL where the
 * caller does not care. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"

/* What the failure is to the caller; the exit code follows from it (error_exit_code). */
typedef enum ErrorKind {
        ERROR_SETUP,  /* 125: the host, or holt itself, could not do it */
        ERROR_USAGE,  /* 125: the command line */
        ERROR_POLICY, /* 125: a policy field or file */
        ERROR_LAYER,  /* 125: a layer of the sandbox that this host refuses; see Error.layer */
        ERROR_NOT_EXECUTABLE, /* 126 */
        ERROR_NOT_FOUND,      /* 127 */
        ERROR_MISSING,        /* 125: no such session, process, key or file */
        ERROR_EXISTS,         /* 125: what was to be made is there already */
        ERROR_BUSY,           /* 125: somebody else has it, or it goes on */
        ERROR_LIMIT,          /* 125: a cap of holt's or of the disk is reached */
        ERROR_DATA,           /* 125: a file of holt's own is damaged, or of a newer holt */
        ERROR_PROTOCOL,       /* 125: a message that is none */
        ERROR_KIND_MAX,
} ErrorKind;

typedef struct Error {
        int errnum; /* positive errno; 0 where none says anything */
        ErrorKind kind;
        int layer;       /* a Layer of policy/layers.h when kind is ERROR_LAYER */
        char text[1400]; /* what was tried, on which path; no newline, untrusted bytes quoted */
        char cure[1400]; /* what to do, lines split by '\n'; "" where nothing helps */
} Error;

static_assert(sizeof(Error) <= 4096, "an Error crosses a pipe in one write");

/* Each returns -errnum, or -EINVAL where errnum is 0, so that "return error_set(...)" reads well.
 * Text that does not fit is cut at the end. */
int error_set(Error *reterr, ErrorKind kind, int errnum, const char *fmt, ...) _printf_(4, 5);
int error_layer(Error *reterr, int layer, int errnum, const char *fmt, ...) _printf_(4, 5);
int error_oom(Error *reterr);
/* What to do about an errno that has one cure wherever it comes from, or "". error_set() and the
 * like put it into the error. */
const char *error_usual_cure(int errnum);

/* Adds what to do to an error that has been set; returns ret, to end a function with. */
int error_cure(Error *reterr, int ret, const char *fmt, ...) _printf_(3, 4);

/* "ENOENT", or "errno 999". The string is static or a thread's own. */
const char *error_errno_name(int errnum);

/* The exit code that holt gives for the error: 125, 126 or 127. */
int error_exit_code(const Error *error);

/* "setup", "usage", "policy", "layer", "not-executable", "not-found", "missing", ...: the names
 * above in lower case. */
const char *error_kind_name(ErrorKind kind);

/* The same, said so that a compiler that looks at one file at a time sees it: GCC's analyzer goes
 * on behind each "if (r < 0)" otherwise, with what was never set. */
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

/* What a person reads, on one line: "TEXT: No such file or directory (ENOENT).", or TEXT alone
 * where there is no errno. Returns buf. */
enum { ERROR_SENTENCE_MAX = 4 * sizeof(((Error *)NULL)->text) + 160 };
const char *error_sentence(const Error *error, char buf[ERROR_SENTENCE_MAX]);

/* One line of a cure, or a text, as a person may see it. Returns buf. */
const char *error_line(const char *line, size_t length, char buf[ERROR_SENTENCE_MAX]);

/* Prints "holt: TEXT: No such file or directory (ENOENT).\n  CURE\n". For cli/ only. */
void error_print(const Error *error, FILE *out);
