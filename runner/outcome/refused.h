/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that the sandbox has refused to a failed command, and the cure of each.
 *
 * Theory of operation. The command's own messages give candidates (complaints.h). Each candidate is
 * judged by the launch plan and the host's files, never by its text. A path counts as refused only
 * if the plan explains the error:
 *
 * - EROFS: it lies in a read-only part of the sandbox.
 * - ENOENT: the host has it and the sandbox does not show it. A name without a slash counts if a
 *   shell looked it up as a program, and the host's PATH has it.
 * - EBUSY, EROFS: holt protects it.
 * - EACCES: the policy hides it, or /proc masks it.
 * - EOVERFLOW: in an id-mapped mount, another user owns it.
 *
 * A hostile command may print any path, in the hope that somebody grants it. So no grant is
 * suggested for a wide directory, such as a home, or for a place that may hold secrets. Nothing is
 * told about files in such a place either. For other paths, the result tells the caller whether the
 * host has them. The host is looked at by O_PATH descriptors, and no symlink that the sandbox could
 * have made is followed (beneath.h). */
#pragma once

#include "base/json-write.h"
#include "child/child.h"

enum { REFUSALS_MAX = 16 };

typedef enum RefusalKind {
        REFUSAL_READ_ONLY, /* In a read-only part of the sandbox. */
        REFUSAL_MISSING,   /* On the host, but not in the sandbox. */
        REFUSAL_ABSENT,    /* The same, in a directory of the sandbox that is read-only. */
        REFUSAL_UNSHOWN, /* The same for a path, or its directory, that the command would write. */
        REFUSAL_NEW,     /* The same for a path that the command may have wanted to make. */
        REFUSAL_MOVED,   /* In a workspace that is mounted at another path. */
        REFUSAL_LINK,    /* A symlink of /usr leads to it; see refused-links.h. */
        REFUSAL_BOUND,   /* In a mount that the policy asked for read-only. */
        REFUSAL_WORKSPACE,   /* In a workspace that is mounted read-only. */
        REFUSAL_PROJECT,     /* The same, and the project's file says so. */
        REFUSAL_PROTECTED,   /* Protected by holt. */
        REFUSAL_INPUT,       /* A file that holt obeys or runs. */
        REFUSAL_HIDDEN,      /* Hidden by the policy or by holt. */
        REFUSAL_MOUNT,       /* A mount point. */
        REFUSAL_SYSTEM,      /* A part of the system, which is read-only in every sandbox. */
        REFUSAL_PACKAGES,    /* A file of the system's package manager. */
        REFUSAL_ROOT,        /* A read-only directory for which no grant is suggested. */
        REFUSAL_PROC,        /* A masked or read-only part of /proc. */
        REFUSAL_TOOLS,       /* A read-only directory of caches or tools that the host uses, too. */
        REFUSAL_GIT,         /* A read-only repository of the host. */
        REFUSAL_OWNER,       /* Another user's file, which root's command may not change. */
        REFUSAL_OWNER_ABOVE, /* The same for the directory in which the command would make it. */
        REFUSAL_FOREIGN,     /* In a directory in which the caller may not write either. */
        REFUSAL_CLOSED,      /* In a place of the host for which no grant is suggested. */
        REFUSAL_OUT,         /* A symlink in a mount leads to a path that is not shown. */
        REFUSAL_LINKED,      /* A symlink in a mount leads to a path that is read-only. */
        REFUSAL_PROGRAM,     /* A program in a directory of the host's PATH. */
        REFUSAL_KIND_MAX,
} RefusalKind;

typedef struct Refusal {
        RefusalKind kind;
        int errnum; /* 0: only a word of the command names the path; it may not be the reason. */
        uint64_t count; /* Number of paths with the same cure. */
        char *path;     /* The first of these paths, as the command named it. Owned. */
        /* The protected path, the host path to mount, or the place of the path: absolute. Owned, or
         * NULL. Of a program: its directory. */
        char *subject;
        /* The path inside at which to mount it, if that differs from the host's. Owned, or NULL. */
        char *target;
        char *typed; /* The host path in the words of the command, for people. Owned, or NULL. */
        char *why;   /* Why no option allows it, if that differs from the kind's text; owned. */
        /* For a program that PATH inside lacks: the directories to mount, and the value of PATH.
         * Each is owned, or NULL. */
        char *mounts[2], *search;
} Refusal;

typedef struct Refusals {
        Refusal items[REFUSALS_MAX];
        unsigned count;
} Refusals;

/* Finds the refused paths of a command that has failed. Returns NULL if there are none, or if
 * memory is out. The caller owns the result.
 *
 * cwd        the command's working directory inside; absolute
 * here       cwd is also the caller's own directory, so a relative path means the same for both
 * text       the command's last output; NULL if it is not known
 * argv       the command, which ends with NULL, or NULL; without a text, its words are candidates.
 *            With a text, they may name the directory to which a relative path belongs
 * programs   the command, or NULL; if no path is refused, its programs are searched for dead links
 * inside_fd  the sandbox's root, for a process that may read only there; otherwise FD_NONE */
Refusals *refused_find(const Launch *launch, const char *cwd, bool here, const char *text,
                       size_t length, const char *const *argv, const char *const *programs,
                       int inside_fd);
/* Accepts NULL; returns NULL. */
Refusals *refused_free(Refusals *refusals);

/* Returns the kind of a refusal in a workspace that is read-only. */
RefusalKind refused_workspace(const LaunchPlan *plan);
/* Returns why it was refused. Static. */
const char *refused_reason(const Refusal *refusal);
/* Returns the name of the errno that the command got, or "" if it is unknown. Not owned. */
const char *refused_answer(const Refusal *refusal);
/* Returns why no option allows it, or NULL if one does. Borrowed from the refusal. */
const char *refused_why_not(const Refusal *refusal);
/* Returns the option that allows it, such as "--rw /opt", or NULL. Owned by the caller. */
char *refused_grant(const Refusal *refusal);

/* Writes the members of a denial into the open object. */
void refused_write(JsonWriter *w, const Refusal *refusal);

/* --- for refused.c --- */

/* Returns the subject, or if it is NULL the place of the path: paths in the same place have the
 * same cure. NULL if all paths of the kind have one cure, or if memory is out. Owned by the caller.
 */
char *refusals_place(RefusalKind kind, const char *subject, const char *path);
/* Returns the entry with the same cure, or a new one; NULL if there are too many. */
Refusal *refusals_entry(Refusals *all, RefusalKind kind, const char *subject);
/* Reverses the list. The paths were found from the last line to the first, but people expect the
 * order of the messages. */
void refusals_reverse(Refusals *found);
/* Returns the host path subject in the command's own words, or NULL if there are none. Owned by the
 * caller. typed: a path as the command named it, relative to the caller's own directory; path: the
 * same, absolute. */
char *refused_typed(const char *typed, const char *path, const char *subject);
