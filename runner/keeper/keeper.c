/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/own-limits.h"
#include "base/time.h"
#include "files/receive.h"
#include "files/staged.h"
#include "inside/bridge.h"
#include "inside/inside.h"
#include "inside/interpreter.h"
#include "keeper/acts.h"
#include "keeper/events.h"
#include "keeper/links.h"
#include "session/live.h"
#include "session/sources.h"

/* usec that the keeper waits at its end for output of commands to a named pipe or a terminal that
 * has no room. */
enum { OUTPUT_TIME = 2000000 };

/* --- starting --- */

int keeper_read_plan(Keeper *keeper, StoreMode mode, Error *reterr) {
        char path[PATH_MAX];
        int r = session_path(KEEPER_DIRECTORY_FD, path, reterr);

        if (r == 0)
                r = sources_open(KEEPER_DIRECTORY_FD, path, mode, &keeper->settings, &keeper->plan,
                                 reterr);
        if (r == 0)
                sources_pin_own(path, &keeper->plan);
        return r;
}

static int keeper_make_plan(Keeper *keeper, Error *reterr) {
        return keeper_read_plan(keeper, STORE_WRITE, reterr);
}

/* Opens the store under the ids that the keeper has now. */
static int keeper_open_store(Keeper *keeper, Error *reterr) {
        int r = settings_open_store(keeper->plan.state.fd, STORE_WRITE, &keeper->store, reterr);

        return r < 0 ? r : sources_write(keeper->store, &keeper->plan, reterr);
}

/* --- parts, in the order of their creation --- */

int keeper_show_files(Keeper *keeper, Error *reterr) {
        int r = files_new(keeper->sandbox.root_fd, keeper->plan.cwd, &keeper->files, reterr);

        if (r < 0)
                return r;
        files_know_plan(keeper->files, &keeper->plan);
        return works_new(keeper->loop, &keeper->works, reterr);
}

static int keeper_make_files(Keeper *keeper, Error *reterr) {
        int r = keeper_show_files(keeper, reterr);

        if (r == 0)
                r = receives_new(keeper->loop, keeper->files, &keeper->receives, reterr);
        if (r == 0)
                r = staged_new(keeper->files, keeper->works, &keeper->staged, reterr);
        return r == 0 ? keeper_links_new(keeper, reterr) : r;
}

static int keeper_make_notes(Keeper *keeper, Error *reterr) {
        int r = unwritten_new(keeper->loop, keeper->store, &keeper->unwritten, reterr);

        return r == 0 ? acts_new(keeper->store, keeper->unwritten, &keeper->acts, reterr) : r;
}

static int keeper_make_bridge(Keeper *keeper, Error *reterr) {
        const int root_fd = keeper->sandbox.root_fd;
        int r = inside_write(root_fd, reterr);

        if (r == 0)
                r = tools_new(keeper->loop, keeper->unwritten, &keeper->tools, reterr);
        if (r == 0)
                r = bridge_new(keeper->loop, keeper->tools, root_fd, &keeper->bridge, reterr);
        if (r == 0 && keeper->settings.policy.links)
                bridge_allow_links(keeper->bridge, keeper_link_inside, keeper);
        return r;
}

static int keeper_take_lock(Keeper *keeper, Error *reterr) {
        int r = session_lock(KEEPER_DIRECTORY_FD, &keeper->lock_fd, reterr);

        return r == 0 ? owner_watch(KEEPER_DIRECTORY_FD, &keeper->owner_fd, reterr) : r;
}

static int keeper_prepare(Keeper *keeper, Error *reterr) {
        return launch_prepare(&keeper->plan, NULL, &keeper->launch, reterr);
}

static int keeper_launch(Keeper *keeper, Error *reterr) {
        int r = launch_start(&keeper->launch, &keeper->sandbox, reterr);

        plan_clear_files(&keeper->plan);
        open_files_raise();
        return r == 0 ? loop_new(&keeper->loop, reterr) : r;
}

static int (*const start_steps[])(Keeper *keeper, Error *reterr) = {
        keeper_take_lock,        keeper_make_plan,      keeper_prepare,
        keeper_open_store,       keeper_aside_load,     keeper_due_begin,
        keeper_launch,           keeper_watch_all,      keeper_ports_new,
        keeper_watch_network,    keeper_make_processes, keeper_make_files,
        keeper_make_notes,       keeper_make_bridge,    keeper_make_interpreters,
        keeper_watch_gateway,    keeper_make_server,    keeper_confine,
        keeper_sweep_unfinished,
};

static int keeper_start(Keeper *keeper, Error *reterr) {
        return RUN_STEPS(start_steps, keeper, reterr);
}

