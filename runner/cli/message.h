/* SPDX-License-Identifier: Apache-2.0 */
/* What holt says when the command is over, or has not begun, to somebody who may not read it. */
#pragma once

#include <stdio.h>

/* Text for stderr, until it is sent. */
typedef struct Message {
        FILE *out; /* owned by the message */
        char *text;
        size_t length;
} Message;

/* Writes all of data to fd, for as long as somebody takes something of it every 5 seconds. While
 * that is waited for, SIGTERM, SIGINT, SIGHUP and SIGQUIT do what they do to any program, also
 * where they are blocked. 0 or a negative errno: -ETIMEDOUT where nobody reads. */
int message_write(int fd, const char *data, size_t length);

/* Returns message->out, to be printed to; stderr itself when memory is out. */
FILE *message_open(Message *message);
/* Sends what was printed to stderr, by message_write(), and closes it. */
void message_send(Message *message);
