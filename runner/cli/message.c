/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/message.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/wait.h"
#include "streams/relay.h"

enum { PATIENCE_S = HOLT_WAIT(5) };

static time_t now_seconds(void) {
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec;
}

/* holt has blocked every signal for good (launch.c), and nobody reads the signalfd any more. During
 * this wait only, the signals that end holt are unblocked, so that none of them interrupts a
 * message while somebody reads it. */
static int message_wait_for_room(int fd) {
        static const int ending[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
        struct pollfd room = { .fd = fd, .events = POLLOUT };
        const struct timespec patience = { .tv_sec = PATIENCE_S };
        sigset_t mask;
        int r;

        (void)sigprocmask(SIG_BLOCK, NULL, &mask);
        for (size_t i = 0; i < ELEMENTSOF(ending); i++)
                (void)sigdelset(&mask, ending[i]);
        r = ppoll(&room, 1, &patience, &mask);
        if (r == 0)
                return -ETIMEDOUT;
        return r < 0 && errno != EINTR ? -errno : 0;
}

/* Another writer may use up the room first, so the write itself has a time limit, too. */
int message_write(int fd, const char *data, size_t length) {
        time_t taken = now_seconds();

        while (length > 0) {
                int r = message_wait_for_room(fd);
                ssize_t n = r < 0 ? 0 : patience_write(fd, data, length);

                if (r < 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
                        return r < 0 ? r : -errno;
                if (n > 0) {
                        data += n;
                        length -= (size_t)n;
                        taken = now_seconds();
                } else if (now_seconds() - taken > PATIENCE_S) {
                        return -ETIMEDOUT;
                }
        }
        return 0;
}

FILE *message_open(Message *message) {
        *message = (Message){ 0 };
        message->out = open_memstream(&message->text, &message->length);
        return message->out ? message->out : stderr;
}

void message_send(Message *message) {
        if (message->out && fclose(message->out) == 0 && message->length > 0)
                (void)message_write(STDERR_FILENO, message->text, message->length);
        free(message->text);
        *message = (Message){ 0 };
}
