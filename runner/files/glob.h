/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths, matched part by part on the way down a tree.
 *
 * "*" and "?" stand for any and one character of a name, "[a-z]", "[!a-z]" for one of a set, "\"
 * takes the next character as it is, and a part that is "**" for any number of directories, none
 * too. As in a shell without dotglob, none of them stands for a dot at the start of a name. Braces
 * are plain characters. The time is at most the length of the pattern times that of the path. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
        GLOB_PATTERN_MAX = 1024, /* bytes */
        GLOB_PARTS_MAX = 60,     /* between slashes */
};

typedef struct Glob Glob;

/* anywhere: a pattern without a slash matches names at any depth. 0, -EINVAL (empty, absolute, or
 * with a part ".."), -ENAMETOOLONG (past the limits), -ENOMEM. */
int glob_new(const char *pattern, bool anywhere, Glob **ret);
/* NULL is legal; returns NULL. */
Glob *glob_free(Glob *glob);

static inline void glob_freep(Glob **glob) {
        *glob = glob_free(*glob);
}

/* How far the pattern has come, a bit for each part. */
uint64_t glob_start(const Glob *glob);
/* After a part of the path; 0: nothing in there can match. */
uint64_t glob_step(const Glob *glob, uint64_t state, const char *name);
/* "x/" is a directory. */
bool glob_matches(const Glob *glob, uint64_t state, bool directory);

/* One name and one part of a pattern. */
bool glob_name(const char *pattern, const char *name);
