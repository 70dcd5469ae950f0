/* SPDX-License-Identifier: Apache-2.0 */
/* The rules by which refused.c judges a path. */
#pragma once

#include "outcome/complaints.h"
#include "outcome/refused.h"

/* A search for refused paths. */
typedef struct Search {
        const Launch *launch;
        const LaunchPlan *plan;
        StrList writable; /* Host directories that the sandbox can write. */
        bool here;        /* See refused_find(). */
        bool guess;       /* Only words of the command are known. */
        Refusals *found;
} Search;

/* A path that is judged. */
typedef struct Suspect {
        const Complaint *complaint;
        const char *base;       /* The directory inside to which a relative path belongs. */
        char *path;             /* Absolute, inside; normal form. */
        const PlanMount *mount; /* The mount that shows it, or NULL. */
        char *host;             /* Its path on the host. */
} Suspect;

/* Frees the members. */
void suspect_clear(Suspect *s);

/* Whether the sandbox shows path, an absolute path of the host, or writes it itself. */
bool refused_shows(const Search *search, const char *path);

/* Judges the path by all rules. If one of them explains the error, notes the refusal and returns
 * true. */
bool refused_judge(const Search *search, const Suspect *s);
