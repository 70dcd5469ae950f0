/* SPDX-License-Identifier: Apache-2.0 */
/* Mount points that the host replaces while the sandbox lives.
 *
 * Theory of operation. A guard or a hide is a mount on a file, and the policy's own mounts (--ro,
 * --rw, --tmpfs) may have their places in a directory of the host, too. If somebody outside renames
 * another file over such a place, the kernel removes the mount; if somebody renames the place
 * itself, the mount goes with it. Either way the name is free for the command. So holt keeps each
 * directory open that such a name lies in, and asks for a signal when names in it change (F_NOTIFY
 * in fcntl(2)). After a SIGIO, which the event loop reads from its signalfd, watch_find_replaced()
 * compares. The sandbox is then stopped.
 *
 * It compares twice. In the directory of the host, the name must still lead to the file of the
 * start. And in the sandbox's mount namespace, the mount must still be there: it belongs to the
 * name, and is gone after unlink(2) and link(2), although the file is the same again. For that holt
 * holds an fd of the sandbox's root, and one of the namespace, which would otherwise lose its
 * mounts with the last process.
 *
 * A command can rename names in such a directory all the time. So that holt does not look all the
 * time, SIGIO is left pending for a while after each look (watch_pause()).
 *
 * inotify(7) would do the same, but the close of its descriptor takes up to 14 ms. */
#pragma once

#include <signal.h>

#include "base/error.h"
#include "policy/plan.h"
#include "reach/system-tree.h"

typedef struct Watch Watch;

enum { WATCH_SIGNAL = 29 }; /* SIGIO */

/* Watches every pinned guard, every hidden file and every mount point that lies in a directory of
 * the host, and the directories and symlinks between. Called after guards_prepare() and before root
 * is given up, with all signals blocked. plan and system are borrowed until watch_free(). *ret is
 * NULL if there are none. */
int watch_new(LaunchPlan *plan, const SystemTree *system, Watch **ret, Error *reterr);
Watch *watch_free(Watch *watch);

/* Has the signals sent to this process from now on: the one that made the watch, or a child of it.
 * Look for what was replaced afterwards. 0, or a negative errno of fcntl(2). */
int watch_take_over(const Watch *watch);

/* While this process is stopped, a child watches and kills the sandbox of pidfd if something is
 * replaced (watch-stopped.c). *ret is its PID for watch_stopped_end(), 0 without a watch. 0, or a
 * negative errno of fork(2): do not stop then. */
int watch_stopped_begin(const Watch *watch, int pidfd, pid_t *ret);
/* 0, or a negative errno: there is no watch any more. */
int watch_stopped_end(const Watch *watch, pid_t pid);

/* Called when the sandbox has started: takes the descriptors of its root and mount namespace (and
 * sets them to FD_NONE), or in a session copies them. 0 or a negative errno. */
int watch_enter(Watch *watch, int *root_fd, int *mounts_fd, Error *reterr);

/* How long to leave SIGIO pending after a look that took so long; both in usec. */
uint64_t watch_pause(uint64_t took);
/* Has signal_fd, a signalfd(2) of these signals, report SIGIO, or leave it pending. */
void watch_listen(int signal_fd, sigset_t signals, bool listen);

/* The path inside of the first file that is not the one that was protected, or that is hidden and
 * did not exist before; or NULL. */
const char *watch_find_replaced(const Watch *watch);
