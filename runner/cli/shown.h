/* SPDX-License-Identifier: Apache-2.0 */
/* Prints bytes from inside, such as a log or a file. A terminal gets colours and cursor movement;
 * every other control sequence is made visible, because a terminal might type an answer to it.
 * Pipes and files get the bytes unchanged. */
#pragma once

#include <stddef.h>

/* Replaces *data by the bytes to print to fd. stdout and stderr are one stream each, and all other
 * fds together are a third one. A control sequence may continue in the next call. The caller frees
 * *ret_owned, which is NULL if *data is unchanged. Returns 0 or -ENOMEM. */
int shown_bytes(int fd, const char **data, size_t *length, char **ret_owned);
/* Does the same, and writes the bytes to fd by write(2). Returns 0 or a negative errno. */
int shown_write(int fd, const char *data, size_t length);
