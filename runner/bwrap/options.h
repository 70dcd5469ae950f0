/* SPDX-License-Identifier: Apache-2.0 */
/* bubblewrap's command line, version 0.11.1. */
#pragma once

#include "base/error.h"
#include "base/strings.h"
#include "policy/assembly.h"

#define BWRAP_VERSION "0.11.1"

typedef struct BwrapWords {
        Assembly assembly;
        StrList env; /* the command's environment; PWD is set later */
        bool help, version;
        bool level_prefix;               /* errors begin with "<3>" */
        bool user_asked, user_try_asked; /* --unshare-user, --unshare-user-try */
        char **args; /* the contents of --args, which the assembly's strings point into */
        size_t args_count;
} BwrapWords;

/* Parses argv[1] on. env is the caller's. Descriptors that an option names are O_CLOEXEC
 * afterwards. Returns 0, -EINVAL or -ENOMEM. After a failure, ret may be partly filled. */
int bwrap_parse(int argc, char *const *argv, char *const *env, BwrapWords *ret, Error *reterr);
void bwrap_words_clear(BwrapWords *words);

/* Prints the options. */
void bwrap_help(FILE *out);
