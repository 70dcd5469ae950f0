/* SPDX-License-Identifier: Apache-2.0 */
/* Protected and hidden files that the host replaces while the sandbox lives.
 *
 * Theory of operation. A guard or a hide is a mount on a file. If somebody outside renames another
 * file over it, the kernel removes the mount; if somebody renames the file itself, the mount goes
 * with it. Either way the name is free for the command. So holt keeps each directory open that such
 * a name lies in, and asks for a signal when names in it change (F_NOTIFY in fcntl(2)). After a
 * SIGIO, which the event loop reads from its signalfd, watch_find_replaced() compares. The sandbox
 * is then stopped.
 *
 * A command can rename names in such a directory all the time. So that holt does not look all the
 * time, SIGIO is left pending for a while after each look (watch_pause()).
 *
 * inotify(7) would do the same, but the close of its descriptor takes up to 14 ms. */
#pragma once

#include <signal.h>

#include "base/error.h"
#include "sandbox/launch.h"

enum { WATCH_SIGNAL = 29 }; /* SIGIO */

/* Watches every pinned guard and every hidden file in a directory of the host, and the directories
 * and symlinks between. Called after prepare_guards() and before root is given up, with all signals
 * blocked. *ret is NULL if there are none. */
int watch_new(const Launch *launch, Watch **ret, Error *reterr);
Watch *watch_free(Watch *watch);

/* How long to leave SIGIO pending after a look that took so long; both in usec. */
uint64_t watch_pause(uint64_t took);
/* Has signal_fd, a signalfd(2) of these signals, report SIGIO, or leave it pending. */
void watch_listen(int signal_fd, sigset_t signals, bool listen);

/* The path inside of the first file that is not the one that was protected, or NULL. */
const char *watch_find_replaced(const Watch *watch);
