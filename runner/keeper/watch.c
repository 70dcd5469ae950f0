/* SPDX-License-Identifier: Apache-2.0 */
/* Watches for changes that the host makes to protected and hidden paths while the session is live.
 *
 * Theory of operation. Such a change ends the protection inside (guards/watch.h). If any process
 * runs inside, the sandbox is killed. The new file may be the command's work: the command can
 * exchange it, or write to it, even before it gets the protected name. The sweep sets it aside.
 *
 * The keeper is "quiet" between a check that finds everything in place, after a sweep, and the next
 * command or call. A change in that time is the host's own, because no other process could make
 * one. So nothing is set aside, and the sandbox, which is empty, ends. The next use starts a new
 * one, with the policy's paths looked up again. Mounting the new file into the running sandbox
 * would not be enough: for example, a new git config can name other files to protect. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include "base/sys.h"
#include "base/time.h"
#include "files/receive.h"
#include "guards/guard.h"
#include "guards/watch.h"
#include "keeper/keeper.h"

enum {
        /* usec between a call about files and a sweep, because more calls may follow. */
        FILES_PAUSE = 100000,
};

struct Watching {
        LoopTimer *quiet_timer, *listen_timer;
        bool quiet;
        bool renewed; /* The keeper ends because of the host's own change. */
};

/* Whether the sandbox's /proc shows no process except init. */
static bool sandbox_is_empty(const Keeper *keeper) {
        int fd = sys_open_beneath(keeper->sandbox.root_fd, "proc", O_RDONLY | O_DIRECTORY);
        DIR *proc = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;
        bool empty = proc != NULL;

        if (!proc)
                fd_close(fd);
        while (empty && (entry = readdir(proc)))
                empty = atoi(entry->d_name) <= 1;
        if (proc)
                (void)closedir(proc);
        return empty;
}

/* Whether a command runs, or a client has an open call or an unread reply. A keeper that ends
 * counts as active, because its parts may not exist any more. */
static bool keeper_is_active(const Keeper *keeper) {
        return keeper->stopping || keeper->lost || keeper->sandbox.pidfd < 0 ||
               processes_live(keeper->processes) > 0 || works_busy(keeper->works) ||
               receives_busy(keeper->receives) || keeper_sweep_goes_on(keeper) ||
               rpc_server_owed(keeper->server) > 0;
}

/* Ends the sandbox. No later call of a client is read. */
static void keeper_renew(Keeper *keeper, const char *path) {
        keeper_audit_replaced(keeper, "renewed", path);
        keeper->stopping = keeper->ending = keeper->watching->renewed = true;
        keeper_end_within(KEEPER_END_TIME);
        keeper_deafen(keeper);
        loop_stop(keeper->loop);
}

static void keeper_stop_replaced(Keeper *keeper, const char *path) {
        keeper->replaced = path;
        keeper_aside_note_stopped(keeper, path);
        processes_kill_replaced(keeper->processes, path);
        (void)sys_pidfd_send_signal(keeper->sandbox.pidfd, SIGKILL);
        keeper_audit_replaced(keeper, "replaced", path);
}

/* Checks whether the host has replaced or made a protected path, and ends the sandbox if so. */
static void keeper_check_protection(Keeper *keeper) {
        const bool active = keeper_is_active(keeper);
        const char *path = watch_find_replaced(keeper->launch.watch), *made = NULL;

        if (keeper->replaced || keeper->ending)
                return;
        if (!path && !active)
                made = guard_find_made(&keeper->plan, keeper->launch.workspace_fd);
        if ((path || made) && keeper->watching->quiet && !active)
                return keeper_renew(keeper, path ? path : made);
        if (path)
                return keeper_stop_replaced(keeper, path);
        keeper->watching->quiet = !active && !made && keeper_is_swept(keeper) &&
                                  sandbox_is_empty(keeper);
}

void keeper_check_ended(Keeper *keeper, Process *process) {
        const char *path = keeper->replaced || keeper->ending
                                   ? NULL
                                   : watch_find_replaced(keeper->launch.watch);

        if (path)
                keeper_stop_replaced(keeper, path);
        process->replaced = keeper->replaced;
}

void keeper_on_change(Keeper *keeper) {
        const uint64_t before = time_now_usec();

        keeper_check_protection(keeper);
        keeper_listen_later(keeper, before);
}

void keeper_listen_later(Keeper *keeper, uint64_t began) {
        const uint64_t now = time_now_usec();

        loop_timer_set(keeper->watching->listen_timer, now + watch_pause(now - began));
        watch_listen(keeper->signal_fd, keeper->signals, false);
}

static void watching_listen(void *data) {
        const Keeper *keeper = data;

        watch_listen(keeper->signal_fd, keeper->signals, true);
}

void keeper_look_quiet(Keeper *keeper) {
        if (keeper->watching->quiet || !keeper->launch.watch || keeper_is_active(keeper))
                return;
        /* A failed sweep is repeated after the next command, which gets the reason. A successful
         * sweep calls this function again. */
        if (!keeper_is_swept(keeper) && !keeper->unguarded[0])
                return keeper_sweep_start(keeper);
        keeper_check_protection(keeper);
}

static void watching_look_quiet(void *data) {
        keeper_look_quiet(data);
}

int keeper_watching_new(Keeper *keeper, Error *reterr) {
        struct Watching *watching = keeper->watching = calloc(1, sizeof(*watching));
        int r;

        if (!watching)
                return error_oom(reterr);
        r = loop_timer_new(keeper->loop, watching_look_quiet, keeper, &watching->quiet_timer,
                           reterr);
        return r == 0 ? loop_timer_new(keeper->loop, watching_listen, keeper,
                                       &watching->listen_timer, reterr)
                      : r;
}

void keeper_watching_free(Keeper *keeper) {
        if (keeper->watching) {
                (void)loop_timer_free(keeper->watching->quiet_timer);
                (void)loop_timer_free(keeper->watching->listen_timer);
        }
        free(keeper->watching);
        keeper->watching = NULL;
}

bool keeper_is_renewed(const Keeper *keeper) {
        return keeper->watching && keeper->watching->renewed;
}

/* Waits for the next turn of the loop, so that the check delays no reply. */
void keeper_touched(Keeper *keeper, bool with_files) {
        keeper->watching->quiet = false;
        if (with_files)
                keeper_sweep_needed(keeper);
        if (keeper->launch.watch)
                loop_timer_set(keeper->watching->quiet_timer,
                               time_now_usec() + (keeper_is_swept(keeper) ? 0 : FILES_PAUSE));
}
