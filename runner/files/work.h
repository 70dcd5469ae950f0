/* SPDX-License-Identifier: Apache-2.0 */
/* Runs calls about files that may take long: copying, removing or searching trees, and flushing
 * contents to the disk.
 *
 * Theory of operation. Such a call runs on a thread of its own, so that the keeper's loop serves
 * other clients meanwhile. At most WORKERS_MAX run at a time; others wait for their turn. Most
 * calls are short. The loop waits a moment for each, so that replies to short calls keep their
 * order. A thread touches its FilesWork and nothing else; the loop makes the reply. The keeper
 * starts threads only after it has made its sandbox, and then makes no other process.
 *
 * Calls that write contents run one at a time, in order. So of two calls sent one after the other,
 * the second one's contents remain.
 *
 * If a client goes, its calls that change files are completed all the same; those that only read
 * end. A keeper that ends stops them. */
#pragma once

#include <limits.h>

#include "files/unfinished.h"
#include "rpc/server.h"

enum { WORKERS_MAX = 4 };

typedef struct Works Works;

/* One call. It owns copies of its strings; unused ones are NULL. */
typedef struct FilesWork {
        Files *files; /* Borrowed. */
        char *path, *to, *pattern;
        char *content; /* Owned; of length bytes. */
        size_t length;
        unsigned mode;
        bool recursive, replace, ignore_case, make_parents;
        uint64_t limit;
        StrList names;
        Unfinished unfinished; /* Note of the file at path; cleared by unfinished_leave(). */

        /* results */
        JsonWriter list; /* An array. */
        /* full: the reply has no room for more entries. more: further entries exist. */
        bool full, more;
        char last[PATH_MAX]; /* Last name in the list; "" without any. */
        FilesMissed missed;
        uint64_t left_out;
        uint64_t size; /* Size of the written file. */
} FilesWork;

typedef struct FilesWorkKind {
        /* Runs on another thread. Returns 0, or a negative errno with *error written. */
        int (*run)(FilesWork *work, Error *error);
        /* Writes the members of the reply, which is open. */
        void (*answer)(const RpcCall *call, const FilesWork *work, JsonWriter *w);
        bool looks;   /* It changes nothing. */
        bool ordered; /* Such calls run one at a time, in the order of arrival. */
} FilesWorkKind;

/* Returns 0 or a negative errno. */
int works_new(Loop *loop, Works **ret, Error *reterr);
/* Tells running works to end, and waits for them. Their calls must have ended before. NULL is
 * legal; returns NULL. */
Works *works_free(Works *works);
/* Continues works that waited for their client to read. A work that only reads may have a large
 * reply. */
void works_pump(Works *works);
/* Whether any work runs or waits. */
bool works_busy(const Works *works);

/* Makes a work for work_start(). The strings are copied; to and pattern may be NULL. Returns 0 or
 * -ENOMEM. */
int work_new(Files *files, const char *path, const char *to, const char *pattern, FilesWork **ret,
             Error *reterr);
/* Replies to call, now or later; a call of NULL gets no reply. Takes work over even on failure.
 * Returns 0 or -ENOMEM. */
int work_start(Works *works, RpcCall *call, const FilesWorkKind *kind, FilesWork *work,
               Error *reterr);