static void keeper_finish(Keeper *keeper) {
        /* These calls may have changed protected paths, and end without a reply. */
        if (works_busy(keeper->works) || receives_busy(keeper->receives))
                keeper_sweep_needed(keeper);
        keeper_deafen(keeper);
        keeper_sweep_wait(keeper);
        keeper_take_last_answers(keeper);
        keeper->server = rpc_server_free(keeper->server);
        keeper->receives = receives_free(keeper->receives);
        keeper->works = works_free(keeper->works);
        keeper->staged = staged_free(keeper->staged);
        keeper_links_free(keeper);
        keeper->acts = acts_free(keeper->acts);
        keeper->bridge = bridge_free(keeper->bridge);
        keeper->interpreters = interpreters_free(keeper->interpreters);
        keeper->shells = interpreters_free(keeper->shells);
        if (keeper->processes) {
                keeper_audit_denials(keeper, NULL);
                processes_flush(keeper->processes, time_now_usec() + OUTPUT_TIME);
        }
        keeper->processes = processes_free(keeper->processes);
        keeper->tools = tools_free(keeper->tools);
        keeper_questions_free(keeper);
        keeper_end_network(keeper);
        keeper_end_gateway(keeper);
        keeper_ports_free(keeper);
        keeper_grants_free(keeper);
        keeper_routes_free(keeper);
        sandbox_clear(&keeper->sandbox);
        if (!keeper_is_renewed(keeper))
                keeper_sweep(keeper);
        keeper_sweeper_free(keeper);
        keeper_due_end(keeper);
        keeper->unwritten = unwritten_free(keeper->unwritten);
        keeper->store = store_free(keeper->store);
        keeper->lock_fd = fd_close(keeper->lock_fd);
        keeper_send_last_answers(keeper);
        strlist_clear(&keeper->set_aside);
        keeper_aside_free(keeper);
        keeper_due_free(keeper);
        keeper_notes_free(keeper);
        keeper_watching_free(keeper);
}

/* Leaves the caller's session, directory and streams. */
static void keeper_detach(void) {
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void)setsid();
        (void)!chdir("/");
        (void)umask(022);
        for (int fd = 0; fd <= 2; fd++)
                (void)dup2(null_fd, fd);
        if (null_fd > 2)
                fd_close(null_fd);
        (void)fcntl(KEEPER_READY_FD, F_SETFD, FD_CLOEXEC);
        (void)fcntl(KEEPER_DIRECTORY_FD, F_SETFD, FD_CLOEXEC);
}

int keeper_begin(Keeper *keeper, int argc, char **argv, Error *reterr) {
        if (argc != 2 || session_name_check(argv[1], NULL) < 0 ||
            fcntl(KEEPER_READY_FD, F_GETFD) < 0 || fcntl(KEEPER_DIRECTORY_FD, F_GETFD) < 0)
                return error_set(reterr, ERROR_USAGE, 0,
                                 "holt itself starts the keeper: use the other verbs");
        (void)strcpy(keeper->name, argv[1]);
        keeper_detach();
        keeper_end_within(KEEPER_START_TIME);
        return 0;
}

int keeper_main(int argc, char **argv, const RpcMethod *methods, size_t methods_count) {
        static Keeper keeper = { .lock_fd = FD_NONE,
                                 .signal_fd = FD_NONE,
                                 .owner_fd = FD_NONE,
                                 .sandbox = SANDBOX_NONE,
                                 .launch = LAUNCH_NONE };
        Error error;

        if (keeper_begin(&keeper, argc, argv, &error) < 0) {
                error_print(&error, stderr);
                return error_exit_code(&error);
        }
        keeper.methods = methods;
        keeper.methods_count = methods_count;
        keeper.started_ms = time_epoch_ms();
        keeper.used_at = time_now_usec();
#ifdef M_ARENA_MAX
        (void)mallopt(M_ARENA_MAX,
                      1); /* One arena saves memory, and suffices for the few threads. */
#endif
        if (keeper_start(&keeper, &error) < 0) {
                /* From here the caller may continue with work that needs a session at rest. */
                sandbox_clear(&keeper.sandbox);
                keeper_due_end(&keeper);
                fd_close(keeper.lock_fd);
                (void)!write(KEEPER_READY_FD, &error, sizeof(error));
                return error_exit_code(&error);
        }
        keeper_end_never();
        (void)!write(KEEPER_READY_FD, "", 1);
        (void)close(KEEPER_READY_FD);
        (void)loop_run(keeper.loop);
        keeper_finish(&keeper);
        return 0;
}
