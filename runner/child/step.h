/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the child after clone: each has a name, so that the launcher can say which one failed.
 */
#pragma once

#include "child/child.h"

typedef struct Step {
        const char *name; /* infinitive, for "cannot NAME" */
        int (*run)(Launch *launch, Error *error);
} Step;

/* Runs the steps in order; the first failure ends it, and is named where the host is at fault. */
int steps_run(const Step *steps, size_t count, Launch *launch, Error *error);

/* Sets error to "WHAT SUBJECT" without any library, quoting nothing: the launcher does that when it
 * prints. layer LAYER_NONE makes it the caller's mistake rather than the host's. Returns -errnum.
 */
int step_fail(Error *error, Layer layer, int errnum, const char *what, const char *subject);

/* As in base/error.h. */
#define step_fail(...) error_negative(step_fail(__VA_ARGS__))

/* The same with what to do; returns r, to end a function with. */
int step_cure(Error *error, int r, const char *cure);
