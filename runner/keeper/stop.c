/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/stop.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "session/live.h"

/* Pauses of 10 ms each, 45 seconds in all. A keeper ends itself after 30 (end.c), if `kill_after`
 * is 10. */
enum { STOP_TRIES = 4500, STOP_PAUSE = 10000000 };

/* The longest wait for the keeper's end after it has released the lock. */
enum { STOP_END_TIME = 1000 /* ms */ };

/* Returns a pidfd of the process that listens at the other end of fd, or FD_NONE if it is
 * unknown. */
static int stop_open_peer(int fd) {
        struct ucred peer = { 0 };
        socklen_t length = sizeof(peer);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.pid <= 0)
                return FD_NONE;
        return sys_pidfd_open(peer.pid);
}

/* Waits until the keeper has ended, or releases the lock. If it has ended, another client may have
 * started the next keeper, which holds the lock already. After the release, the keeper still holds
 * the session's mounts for some milliseconds, and umount(8) of the caller would fail. */
static int stop_wait_for_rest(int dir_fd, int keeper_fd, const char *name, Error *reterr) {
        const struct timespec pause = { .tv_nsec = STOP_PAUSE };
        int r;

        for (int i = 0; i < STOP_TRIES; i++) {
                struct pollfd keeper = { .fd = keeper_fd, .events = POLLIN };

                const bool rests = !session_is_live(dir_fd);

                if (keeper_fd >= 0 && poll(&keeper, 1, rests ? STOP_END_TIME : 0) > 0)
                        return 0;
                if (rests)
                        return 0;
                (void)nanosleep(&pause, NULL);
        }
        r = error_set(reterr, ERROR_BUSY, 0, "session \"%s\" does not stop", name);
        return error_cure(
                reterr, r,
                "Kill its keeper by kill -9; find its process id by: pgrep -f 'holt keeper %s'",
                name);
}

int keeper_check_swept(const char *name, int dir_fd, Error *reterr) {
        char text[512];
        int r;

        if (session_is_live(dir_fd) || !session_sweep_due(dir_fd, text, sizeof(text)))
                return 0;
        r = error_set(reterr, ERROR_SETUP, 0,
                      "session \"%s\" is at rest, but not all files that its commands made at "
                      "protected paths were set aside: %s",
                      name, text);
        return error_cure(reterr, r,
                          "Before git or similar programs run in the workspace on the host, look "
                          "for hooks, configs and repositories that you have not made.");
}

int keeper_ask_to_stop(const char *name, int dir_fd, RpcMessage *ret, Error *reterr) {
        _cleanup_close_ int keeper_fd = FD_NONE;
        RpcClient *client = NULL;
        int fd, r = session_find_keeper(name, dir_fd, FIND_TIME, &fd, reterr);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        keeper_fd = stop_open_peer(fd);
        r = rpc_client_new(fd, &client, reterr);
        if (r == 0)
                r = rpc_client_call(client, "session.stop", NULL, NULL, 0, ret, reterr);
        rpc_client_free(client);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET)
                return r;
        return stop_wait_for_rest(dir_fd, keeper_fd, name, reterr);
}
