/* SPDX-License-Identifier: Apache-2.0 */
/* How a command ended, as members of a JSON object: what the report of a run and the answers of a
 * session's keeper have in common. */
#pragma once

#include "base/json-write.h"
#include "sandbox/launch.h"
#include "sandbox/outcome.h"

/* "SIGTERM", or "SIG34" in buf. */
const char *result_signal_name(int signal, char buf[16]);

/* What a person or a program asks first of a command: the members that every result document begins
 * with. */
typedef struct ResultHead {
        const char *const *command; /* NULL-terminated, or NULL for none */
        const char *cause;          /* as cause_name() says it */
        int exit_code;
        int signal;         /* that ended the command, or 0 */
        const Error *error; /* NULL if holt did its part */
} ResultHead;

/* "command", "cause", "exit_code", "signal" and "error". */
void result_write_head(JsonWriter *w, const ResultHead *head);
/* "output": the bytes that the caller got, and those that were dropped; null if nobody counted. */
void result_write_output(JsonWriter *w, bool counted, uint64_t bytes, uint64_t dropped);
/* "error": null where error is NULL. */
void result_write_error(JsonWriter *w, const Error *error);
/* "usage"; kills, with which it has oom_kills, may be NULL. */
void result_write_usage(JsonWriter *w, const Usage *usage, const OomKills *kills);
/* "layers": each with "on" or "off" and why; none where layers is NULL. */
void result_write_layers(JsonWriter *w, const LayerState *layers, bool from_root);
/* "limits"; none where plan is NULL. */
void result_write_limits(JsonWriter *w, const LaunchPlan *plan);

/* Why no grant would help, or NULL where one does. Static. policy may be NULL. */
const char *result_why_not(const Policy *policy, const LayerState *layers, const Denial *denial);
/* The filter ends a program of a foreign ABI by SIGSYS, without a word. */
#define RESULT_FOREIGN "a foreign ABI"
extern const char result_foreign_why_not[];
/* A denial that says so, an object of the array that is open. */
void result_write_foreign(JsonWriter *w);
void result_write_foreign_members(JsonWriter *w);

/* The members of one denial; why_not as above. */
void result_write_denial(JsonWriter *w, const Denial *denial, uint64_t count, const char *why_not);
