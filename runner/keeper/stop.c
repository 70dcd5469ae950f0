/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/stop.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "session/directory.h"

/* Of 10 ms each: half a minute. */
enum { STOP_TRIES = 3000, STOP_PAUSE = 10000000 };

/* The process that listens at the other end of fd, or FD_NONE where that can't be told. */
static int stop_open_peer(int fd) {
        struct ucred peer = { 0 };
        socklen_t length = sizeof(peer);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.pid <= 0)
                return FD_NONE;
        return sys_pidfd_open(peer.pid);
}

/* Until the keeper has let the lock go; or has ended, when the lock may be the next one's already:
 * somebody who uses the session just now starts it again. */
static int stop_wait_for_rest(int dir_fd, int keeper_fd, const char *name, Error *reterr) {
        const struct timespec pause = { .tv_nsec = STOP_PAUSE };
        int r;

        for (int i = 0; i < STOP_TRIES; i++) {
                struct pollfd keeper = { .fd = keeper_fd, .events = POLLIN };

                if (!session_is_live(dir_fd) || (keeper_fd >= 0 && poll(&keeper, 1, 0) > 0))
                        return 0;
                (void)nanosleep(&pause, NULL);
        }
        r = error_set(reterr, ERROR_BUSY, 0, "session \"%s\" does not stop", name);
        return error_cure(reterr, r, "kill -9 its keeper: pgrep -f 'holt keeper %s'", name);
}

int keeper_check_swept(const char *name, int dir_fd, Error *reterr) {
        char text[512];
        int r;

        if (session_is_live(dir_fd) || !session_sweep_due(dir_fd, text, sizeof(text)))
                return 0;
        r = error_set(
                reterr, ERROR_SETUP, 0,
                "session \"%s\" is at rest, but what its commands made at protected paths was "
                "not all set aside: %s",
                name, text);
        return error_cure(reterr, r,
                          "Look for hooks, configs and repositories in the workspace that you have "
                          "not made, before git or the like is run there on the host.");
}

int keeper_ask_to_stop(const char *name, int dir_fd, RpcMessage *ret, Error *reterr) {
        _cleanup_close_ int keeper_fd = FD_NONE;
        RpcClient *client = NULL;
        int fd, r = session_find_keeper(name, dir_fd, &fd, reterr);

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
