/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from inside that a verb prints by itself, such as a log or a file. A terminal gets colours
 * and cursor movement as they are, and every other control sequence made visible: nobody waits for
 * its answer there. Pipes and files get the bytes. */
#pragma once

#include <stddef.h>

/* What to print to fd instead of *data. stdout and stderr are one stream each, and all other fds
 * together are a third one: a sequence may go on in the next call. *ret_owned is freed by the
 * caller, and NULL where *data stays. 0 or -ENOMEM. */
int shown_bytes(int fd, const char **data, size_t *length, char **ret_owned);
/* The same, written to fd by write(2). 0 or a negative errno. */
int shown_write(int fd, const char *data, size_t length);
