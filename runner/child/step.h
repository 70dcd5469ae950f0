/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the child after clone(2). Each has a name, so that the launcher can tell which one
 * failed. */
#pragma once

#include "child/child.h"

typedef struct Step {
        const char *name; /* Infinitive, for "cannot NAME". */
        int (*run)(Launch *launch, Error *error);
} Step;

/* Runs the steps in order and stops at the first failure. If the host is the cause, the message
 * names the step. */
int steps_run(const Step *steps, size_t count, Launch *launch, Error *error);

/* Sets error to "WHAT SUBJECT" without any library. Nothing is quoted here; the launcher does
 * that when it prints. With LAYER_NONE, the mistake is the caller's and not the host's. Returns
 * -errnum. */
int step_fail(Error *error, Layer layer, int errnum, const char *what, const char *subject);

/* Tells the compiler that the result is negative (base/error.h). */
#define step_fail(...) error_negative(step_fail(__VA_ARGS__))

/* Sets the cure of error. Returns r, so that a function can end with it. */
int step_cure(Error *error, int r, const char *cure);
