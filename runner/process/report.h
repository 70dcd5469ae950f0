/* SPDX-License-Identifier: Apache-2.0 */
/* Members that the result of a command shares with the result of a run of the interpreter. */
#pragma once

#include "process/process.h"

/* Writes "id", "cause" and "exit_code" of a settled process. */
void process_write_end(const Process *process, JsonWriter *w);
/* Makes a document of these members. The caller clears it. Returns 0 or -ENOMEM. */
int process_end_document(const Process *process, JsonWriter *ret);
/* From now on, the denials of the process are those that are not in these counts yet. network and
 * gateway may be NULL. */
void process_mark_denials(Process *process, const Denials *calls, const NetDenials *network,
                          const GatewayDenials *gateway);
/* Writes these members:
 * - "set_aside": the paths that were set aside after it
 * - "still_aside": files of the host that were set aside before that, if there are any
 * - "unguarded", if some could not be set aside
 * - "replaced": the protected path that the host changed, or null */
void process_write_set_aside(const Process *process, JsonWriter *w);
/* Writes the kept bytes of a stream, 0 for stdout and 1 for stderr, as the member key. */
void process_write_output(const Process *process, unsigned stream, const char *key, bool base64,
                          JsonWriter *w);
/* Reads the processor time of a process that runs, and of the children that it has waited for:
 * user_us and system_us, in steps of the kernel's clock (10 ms). Returns false if it is not known.
 */
bool process_spent(const Process *process, Usage *ret);
