/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of --tool NAME=COMMAND: made safe from the session that calls them.
 *
 * Theory of operation. A tool runs on the host, as the caller. If the session can write the tool's
 * program, whatever runs inside runs on the host at the next call. So each word of COMMAND that
 * leads to a place which the session can write is refused (sandbox/reach.h): the word itself, its
 * part behind "=", ":", "," or "@", a program that PATH finds, and the interpreter that a script
 * names in its first line. What a shell would still have to expand is judged by the directories
 * before it.
 *
 * That is asked at the start, and again before each call, since the host may have moved a file or
 * put a symlink in its place. The tool is executed by its path all the same. By a descriptor a
 * script would not know its own name, and so not find what lies beside it (sys.path[0], dirname
 * $0); and what has been judged is that nothing in the session can change where the path leads, or
 * the file. Whoever else can is the caller, whose edits count, or another sandbox, whose mounts
 * nobody here knows.
 *
 * Nothing else may lead there by accident. A tool starts in "/", so that a relative path that is
 * not seen here finds nothing, and its environment has a few variables of the caller's only. The
 * words that name files relative to the caller's directory are made absolute instead. */
#pragma once

#include "base/error.h"
#include "base/strings.h"

/* Copies specs to *ret_specs, each COMMAND checked against what session can write, and its relative
 * paths made absolute. *ret_env is the environment of the tools. Both are the caller's. 0, -EPERM
 * with an ERROR_POLICY for a command that the session could change, or another negative errno. */
int tool_commands_check(const char *session, const StrList *specs, StrList *ret_specs,
                        StrList *ret_env, Error *reterr);
