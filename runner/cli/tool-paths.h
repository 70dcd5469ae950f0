/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the paths in the words of a tool's command, and refuses those that lead to a file that the
 * session can write (reach/reach.h).
 *
 * Theory of operation. A word may contain a path anywhere: after "=" or ":", after the letter of an
 * option, in quoted code. So each part of a word that could name a path is looked up from several
 * bases:
 * - the root directory, in which the tool starts
 * - the caller's directory
 * - HOME
 * - each directory that another word names, for options such as -C DIR
 *
 * A path that does not exist yet counts as well if the session could make it. */
#pragma once

#include "cli/tool-words.h"
#include "reach/reach.h"

typedef struct ToolPaths {
        const char *tool, *session, *cwd, *home; /* borrowed; home may be NULL */
        const Reach *reach;  /* borrowed: the files that the session can write */
        char *path;          /* owned: the directories of PATH that the session cannot write */
        char *dropped;       /* owned: the other directories of PATH, and relative ones */
        StrList directories; /* the directories that words of the command name */
        Error *reterr;
} ToolPaths;

/* Sorts the directories of PATH into path and dropped. The caller sets the other members. Returns 0
 * or -ENOMEM. */
int tool_paths_init(ToolPaths *paths);
void tool_paths_clear(ToolPaths *paths);

/* Finds the program of a command's first word: relative to the caller's directory if it has a
 * slash, otherwise in PATH. The caller owns *ret_path, its absolute path, and *ret_fd, an O_PATH fd
 * of it.
 *
 * Returns 0, -EPERM with an ERROR_POLICY if the session can change the program, -ENOENT with an
 * ERROR_USAGE, or another negative errno. */
int tool_paths_program(const ToolPaths *paths, const char *word, char **ret_path, int *ret_fd);

/* Judges the words after the first. directories: refuse a directory if the session can write below
 * it. Returns 0, -EPERM with an ERROR_POLICY, or another negative errno. */
int tool_paths_words(ToolPaths *paths, const ToolWords *words, bool directories);

/* Returns whether the session can write or replace the file at an absolute path. */
bool tool_paths_reached(const ToolPaths *paths, const char *path);

/* Returns the word as the tool gets it. If a plain word names an existing file relative to the
 * caller's directory, its path is made absolute; the same holds for the text after "=". The caller
 * owns the text; NULL if memory is out. */
char *tool_paths_absolute(const ToolPaths *paths, const ToolWord *word);
