/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files of a session at rest, for one client.
 *
 * Theory of operation. A reader is a short-lived process. It makes the file tree of the session's
 * sandbox like a keeper, from the same plan, but runs nothing in it (launch_view()). So paths mean
 * the same as in a live session: the kernel itself resolves them, across the same mounts, and
 * hidden files are hidden. The reader has the identity of a keeper. It confines itself in the same
 * way, and serves the methods that read files.
 *
 * The tree is made while the reader shares the session's lock, so no keeper runs meanwhile. A
 * keeper that starts later does no harm: its commands can change files, but not the mounts of this
 * tree. If the host replaces a hidden file, the reader ends without a reply, as a sandbox would.
 *
 * A reader writes nothing in the session's database, and so no history either. It ends with its
 * client's connection. The client uses it only briefly, because files that the policy hides may be
 * made meanwhile. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/own-limits.h"
#include "keeper/keeper.h"
#include "session/live.h"

static int reader_take_lock(Keeper *reader, Error *reterr) {
        return session_share(KEEPER_DIRECTORY_FD, &reader->lock_fd, reterr);
}

static int reader_make_plan(Keeper *reader, Error *reterr) {
        return keeper_read_plan(reader, STORE_READ, reterr);
}

/* Nothing runs in a view, so it needs no holt-gateway. */
static int reader_prepare(Keeper *reader, Error *reterr) {
        strlist_clear(&reader->plan.routes);
        strlist_clear(&reader->plan.tls_hosts);
        return launch_prepare(&reader->plan, NULL, &reader->launch, reterr);
}

static int reader_make_view(Keeper *reader, Error *reterr) {
        int r = launch_view(&reader->launch, &reader->sandbox, reterr);

        open_files_raise();
        reader->lock_fd = fd_close(reader->lock_fd);
        reader->plan.state.fd = fd_close(reader->plan.state.fd);
        return r == 0 ? loop_new(&reader->loop, reterr) : r;
}

/* --- events --- */

/* Looks as rarely as keeper_on_change(). */
static void reader_on_change(Keeper *reader) {
        const uint64_t before = time_now_usec();

        if (watch_find_replaced(reader->launch.watch))
                return loop_stop(reader->loop);
        keeper_listen_later(reader, before);
}

static void reader_on_signal(void *data, uint32_t events) {
        Keeper *reader = data;
        struct signalfd_siginfo info;

        (void)events;
        while (read(reader->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
                if (info.ssi_signo == WATCH_SIGNAL)
                        reader_on_change(reader);
}

static int reader_watch(Keeper *reader, Error *reterr) {
        LoopWatch *ignored;
        int r = keeper_watching_new(reader, reterr);

        (void)sigemptyset(&reader->signals);
        (void)sigaddset(&reader->signals, WATCH_SIGNAL);
        reader->signal_fd = signalfd(-1, &reader->signals, SFD_CLOEXEC | SFD_NONBLOCK);
        return r == 0 ? loop_watch(reader->loop, reader->signal_fd, EPOLLIN, reader_on_signal,
                                   reader, &ignored, reterr)
                      : r;
}

static void reader_on_end(RpcConnection *connection, void *data) {
        (void)connection;
        loop_stop(((Keeper *)data)->loop);
}

static void reader_on_room(RpcConnection *connection, void *data) {
        (void)connection;
        works_pump(((Keeper *)data)->works);
}

static int reader_make_server(Keeper *reader, Error *reterr) {
        RpcConnection *ignored;
        int r = rpc_server_new(reader->loop, reader->methods, reader->methods_count, reader,
                               &reader->server, reterr);

        if (r < 0)
                return r;
        rpc_server_on_end(reader->server, reader_on_end);
        rpc_server_on_room(reader->server, reader_on_room);
        rpc_server_tell_commands(reader->server);
        return rpc_server_add(reader->server, KEEPER_READY_FD, KEEPER_READY_FD, &ignored, reterr);
}

static int (*const reader_steps[])(Keeper *reader, Error *reterr) = {
        reader_take_lock, reader_make_plan,  reader_prepare,     reader_make_view,
        reader_watch,     keeper_show_files, reader_make_server, keeper_confine,
};

/* On failure, the client's request is left unread. */
int reader_main(int argc, char **argv, const RpcMethod *methods, size_t methods_count) {
        static Keeper reader = { .lock_fd = FD_NONE,
                                 .signal_fd = FD_NONE,
                                 .owner_fd = FD_NONE,
                                 .sandbox = SANDBOX_NONE,
                                 .launch = LAUNCH_NONE };
        Error error;
        int r = keeper_begin(&reader, argc, argv, &error);

        if (r < 0) {
                error_print(&error, stderr);
                return error_exit_code(&error);
        }
        reader.methods = methods;
        reader.methods_count = methods_count;
        r = RUN_STEPS(reader_steps, &reader, &error);
        keeper_end_never();
        if (r == 0)
                (void)loop_run(reader.loop);
        /* Threads may still read files for a client that has gone. */
        _exit(r == 0 ? 0 : error_exit_code(&error));
}
