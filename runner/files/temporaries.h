/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beside its place, under a name of new_file_name()'s, while it is made.
 *
 * Theory of operation. Before there is anything of that name it is noted in the session's own
 * directory, which the sandbox does not see: a link of the same name whose target, which nobody
 * follows, is the directory that it is in, as the sandbox has it. When the thing has its place or
 * is gone again, so does the note. So a note that a keeper finds when it starts is of one that was
 * killed, and what it names is taken away: by way of the sandbox's own view (files.h), and only
 * what has such a name, so that whatever has been put there by then is the sandbox's own loss.
 *
 * Each note is one file of its own: any thread may make one. */
#pragma once

#include "base/strings.h"
#include "files/path.h"

/* Whether it is one of new_file_name()'s. */
bool temporary_is_name(const char *name);

/* name is about to be made in dir_fd. What can't be noted is made all the same: on a full disk
 * there is still something to be put right. */
void temporary_begin(const Files *files, int dir_fd, const char *name);
/* It has its place now, or is gone. */
void temporary_end(const Files *files, const char *name);

/* The notes that there are. 0, -ENOMEM, or another negative errno. */
int temporaries_list(const Files *files, StrList *ret);
/* Takes away what the note names, and the note. 0 or a negative errno: the note stays. */
int temporary_remove(Files *files, const char *name);
