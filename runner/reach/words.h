/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what a command of the host uses beside its program: the paths in its words, and the
 * interpreter of a script. Callers judge these: cli/tool-paths.c for tools, session/routes.c for
 * the credentials of routes. */
#pragma once

#include <stdbool.h>

/* Returns whether ch probably continues a path in a longer text. */
bool word_is_of_path(char ch);

/* Is called with a part of a word that may be a path: absolute, relative, or with "~". Returns 0,
 * or a negative errno that ends the walk. */
typedef int (*WordPartFn)(void *data, const char *part);
/* Calls fn with the parts that start at text. A part may end at each of the next characters that
 * can end a path, or at the end of the word. Returns 0, -ENOMEM, or the result of fn. */
int word_parts_from(const char *text, WordPartFn fn, void *data);
/* The same for the parts after the letter of an option, where text starts: -I/usr/include. */
int word_parts_of_option(const char *text, WordPartFn fn, void *data);
/* Returns whether a part of the word may start at index i. */
bool word_starts_part(const char *word, unsigned long i);

enum { SCRIPT_DEPTH_MAX = 5 }; /* scripts that name another script as interpreter, as in Linux */

/* Is called with a word of a script's first line: an absolute path, or a name that env(1) finds in
 * PATH. Options and assignments are left out. */
typedef int (*ScriptWordFn)(void *data, const char *word);
/* Calls fn with each word after "#!", if the O_PATH fd is a script. A relative program is one of
 * the root directory, in which the command starts. Returns 0 or the result of fn. */
int script_words(int path_fd, ScriptWordFn fn, void *data);
