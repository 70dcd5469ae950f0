/* SPDX-License-Identifier: Apache-2.0 */
/* Hints for clients of methods.
 *
 * The hint of an Error is written for the command line: "holt stop NAME lets it rest", "--ro
 * PATH". A client has methods and policies, so it gets "session.stop lets it rest" and
 * "filesystem.read_only: ["PATH"]". The command line itself is a client of the sessions' sockets.
 * For it, errors also carry the original hint, as command_hint. The options come from the table of
 * policy fields, so a new field needs no change here. */
#pragma once

#include "base/error.h"
#include "base/json-write.h"

/* Replaces verbs by methods, and options by policy fields or parameters. Other words stay, and so
 * do the options of other programs. */
void hint_for_methods(Error *error);

/* Writes a hint that belongs to no Error, such as a warning, with the words of methods. Text past
 * the length of Error.cure is left out. */
void hint_write(JsonWriter *w, const char *key, const char *hint);
