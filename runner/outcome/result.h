/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the outcome of a command as members of a JSON object, for the report of a run and the
 * replies of a session's keeper. */
#pragma once

#include "base/json-write.h"
#include "child/child.h"
#include "outcome/outcome.h"

/* The first members of every result document. */
typedef struct ResultHead {
        const char *const *command; /* NULL-terminated; NULL if there is no command. */
        const char *cause;          /* A name from cause_name(). */
        int exit_code;
        int signal;         /* The signal that ended the command, or 0. */
        const Error *error; /* NULL unless holt itself failed. */
} ResultHead;

/* Writes "command", "cause", "exit_code", "signal" and "error". */
void result_write_head(JsonWriter *w, const ResultHead *head);
/* Writes "output": the bytes that the caller got, and the bytes that were dropped. Null if nothing
 * was counted. */
void result_write_output(JsonWriter *w, bool counted, uint64_t bytes, uint64_t dropped);
/* Writes "error"; null if error is NULL. */
void result_write_error(JsonWriter *w, const Error *error);
/* Writes "usage". kills may be NULL; if it is not, "oom_kills" is written too. */
void result_write_usage(JsonWriter *w, const Usage *usage, const OomKills *kills);
/* Writes "layers": "on" or "off" for each, with the reason. Empty if layers is NULL. */
void result_write_layers(JsonWriter *w, const LayerState *layers, bool from_root);
/* Writes "limits". Empty if plan is NULL. */
void result_write_limits(JsonWriter *w, const LaunchPlan *plan);

/* Returns the reason why no grant would help, or NULL if one does. Static. policy may be NULL. */
const char *result_why_not(const Policy *policy, const LayerState *layers, const Denial *denial);
/* The filter ends a program of a foreign ABI by SIGSYS, without a notification. */
#define RESULT_FOREIGN "a foreign ABI"
extern const char result_foreign_why_not[];
/* Writes the denial of a foreign ABI as an object into the open array. */
void result_write_foreign(JsonWriter *w);
void result_write_foreign_members(JsonWriter *w);

/* Writes the denials of refused paths as objects into the open array. refusals may be NULL. */
void result_write_refusals(JsonWriter *w, const Refusals *refusals);

/* Writes the members of one denial. */
void result_write_denial(JsonWriter *w, const Policy *policy, const LayerState *layers,
                         const Denial *denial, uint64_t count);
