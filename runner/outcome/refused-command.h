/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command. An argument that is a shell's script counts as several words. A word
 * proves nothing: the caller must judge each by facts (outcome/refused.h). */
#pragma once

#include <stdbool.h>

#include "base/util.h"

enum { COMMAND_WORD_MAX = 1024 }; /* Bytes of a word; a longer one is left out. */

typedef struct CommandWords {
        const char *const *argv; /* The arguments that are left; ends with NULL. */
        const char *at;          /* The unread part of the first one, or NULL. */
} CommandWords;

/* Starts at the first argument. argv: the command, or NULL. */
CommandWords argv_words(const char *const *argv);
/* Copies the next word. Returns false at the end. */
bool argv_next_word(CommandWords *words, char ret[COMMAND_WORD_MAX + 1]);
/* Whether the next word is a directory to which the command changes: after "cd" or "-C". */
bool argv_is_changer(const char *word);
/* Copies the next directory to which the command changes by a plain word: "cd sub", "make -C sub".
 * Returns false at the end. */
bool argv_next_directory(CommandWords *words, char ret[COMMAND_WORD_MAX + 1]);

/* Whether the program writes every path among its arguments. */
bool argv_is_writer(const char *program);
