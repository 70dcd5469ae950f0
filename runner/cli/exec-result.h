/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a command in a session, as the keeper's reply to process.wait gives it. It is
 * printed for people and for programs, as holt run does it (report.h). */
#pragma once

#include "base/json-write.h"
#include "base/json.h"
#include "streams/tail.h"

typedef struct ExecResult {
        const char *session, *id;   /* id is "" before the command has one */
        const char *const *command; /* NULL-terminated; NULL for another caller's command */
        const JsonValue *refused;   /* result of process.explain, or NULL */
        const JsonValue *result;    /* result of process.wait; NULL if it is missing or lost */
        /* Result of session.show, for layers, limits and the workspace's directory; or NULL. */
        const JsonValue *show;
        const Tail *printed; /* the end of its messages; NULL or empty if it is not known */
        const Error *error;  /* NULL if holt itself did not fail */
        bool lost;           /* the session ended while the command ran, and sent no result */
        uint64_t timeout;    /* usec: the --timeout of this call; 0 if it has none */
        bool captured;       /* the keeper read the command's output */
} ExecResult;

/* Returns holt's exit code. */
int exec_result_code(const ExecResult *result);

/* Whether exec_result_tell() needs show: something is or was set aside, or the command ended with
 * the exit code of a fatal error of git. */
bool exec_result_needs_show(const JsonValue *result);

/* Prints to stderr the limits and refusals of two results, either of which may be NULL. If it names
 * an option of holt create, it also says how a session gets another option. */
void exec_result_tell_refused(const char *session, const JsonValue *const results[2]);

/* These two print parts of the result of exec, process.wait or python.run to stderr. show may be
 * NULL. */
void exec_result_tell_replaced(const JsonValue *result);
void exec_result_tell_set_aside(const JsonValue *result, const JsonValue *show);

/* Prints that the time was over, and which limit it was. asked: usec of the call's --timeout, or 0.
 */
void exec_result_tell_time_over(const JsonValue *result, uint64_t asked);
/* Prints to stderr that the session has lost its network, if it has. */
void exec_result_tell_lost(const char *session, const JsonValue *result);
/* Prints to stderr how the session's network may have failed the command. show: the result of
 * session.show, or NULL. text: the end of the command's messages. */
void exec_result_tell_network(const JsonValue *result, const JsonValue *show, const char *text,
                              size_t length);
/* Prints to stderr why the command ended early, and what was refused, dropped and set aside. Prints
 * nothing after a plain success. */
void exec_result_tell(const ExecResult *result);

/* Writes the whole document. Returns 0 or -ENOMEM. */
int exec_result_write(const ExecResult *result, JsonWriter *w);
