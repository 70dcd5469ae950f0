/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the keeper why a command has failed. If its stderr went to holt's own terminal or file, the
 * keeper has not seen the text. */
#pragma once

#include "cli/ask.h"
#include "streams/tail.h"

/* tail: the end of what the command wrote to stderr; if it is empty, the words of argv, up to NULL,
 * are passed instead. The result of process.explain goes to *ret. On failure, *ret stays empty: the
 * command's end is reported without it. */
void exec_explain(RpcClient *client, const char *id, const Tail *tail, const char *const *argv,
                  Answer *ret);
/* Adds the end of the text that the keeper has read. On failure, adds nothing. */
void exec_explain_read(RpcClient *client, const char *id, Tail *tail);
