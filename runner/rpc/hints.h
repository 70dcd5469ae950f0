/* SPDX-License-Identifier: Apache-2.0 */
/* Hints for clients of methods.
 *
 * The hint of an Error is written for whoever types a command: "holt stop NAME lets it rest", "--ro
 * PATH". A client has methods and policies, so it gets "session.stop lets it rest" and
 * "filesystem.read_only: ["PATH"]". The command line is a client of the sockets of sessions. There
 * an error has the hint as it was written, too, as command_hint. The options come from the table of
 * policy fields, so a new field needs nothing here. */
#pragma once

#include "base/error.h"

/* Puts methods in place of verbs, and fields of a policy or parameters in place of options. Words
 * that are neither stay, and so do the options of other programs. */
void hint_for_methods(Error *error);
