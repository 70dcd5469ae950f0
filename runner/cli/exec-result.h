/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a command in a session, from what its keeper answers to process.wait: for people
 * and for programs as holt run has it (report.h). */
#pragma once

#include "base/json-write.h"
#include "base/json.h"

typedef struct ExecResult {
        const char *session, *id;   /* id is "" before there was one */
        const char *const *command; /* NULL-terminated; NULL where somebody else has called it */
        const JsonValue *result;    /* of process.wait; NULL where it did not get so far, or lost */
        const JsonValue *show;      /* of session.show, for layers, limits, and where the workspace
                                     * is; NULL for none */
        const Error *error;         /* NULL when holt did its part */
        bool lost;                  /* the session ended while it ran, without a word of how */
        uint64_t timeout;           /* usec of the call's own --timeout; 0 where it has none */
        bool captured;              /* what it printed went through the keeper */
} ExecResult;

/* The code to exit with. */
int exec_result_code(const ExecResult *result);

/* Whether something was set aside, so that exec_result_tell() has a use for show. result may be
 * NULL. */
bool exec_result_set_aside(const JsonValue *result);

/* To stderr, of what exec, process.wait or python.run has answered; show may be NULL. */
void exec_result_tell_denials(const JsonValue *result);
void exec_result_tell_replaced(const JsonValue *result);
void exec_result_tell_set_aside(const JsonValue *result, const JsonValue *show);

/* To stderr: why it ended early, what was refused, dropped, set aside. Nothing after a plain
 * success. */
void exec_result_tell(const ExecResult *result);

/* The whole document. 0 or -ENOMEM. */
int exec_result_write(const ExecResult *result, JsonWriter *w);
