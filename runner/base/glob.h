/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths, matched part by part on the way down a tree.
 *
 * "*" matches any characters of a name, "?" one character, and "[a-z]" or "[!a-z]" one of a set.
 * "\" makes the next character plain. A part that is "**" matches any number of directories,
 * including none. Without GLOB_DOTS, none of these matches a dot at the start of a name, as in a
 * shell without dotglob. Braces are plain characters, unless glob_expand() has replaced them.
 * Matching takes at most as many steps as the length of the pattern times that of the path. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strings.h"

enum {
        GLOB_PATTERN_MAX = 1024, /* In bytes. */
        GLOB_PARTS_MAX = 60,     /* Parts between slashes. */
};

typedef struct Glob Glob;

enum {
        GLOB_ANYWHERE = 1 << 0, /* A pattern without a slash matches names at any depth. */
        GLOB_DOTS = 1 << 1,     /* Wildcards match a dot at the start of a name, too. */
};

/* flags: GLOB_ANYWHERE, GLOB_DOTS. Returns 0, -EINVAL (empty,
 * absolute, or with a part ".."), -ENAMETOOLONG (beyond the limits), or -ENOMEM. */
int glob_new(const char *pattern, unsigned flags, Glob **ret);
/* NULL is legal; returns NULL. */
Glob *glob_free(Glob *glob);

static inline void glob_freep(Glob **glob) {
        *glob = glob_free(*glob);
}

/* Returns the state at the start: a bit for each part that may match next. */
uint64_t glob_start(const Glob *glob);
/* Returns the state after one part of the path. 0 means that nothing below it can match. */
uint64_t glob_step(const Glob *glob, uint64_t state, const char *name);
/* Whether the path so far matches. A pattern such as "x/" matches only directories. */
bool glob_matches(const Glob *glob, uint64_t state, bool directory);

/* Matches one name with one part of a pattern. dots: GLOB_DOTS. */
bool glob_name(const char *pattern, const char *name, bool dots);

/* Whether the text is a pattern, or contains "{a,b}". */
bool glob_is_pattern(const char *text);

/* Adds the patterns that "{a,b}" in the pattern stands for, as in bash: "*.{pem,key}" is "*.pem"
 * and "*.key". Braces without a comma in them are plain characters. Without such braces, adds the
 * pattern itself. Returns 0, -E2BIG if *ret has more than max items then, -ENAMETOOLONG, or
 * -ENOMEM. */
int glob_expand(const char *pattern, size_t max, StrList *ret);
