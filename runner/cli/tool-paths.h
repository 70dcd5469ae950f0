/* SPDX-License-Identifier: Apache-2.0 */
/* The paths in a tool's command: finds them in its words, and refuses those that lead to what the
 * session can write (reach/reach.h).
 *
 * Theory of operation. A word may have a path anywhere: after "=" or ":", behind the letter of an
 * option, in quoted code. So each part of a word that could name a path is looked up: from "/",
 * where the tool starts, from the caller's directory, from HOME, and from each directory that
 * another word names, for options such as -C DIR. A path that does not exist yet counts as well if
 * the session could make it. */
#pragma once

#include "cli/tool-words.h"
#include "reach/reach.h"

typedef struct ToolPaths {
        const char *tool, *session, *cwd, *home; /* borrowed; home may be NULL */
        const Reach *reach;                      /* borrowed */
        char *path;          /* directories of PATH that the session can't write */
        char *dropped;       /* the others, and relative ones */
        StrList directories; /* that the words of a command name */
        Error *reterr;
} ToolPaths;

/* Sorts the directories of PATH. The other members are set by the caller. 0 or -ENOMEM. */
int tool_paths_init(ToolPaths *paths);
void tool_paths_clear(ToolPaths *paths);

/* Finds the program that a command's first word names: relative to the caller's directory if it has
 * a slash, and by PATH otherwise. *ret_path is its absolute path, *ret_fd an O_PATH fd of it; both
 * are the caller's. 0; -EPERM with an ERROR_POLICY if the session can change it; -ENOENT with an
 * ERROR_USAGE; or another negative errno. */
int tool_paths_program(const ToolPaths *paths, const char *word, char **ret_path, int *ret_fd);

/* Judges the words behind the first. directories: refuse a directory if the session can write below
 * it. 0, -EPERM with an ERROR_POLICY, or another negative errno. */
int tool_paths_words(ToolPaths *paths, const ToolWords *words, bool directories);

/* Whether the session can write an absolute path, or replace it. */
bool tool_paths_reached(const ToolPaths *paths, const char *path);

/* The word as the tool gets it: if it is plain and names an existing file relative to the caller's
 * directory, with an absolute path, and likewise behind "=". Owned by the caller; NULL when memory
 * is out. */
char *tool_paths_absolute(const ToolPaths *paths, const ToolWord *word);
