/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers of a policy: Python files of the host, of which the sandbox gets copies.
 *
 * Theory of operation. A file is read once: by holt run at its start, and for a session when it is
 * created. Later changes on the host have no effect. A command could replace the file by a symlink
 * to a secret, which the next holt run would then put inside. So the file is also an input of the
 * plan, and guards/inputs.h protects it or refuses it. */
#pragma once

#include "policy/plan.h"
#include "store/store.h"

/* Reads the file of each item of bridge.helpers. cwd (absolute) is the directory for relative
 * paths. ret gets an input for each item, in the same order, with its open file. Returns 0; -EINVAL
 * with an ERROR_POLICY for a file that is too large or no UTF-8; or another negative errno. */
int helpers_read(const Policy *policy, const char *cwd, PlanInputs *ret, Error *reterr);

/* Gives the plan a copy of each text, in a directory that PYTHONPATH names first. helpers is the
 * result of helpers_read() or helpers_load(). Returns 0 or a negative errno. */
int helpers_plan(const Policy *policy, const PlanInputs *helpers, LaunchPlan *plan, Error *reterr);

/* Does both for a single run, and makes the files inputs of the plan. */
int helpers_prepare(const Policy *policy, const char *cwd, LaunchPlan *plan, Error *reterr);

/* Stores the texts in a session's database, and reads them again, without open files. Return 0 or a
 * negative errno; helpers_load() returns -EINVAL with an ERROR_DATA if a text is missing. */
int helpers_store(const Policy *policy, const PlanInputs *helpers, Store *store, Error *reterr);
int helpers_load(const Policy *policy, Store *store, PlanInputs *ret, Error *reterr);
