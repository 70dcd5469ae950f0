/* SPDX-License-Identifier: Apache-2.0 */
/* holt stop, holt rm: sessions end, or go. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/ask.h"
#include "cli/exec-result.h"
#include "cli/fail.h"
#include "cli/stop.h"
#include "cli/verbs.h"
#include "session/directory.h"

/* Of 10 ms each: half a minute. */
enum { STOP_TRIES = 3000, STOP_PAUSE = 10000000 };

/* The process that listens at the other end of fd, or FD_NONE where that can't be told. */
static int open_peer(int fd) {
        struct ucred peer = { 0 };
        socklen_t length = sizeof(peer);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.pid <= 0)
                return FD_NONE;
        return sys_pidfd_open(peer.pid);
}

/* Until the keeper has let the lock go; or has ended, when the lock may be the next one's already:
 * somebody who uses the session just now starts it again. */
static int wait_for_rest(int dir_fd, int keeper_fd, const char *name, Error *reterr) {
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

/* Whether all that the session's commands have made at protected paths was looked at. The next
 * keeper, if there is one already, tells its own clients. */
static int check_swept(const char *name, int dir_fd, Error *reterr) {
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

static int ask_to_stop(const char *name, int dir_fd, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        _cleanup_close_ int keeper_fd = FD_NONE;
        RpcClient *client = NULL;
        int fd, r = session_find_keeper(name, dir_fd, &fd, reterr);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        keeper_fd = open_peer(fd);
        r = rpc_client_new(fd, &client, reterr);
        if (r == 0)
                r = rpc_client_call(client, "session.stop", NULL, NULL, 0, &message, reterr);
        rpc_client_free(client);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET)
                return r;
        if (r == 0 && message.result)
                exec_result_tell_set_aside(message.result, NULL);
        return wait_for_rest(dir_fd, keeper_fd, name, reterr);
}

int stop_session(const char *name, int dir_fd, Error *reterr) {
        int r = ask_to_stop(name, dir_fd, reterr);

        return r < 0 ? r : check_swept(name, dir_fd, reterr);
}

/* What was not looked at is told, and no reason to keep the session. */
int stop_and_remove(const char *name, int dir_fd, Error *reterr) {
        int r = ask_to_stop(name, dir_fd, reterr);
        Error left;

        if (r < 0)
                return r;
        if (check_swept(name, dir_fd, &left) < 0)
                error_print(&left, stderr);
        return session_remove(name, dir_fd, reterr);
}

static int stop_one(const char *name, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE;
        int r = session_open(name, &dir_fd, NULL, reterr);

        return r < 0 ? r : stop_session(name, dir_fd, reterr);
}

static int remove_one(const char *name, Error *reterr) {
        _cleanup_close_ int dir_fd = FD_NONE;
        int r = session_open(name, &dir_fd, NULL, reterr);

        return r < 0 ? r : stop_and_remove(name, dir_fd, reterr);
}

/* One that fails keeps none of the others. */
static int each(const OptionResult *words, const void *options,
                int (*fn)(const char *name, Error *reterr)) {
        const bool *json = options;
        int code = 0;

        for (size_t i = 0; i < words->operands_count; i++) {
                Error error;

                if (fn(words->operands[i], &error) < 0)
                        code = fail_print(&error, *json);
        }
        return code;
}

static int do_stop(const OptionResult *words, const void *options, Error *reterr) {
        (void)reterr;
        return each(words, options, stop_one);
}

static int do_rm(const OptionResult *words, const void *options, Error *reterr) {
        (void)reterr;
        return each(words, options, remove_one);
}

int cmd_stop(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "stop",
                            .usage = "NAME... [--json]",
                            .summary = "Ends all that runs in sessions; their files stay.",
                            .options = &ask_json_option,
                            .options_count = 1,
                            .operands = true },
                .least = 1,
                .most = SIZE_MAX,
                .run = do_stop,
        };
        bool json = false;

        return ask_main(&verb, &json, argc, argv);
}

int cmd_rm(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "rm",
                            .usage = "NAME... [--json]",
                            .summary = "Stops sessions and takes them away, with all their files. "
                                       "A workspace that\n--workspace has named stays.",
                            .options = &ask_json_option,
                            .options_count = 1,
                            .operands = true },
                .least = 1,
                .most = SIZE_MAX,
                .run = do_rm,
        };
        bool json = false;

        return ask_main(&verb, &json, argc, argv);
}
