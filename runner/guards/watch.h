/* SPDX-License-Identifier: Apache-2.0 */
/* Detects that the host has replaced a mount point while the sandbox is running.
 *
 * Theory of operation. A guard or a hide is a mount on a file. The policy's own mounts (--ro, --rw,
 * --tmpfs) may also lie in a directory of the host. If a process outside renames another file over
 * such a mount point, the kernel removes the mount. If it renames the mount point itself, the mount
 * moves with it. Either way the name is free for the command. So holt keeps the directory of each
 * such name open and asks for a signal when names in it change (F_NOTIFY in fcntl(2)). The event
 * loop reads SIGIO from its signalfd and calls watch_find_replaced(). If it finds a replaced name,
 * the sandbox is stopped.
 *
 * It makes two comparisons. In the directory of the host, the name must still lead to the same
 * file. In the sandbox's mount namespace, the mount must still exist. If the host removes the name
 * and links the same file there again, the mount is gone although the file is the same. For this
 * comparison, holt keeps an fd of the sandbox's root. It also keeps an fd of the mount namespace,
 * which would otherwise lose its mounts with the last process.
 *
 * A command can rename files in such a directory all the time. To limit the effort, SIGIO stays
 * pending for a while after each look (watch_pause()).
 *
 * inotify(7) would also do, but closing its descriptor takes up to 14 ms. */
#pragma once

#include <signal.h>

#include "base/error.h"
#include "policy/plan.h"
#include "reach/system-tree.h"

typedef struct Watch Watch;

enum { WATCH_SIGNAL = 29 }; /* SIGIO */

/* Watches every pinned guard, every hidden file and every mount point in a directory of the host,
 * and the directories and symlinks on the way. Call it after guards_prepare() and before root is
 * given up, with all signals blocked. plan and system are borrowed until watch_free(). *ret is NULL
 * if nothing needs watching. */
int watch_new(LaunchPlan *plan, const SystemTree *system, Watch **ret, Error *reterr);
Watch *watch_free(Watch *watch);

/* Directs the signals to the calling process from now on: the one that made the watch, or a child
 * of it. Call watch_find_replaced() afterwards. Returns 0 or a negative errno of fcntl(2). */
int watch_take_over(const Watch *watch);

/* Starts a child that watches while this process is stopped, and kills the sandbox of pidfd if a
 * name is replaced (watch-stopped.c). *ret is its PID for watch_stopped_end(), or 0 without a
 * watch. Returns 0 or a negative errno of fork(2); then do not stop. */
int watch_stopped_begin(const Watch *watch, int pidfd, pid_t *ret);
/* Returns 0, or a negative errno if the watch is lost. */
int watch_stopped_end(const Watch *watch, pid_t pid);

/* Call it when the sandbox has started. It takes the descriptors of the sandbox's root and mount
 * namespace and sets them to FD_NONE. In a session it copies them instead. Returns 0 or a negative
 * errno. */
int watch_enter(Watch *watch, int *root_fd, int *mounts_fd, Error *reterr);

/* Returns how long to leave SIGIO pending after a look that took this long. Both are in
 * microseconds. */
uint64_t watch_pause(uint64_t took);
/* Lets signal_fd, a signalfd(2) of these signals, report SIGIO if listen is true. Otherwise SIGIO
 * stays pending. */
void watch_listen(int signal_fd, sigset_t signals, bool listen);

/* Returns the path inside of the first protected file that was replaced, or of the first hidden
 * file that has appeared. NULL if there is none. */
const char *watch_find_replaced(const Watch *watch);
