/* SPDX-License-Identifier: Apache-2.0 */
#include "session/receive.h"

#include <errno.h>
#include <sys/epoll.h>

enum {
        PAUSE = 10000, /* usec, for what can't say when there is something */
        GRACE = 5000,  /* usec that a client may end later than what it sends from */
};

typedef struct Receive {
        Keeper *keeper;
        RpcCall *call;
        ReceiveFn fn;
        FilesUpload *upload;
        LoopWatch *watch; /* of what it comes from; NULL of what epoll(7) does not take */
        LoopTimer *turn;
        bool complete; /* all has come */
} Receive;

static Receive *receive_free(Receive *receive) {
        receive->watch = loop_unwatch(receive->watch);
        (void)loop_timer_free(receive->turn);
        files_upload_free(receive->upload);
        receive->keeper->receives--;
        free(receive);
        return NULL;
}

static void on_call_end(RpcCall *call, void *data) {
        (void)call;
        (void)receive_free(data);
}

/* The call is freed by its answer, without on_call_end(): it has come to its end. */
static void answer(Receive *receive, int r, const Error *error) {
        const uint64_t size = files_upload_length(receive->upload);
        RpcCall *call = receive->call;
        ReceiveFn fn = receive->fn;
        JsonWriter *w;

        (void)receive_free(receive);
        if (r < 0)
                return rpc_fail(call, error);
        w = rpc_result(call);
        if (fn)
                fn(call, w);
        json_write_uint(w, "size", size);
        rpc_reply(call);
}

/* Who is gone by now wanted no half of it; the end of the connection takes it away. */
static void settle(Receive *receive) {
        Error error;
        int r;

        if (rpc_call_is_gone(receive->call))
                return;
        r = files_upload_settle(receive->upload, &error);
        answer(receive, r, &error);
}

/* The end of a pipe may be the end of what was to come, or of a whole pipeline by Ctrl-C, of which
 * the client is a part and may be the last. */
static void completed(Receive *receive) {
        receive->complete = true;
        receive->watch = loop_unwatch(receive->watch);
        if (files_upload_is_regular(receive->upload))
                settle(receive);
        else
                loop_timer_set(receive->turn, time_now_usec() + GRACE);
}

static void step(Receive *receive) {
        Error error;
        int r = files_upload_step(receive->upload, &error);

        if (r == 1)
                return completed(receive);
        if (r < 0 && r != -EAGAIN)
                return answer(receive, r, &error);
        if (receive->watch)
                loop_watch_set(receive->watch, r == 0 ? 0 : EPOLLIN);
        if (r == 0 || !receive->watch)
                loop_timer_set(receive->turn, r == 0 ? 1 : time_now_usec() + PAUSE);
}

static void on_turn(void *data) {
        Receive *receive = data;

        if (receive->complete)
                settle(receive);
        else
                step(receive);
}

static void on_source(void *data, uint32_t events) {
        (void)events;
        step(data);
}

/* What it comes from is only watched once it has been emptied: until then its turn comes by the
 * timer, after the fds of everybody else. */
static int begin(Receive *receive, int fd, Error *reterr) {
        Loop *loop = receive->keeper->loop;
        int r = loop_timer_new(loop, on_turn, receive, &receive->turn, reterr);

        if (r == 0)
                r = loop_watch(loop, fd, 0, on_source, receive, &receive->watch, reterr);
        if (r < 0 && r != -EPERM)
                return r;
        loop_timer_set(receive->turn, 1);
        return 0;
}

static int check(const Keeper *keeper, int fd, Error *reterr) {
        int r;

        if (fd < 0) {
                r = error_set(reterr, ERROR_USAGE, 0, "no file descriptor came with the request");
                return error_cure(reterr, r,
                                  "Send one open for reading with the line (SCM_RIGHTS), over the "
                                  "session's socket.");
        }
        if (keeper->receives < RECEIVES_MAX)
                return 0;
        (void)error_set(reterr, ERROR_LIMIT, EBUSY, "%d files are being received already",
                        RECEIVES_MAX);
        return error_cure(reterr, -EBUSY, "Wait for one of them.");
}

int receive_start(Keeper *keeper, RpcCall *call, const char *path, unsigned mode, bool make_parents,
                  ReceiveFn fn, Error *reterr) {
        _cleanup_close_ int fd = rpc_take_fd(call, 0);
        const int source_fd = fd;
        Receive *receive;
        int r = check(keeper, fd, reterr);

        if (r < 0)
                return r;
        receive = calloc(1, sizeof(*receive));
        if (!receive)
                return error_oom(reterr);
        *receive = (Receive){ .keeper = keeper, .call = call, .fn = fn };
        keeper->receives++;
        r = files_upload_new(keeper->files, path, TAKE_FD(fd), mode, make_parents, &receive->upload,
                             reterr);
        if (r == 0)
                r = begin(receive, source_fd, reterr);
        if (r < 0) {
                (void)receive_free(receive);
                return r;
        }
        rpc_call_on_end(call, on_call_end, receive);
        return 0;
}
