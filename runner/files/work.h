/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about files that may take long: trees that are copied, removed or looked through, and
 * contents that have to reach the disk.
 *
 * Theory of operation. Such a call is done on a thread of its own, WORKERS_MAX at most at a time,
 * so that the keeper's loop serves everybody else meanwhile; others wait for their turn. The loop
 * waits a moment itself, so that the short ones, which are most, are answered in the order in which
 * they came. A thread touches its FilesWork and nothing else: the answer is the loop's. The
 * keeper makes its sandbox before the first of them and no other process after that.
 *
 * What writes contents is done in the order in which it came, one at a time: of two that are sent
 * one after the other the second is there in the end.
 *
 * What a client has asked for that has gone is done all the same, unless it would only have been
 * looked at. A keeper that ends stops it where it is. */
#pragma once

#include <limits.h>

#include "files/unfinished.h"
#include "rpc/server.h"

enum { WORKERS_MAX = 4 };

typedef struct Works Works;

/* One call. Strings are its own copies, NULL of what it does not take. */
typedef struct FilesWork {
        Files *files; /* borrowed */
        char *path, *to, *pattern;
        char *content; /* owned; of length bytes */
        size_t length;
        unsigned mode;
        bool recursive, replace, ignore_case, make_parents;
        uint64_t limit;
        StrList names;
        Unfinished unfinished; /* the note of what is at path; cleared by unfinished_leave() */

        /* what comes of it */
        JsonWriter list;     /* an array */
        bool full, more;     /* the answer has no room for more; there would be more */
        char last[PATH_MAX]; /* in the list; "" of none */
        FilesMissed missed;
        uint64_t left_out;
        uint64_t size; /* of the file that was written */
} FilesWork;

typedef struct FilesWorkKind {
        /* On another thread. 0 or a negative errno with *error written. */
        int (*run)(FilesWork *work, Error *error);
        /* Writes the members of the answer, which is open. */
        void (*answer)(const RpcCall *call, const FilesWork *work, JsonWriter *w);
        bool looks;   /* it changes nothing */
        bool ordered; /* none of them before another that came earlier has ended */
} FilesWorkKind;

/* 0 or a negative errno. */
int works_new(Loop *loop, Works **ret, Error *reterr);
/* Waits for those that run, which are told to end. Their calls have ended. NULL is legal; returns
 * NULL. */
Works *works_free(Works *works);
/* Goes on with what waits for its client to read: one that looks has an answer that may be large.
 */
void works_pump(Works *works);
/* Whether there is something to be done. */
bool works_busy(const Works *works);

/* For a method's function, which hands it to work_start(). The strings are copied; to and pattern
 * may be NULL. 0 or -ENOMEM. */
int work_new(Files *files, const char *path, const char *to, const char *pattern, FilesWork **ret,
             Error *reterr);
/* Answers call, now or later; NULL: nobody has asked. Takes work in any case. 0 or -ENOMEM. */
int work_start(Works *works, RpcCall *call, const FilesWorkKind *kind, FilesWork *work,
               Error *reterr);
