/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a run: as JSON for programs, as lines for people. */
#pragma once

#include <stdio.h>

#include "base/json-write.h"
#include "sandbox/launch.h"
#include "sandbox/outcome.h"

/* All that there is to say; pointers are borrowed, and NULL or zero where the run did not get so
 * far. */
typedef struct RunResult {
        const char *const *command; /* NULL-terminated */
        const Policy *policy;       /* NULL before there was one */
        const LaunchPlan *plan;     /* NULL before there was one */
        const Identity *identity;
        LayerState layers;
        bool started; /* layers were in force */
        Outcome outcome;
        const Error *error;      /* NULL when holt did its part */
        const StrList *moved;    /* what guard_sweep() has set aside */
        const StrList *warnings; /* of warnings_find() */
} RunResult;

/* What --report names: a file, and not "-", which is a stream to other programs. 0 or -EINVAL. */
int report_check_name(const char *name, Error *reterr);

/* Opens path (absolute) for the report, before anything is started and with the caller's rights. An
 * existing file keeps its content until report_write(). From the first directory on that lies in
 * one of writable, which the sandbox can write (the caller's working directory above all), no link
 * is followed.
 *
 * writable  absolute host directories.
 * ret_fd    owned by the caller. */
int report_open(const char *path, const StrList *writable, int *ret_fd, Error *reterr);

/* Replaces the content of fd by the result as one JSON object. path is for the error. */
int report_write(int fd, const char *path, const RunResult *result, Error *reterr);

/* One JSON object on one line. */
void report_print_json(const RunResult *result, FILE *out);

/* What of the command line has had no effect, for people; for programs it is in the result. */
void report_print_warnings(const StrList *warnings, FILE *out);

/* What a person has to know that the exit code does not say: why it ended early, what was refused,
 * what was set aside. Nothing after a plain success. */
void report_print_text(const RunResult *result, FILE *out);

/* What was set aside, and how to take it back to where it was in workspace, a path on the host;
 * without one, NULL, only that it is. replaced: the host has replaced a protected file, so that it
 * may be the host's. Prints nothing if moved is empty. */
void report_moved(const StrList *moved, const char *workspace, bool replaced, FILE *out);

/* That holt stopped what, "it" or "the session", since the host replaced path; NULL if the command
 * ended by itself before that. set_aside: whether report_moved() follows. */
void report_replaced(const char *what, const char *path, bool set_aside, FILE *out);

/* --- the same for a command in a session, whose result comes from its keeper --- */

/* Replaces the content of fd by a finished document, as report_write(). */
int report_replace(int fd, const char *path, const JsonWriter *document, Error *reterr);
/* A finished document that is not pretty. */
void report_print_document(const JsonWriter *document, FILE *out);

/* Why a command, or a run of code, is not in the session's history yet; "" where it is. */
void report_unrecorded(const char *why, FILE *out);
/* That the time was over; limit: whose it was. */
void report_timeout(uint64_t usec, const char *limit, FILE *out);
/* A refused call; why_not: why no grant would help, or NULL; who_allows: "" or what stands before
 * the option that does. */
void report_denial(const char *name, uint64_t count, const char *answer, const char *why_not,
                   const char *who_allows, FILE *out);
