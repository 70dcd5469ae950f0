/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of holt's own process (setrlimit(2)), not those of a command. */
#pragma once

/* Raises the soft limit of resource, an RLIMIT_ constant, to the hard one. */
void own_limit_raise(unsigned resource);

/* The same for open files, in a process that serves many clients or sessions. A child calls
 * open_files_restore() before it executes another program: it must not inherit the raised limit. */
void open_files_raise(void);
void open_files_restore(void);
