/* SPDX-License-Identifier: Apache-2.0 */
/* Hints for a failed command of git. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { GIT_FATAL = 128 }; /* git's exit code after a fatal error */

typedef struct GitHint {
        int exit_code;           /* the exit code of a command that ended by itself */
        const char *workspace;   /* its path on the host, as the kernel names it; or NULL */
        const char *const *argv; /* the command, up to NULL */
        const char *text;        /* the end of its messages, or NULL if they are not known */
        size_t length;
        bool here;          /* the command started in the caller's working directory */
        bool identity;      /* the policy passes the caller's identity */
        const char *before; /* printed before an option: "" or "holt create " */
} GitHint;

/* Prints a hint if git may have failed for one of these reasons:
 *
 * - The workspace is a subdirectory of a repository.
 * - Its repository lies outside, as in a linked worktree or a submodule.
 * - git does not know who commits.
 *
 * Returns whether it has named an option. */
bool git_hint_print(const GitHint *hint, FILE *out);
