/* SPDX-License-Identifier: Apache-2.0 */
/* Writes messages to a client on stdout. */
#pragma once

#include <stddef.h>

/* Writes all bytes. The client is one program: if it does not read, this waits for it, until a
 * signal comes.
 *
 * signal_fd  borrowed; a signalfd(2), which is not read.
 *
 * 0, -EINTR after a signal, or a negative errno of write(2). */
int out_write(const char *data, size_t length, int signal_fd);
