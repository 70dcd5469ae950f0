/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that holt prints before the command has started or after it has ended. Their reader may
 * have stopped reading. */
#pragma once

#include <stdio.h>

/* Collects a text for stderr until it is sent. */
typedef struct Message {
        FILE *out; /* owned by this struct */
        char *text;
        size_t length;
} Message;

/* Writes all of data to fd. Gives up with -ETIMEDOUT if the reader takes nothing for 5 seconds.
 * During that wait, SIGTERM, SIGINT, SIGHUP and SIGQUIT have their usual effect, even if they are
 * blocked. Returns 0 or a negative errno. */
int message_write(int fd, const char *data, size_t length);

/* Returns message->out, to print to; or stderr if memory is out. */
FILE *message_open(Message *message);
/* Sends the printed text to stderr by message_write(), and closes it. */
void message_send(Message *message);
