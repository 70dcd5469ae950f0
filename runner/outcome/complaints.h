/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the paths that a command's own error messages name.
 *
 * Theory of operation. No kernel interface reports failed opens to an unprivileged supervisor
 * cheaply. But programs print what failed: "touch: cannot touch '/opt/x': Read-only file system".
 * So this module looks for such phrases in the last output of a failed command. From that line, it
 * takes the words that look like paths. It knows the shapes of C programs, shells, Python, node,
 * Go, Java, Ruby and Rust.
 *
 * The text is an attacker's, and a word proves nothing. The caller must judge every path by facts
 * (outcome/refused.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
        COMPLAINTS_TEXT_MAX = 16 * 1024, /* Bytes at the end of a text that are looked at. */
        COMPLAINTS_MAX = 64,             /* Paths found in one text. */
        COMPLAINTS_PATH_MAX = 1024,      /* Bytes of a path; a longer word is ignored. */
};

typedef struct Complaint {
        const char *path; /* Not empty, and may be relative. Points into the Complaints. */
        int errnum;       /* The errno that the phrase stands for, such as EROFS. */
        bool creates;     /* The line is about creating or writing a file. */
        bool opens;       /* The program tried to open the path, maybe to make a file. */
        bool program;     /* The path is the name of a program that was looked up in PATH. */
        bool refused;     /* Set by the caller for complaints_is_part(). */
} Complaint;

typedef struct Complaints {
        Complaint items[COMPLAINTS_MAX];
        size_t count;
        /* Private: the text without control sequences, and the paths. */
        char text[COMPLAINTS_TEXT_MAX + 1];
        char paths[COMPLAINTS_TEXT_MAX];
        size_t paths_used;
} Complaints;

/* Fills *ret from the end of text: the paths of the last line come first. No path appears twice
 * with the same errnum, except as a program, too. */
void complaints_find(const char *text, size_t length, Complaints *ret);

/* Whether item i is only the first word of another path that was refused: "../a" of "../a b". */
bool complaints_is_part(const Complaints *complaints, size_t i);

/* Whether a refused change of a path fails with this errno. */
bool complaint_is_change(int errnum);
/* Whether a rename over a protected file, or over another user's file, fails with this errno. */
bool complaint_is_rename(int errnum);
