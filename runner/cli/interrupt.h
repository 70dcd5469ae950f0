/* SPDX-License-Identifier: Apache-2.0 */
/* The end of holt after Ctrl-C.
 *
 * A shell ends its loop only if SIGINT killed the program in it: an exit code of 130 may mean
 * anything. So if Ctrl-C has ended the command, holt dies of SIGINT itself. It does so only if the
 * caller asked for it. A command that kills itself with SIGINT cannot end the caller's loop. */
#pragma once

#include "outcome/outcome.h"

/* Prepares interrupt_end() for Ctrl-C, if root runs holt. Call it before holt gives
 * root up. */
void interrupt_prepare(void);

/* Kills holt with SIGINT if Ctrl-C, or a SIGINT to holt, ended the command. Otherwise returns the
 * exit code. Call it last: the result must be complete and the terminal restored.
 *
 * cause  a name from cause_name() */
int interrupt_end(const char *cause, int exit_code, Interrupt by);
