/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the result of a run: as JSON for programs, as lines for people. */
#pragma once

#include <stdio.h>

#include "base/json-write.h"
#include "outcome/outcome.h"
#include "sandbox/launch.h"

/* The result. All pointers are borrowed. Fields of steps that the run did not reach are NULL or
 * zero. */
typedef struct RunResult {
        const char *const *command; /* NULL-terminated */
        const Policy *policy;       /* NULL if the run failed before it had one */
        const LaunchPlan *plan;     /* NULL if the run failed before it had one */
        const Identity *identity;
        LayerState layers;
        bool started; /* the layers were in force */
        Outcome outcome;
        const Error *error;            /* NULL if holt itself did not fail */
        const StrList *moved;          /* paths that guard_sweep() has set aside */
        const StrList *warnings;       /* made by warnings_find() */
        const NetPublished *published; /* ports of the host that were open */
} RunResult;

/* Checks the FILE of --report, which cannot be "-". Returns 0 or -EINVAL. */
int report_check_name(const char *name, Error *reterr);

/* Opens path (absolute) for the report with the caller's rights, before anything is started. An
 * existing file keeps its content until report_write(). writable lists the absolute host
 * directories that the command can write, above all the caller's working directory. From the first
 * of these on the path, no link is followed.
 *
 * option: what named the file, for errors. The caller owns *ret_fd. */
int report_open(const char *option, const char *path, const StrList *writable, int *ret_fd,
                Error *reterr);

/* Replaces the content of fd by the result as one JSON object. path is used in the error. */
int report_write(int fd, const char *path, const RunResult *result, Error *reterr);

/* Prints one JSON object on one line. */
void report_print_json(const RunResult *result, FILE *out);

/* Prints the options without effect, for people. Programs find them in the result. */
void report_print_warnings(const StrList *warnings, FILE *out);

/* Prints the published ports whose number on the host was chosen by the kernel. wanted: the
 * policy's list. */
void report_print_published(const StrList *wanted, const NetPublished *published, FILE *out);

/* Prints the facts that the exit code does not tell: why the run ended early, what was refused, and
 * what was set aside. Prints nothing after a plain success. */
void report_print_text(const RunResult *result, FILE *out);

/* Prints that holt stopped `what` ("the command" or "the session") because the host replaced path.
 * `what` is NULL if the command ended by itself before that. set_aside: moved_report() follows. */
void report_replaced(const char *what, const char *path, bool set_aside, FILE *out);
/* Prints that holt has stopped the session for this path before the command. */
void report_stopped_for(const char *path, FILE *out);

/* --- for a command in a session, whose result comes from its keeper --- */

/* Replaces the content of fd by a finished document, as report_write() does. */
int report_replace(int fd, const char *path, const JsonWriter *document, Error *reterr);
/* Prints a finished document that is not pretty. */
void report_print_document(const JsonWriter *document, FILE *out);

/* Prints why the session's history does not contain a command or run yet. Prints nothing if why is
 * "". */
void report_unrecorded(const char *why, FILE *out);
/* Prints that the time was over. limit: the option or policy that set the limit. */
void report_timeout(uint64_t usec, const char *limit, FILE *out);
/* Prints a limit that was reached. who_raises: the text before the option, or "". */
void report_limit(const LimitText *limit, const char *who_raises, FILE *out);

enum { REPORT_REFUSALS_MAX = 5 }; /* Lines about refused paths. */

/* Prints a refused path. answer: the errno, or "" if nobody knows whether the path is the reason.
 * grant and why_not may be "". who_allows: the text before the grant, or
 * "". */
void report_refusal(const char *path, const char *answer, const char *reason, const char *grant,
                    const char *why_not, const char *who_allows, FILE *out);
/* Prints a refused call. why_not: why no grant would help, or NULL. who_allows: the text before
 * "--allow-syscall", or "". */
void report_denial(const char *name, uint64_t count, const char *answer, const char *why_not,
                   const char *who_allows, FILE *out);
