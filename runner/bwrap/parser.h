/* SPDX-License-Identifier: Apache-2.0 */
/* The state of parsing bubblewrap's options, and a row of their table (options.c). */
#pragma once

#include "bwrap/options.h"

typedef struct Parser Parser;

enum {
        TAKES_MODE = 1 << 0, /* --perms may come before it */
        TAKES_SIZE = 1 << 1, /* --size may */
};

typedef struct BwrapOption {
        const char *name, *words, *help;
        unsigned values; /* number of values */
        int (*take)(Parser *p, const char *const *values, Error *reterr);
        AssemblyKind kind;
        unsigned flags; /* ASSEMBLY_ flags of the step; or 1 for one of two options that share a
                           function */
        mode_t mode;    /* default permissions */
        unsigned takes;
        size_t offset;       /* offset of a member of BwrapWords */
        uint64_t namespaces; /* CLONE_NEW* */
} BwrapOption;

struct Parser {
        BwrapWords *words;
        const BwrapOption *option; /* the current one */
        bool has_mode;             /* --perms waits for its option */
        mode_t mode;
        uint64_t size;    /* --size waits, unless 0 */
        unsigned layers;  /* --overlay-src that wait for their overlay */
        unsigned seccomp; /* 1: --seccomp was given; 2: --add-seccomp-fd */
};

/* Returns the row of an option, or NULL. */
const BwrapOption *bwrap_option(const char *name);
