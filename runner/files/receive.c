/* SPDX-License-Identifier: Apache-2.0 */
#include "files/receive.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "base/list.h"
#include "base/threads.h"
#include "base/time.h"

enum {
        PAUSE = 10, /* Milliseconds between tries, if the source cannot report that it has data. */
        GRACE = 5000,       /* usec that a client may live on after the end of its source. */
        PATIENCE = 2000000, /* usec for all threads to end once they were told to. */
        STACK_SIZE = 1 << 20,
};

typedef struct Receive {
        struct Receive *next;
        Receives *all;
        RpcCall *call; /* NULL once its client has gone. */
        ReceiveFn fn;
        FilesUpload *upload; /* Belongs to the thread while that runs. */
        LoopTimer *grace;
        int source_fd; /* Borrowed from the upload. */
        int stop_fd;   /* Owned eventfd; readable once the copy must end. */
        atomic_bool stop;
        Thread thread;
        bool running;
        bool complete; /* All data has come. */
        int result;
        Error error;
} Receive;

struct Receives {
        Loop *loop;
        Files *files;
        Threads *threads;
        Receive *first;
        unsigned count;
};

static Receive *receive_free(Receive *receive) {
        if (list_remove(&receive->all->first, receive))
                receive->all->count--;
        (void)loop_timer_free(receive->grace);
        (void)fd_close(receive->stop_fd);
        files_upload_free(receive->upload);
        free(receive);
        return NULL;
}

/* --- the thread --- */

/* Waits for data or for the order to end. A source that reports data but has none is tried again
 * after a pause. */
static void wait_for_source(const Receive *receive, bool pause) {
        struct pollfd fds[] = { { .fd = receive->stop_fd, .events = POLLIN },
                                { .fd = pause ? -1 : receive->source_fd, .events = POLLIN } };

        (void)poll(fds, ELEMENTSOF(fds), pause ? PAUSE : -1);
}

/* Returns 1 at the end of the data. */
static int receive_copy(Receive *receive, Error *reterr) {
        bool waited = false;
        int r = 0;

        while (r == 0 || r == -EAGAIN) {
                if (atomic_load(&receive->stop))
                        return error_set(reterr, ERROR_SETUP, ECANCELED, "the client has gone");
                r = files_upload_step(receive->upload, reterr);
                if (r == -EAGAIN)
                        wait_for_source(receive, waited);
                waited = r == -EAGAIN && !waited;
        }
        return r;
}

static void do_part(void *data) {
        Receive *receive = data;

        receive->result = receive->complete ? files_upload_settle(receive->upload, &receive->error)
                                            : receive_copy(receive, &receive->error);
}

/* --- the loop's side --- */

static void receive_on_call_end(RpcCall *call, void *data) {
        const uint64_t one = 1;
        Receive *receive = data;

        (void)call;
        receive->call = NULL;
        atomic_store(&receive->stop, true);
        (void)!write(receive->stop_fd, &one, sizeof(one));
        if (!receive->running)
                (void)receive_free(receive);
}

/* The reply frees the call without receive_on_call_end(), because the call has ended normally. */
static void receive_answer(Receive *receive, int r, const Error *error) {
        const uint64_t size = files_upload_length(receive->upload);
        const Error copied = r < 0 ? *error : (Error){ 0 };
        RpcCall *call = receive->call;
        ReceiveFn fn = receive->fn;
        JsonWriter *w;

        (void)receive_free(receive);
        if (r < 0)
                return rpc_fail(call, &copied);
        w = rpc_result(call);
        if (fn)
                fn(call, w);
        json_write_uint(w, "size", size);
        rpc_reply(call);
}

static void receive_finish(void *data);

static int start_part(Receive *receive) {
        int r;

        receive->thread = (Thread){
                .run = do_part, .finish = receive_finish, .data = receive, .stack_size = STACK_SIZE
        };
        r = thread_start(receive->all->threads, &receive->thread);
        receive->running = r == 0;
        return r;
}

/* If the client has gone, its incomplete file is removed with the connection. Without a thread the
 * file is settled here at once, and other clients wait meanwhile. */
static void receive_settle(Receive *receive) {
        if (rpc_call_is_gone(receive->call))
                return;
        if (start_part(receive) == 0)
                return;
        do_part(receive);
        receive_answer(receive, receive->result, &receive->error);
}

static void on_grace(void *data) {
        receive_settle(data);
}

/* The end of a pipe may be the end of the data. But Ctrl-C may also have ended the whole pipeline.
 * The client is part of it and may die last. */
static void receive_completed(Receive *receive) {
        receive->complete = true;
        if (files_upload_is_regular(receive->upload))
                receive_settle(receive);
        else
                loop_timer_set(receive->grace, time_now_usec() + GRACE);
}

static void receive_finish(void *data) {
        Receive *receive = data;

        receive->running = false;
        if (!receive->call)
                (void)receive_free(receive);
        else if (receive->result < 0 || receive->complete)
                receive_answer(receive, receive->result, &receive->error);
        else
                receive_completed(receive);
}

/* --- requests --- */

static int receive_check(const Receives *all, int fd, Error *reterr) {
        int r;

        if (fd < 0) {
                r = error_set(reterr, ERROR_USAGE, 0, "no file descriptor came with the request");
                return error_cure(reterr, r,
                                  "Send one that is open for reading with the line (SCM_RIGHTS), "
                                  "over the session's socket.");
        }
        if (all->count < RECEIVES_MAX)
                return 0;
        (void)error_set(reterr, ERROR_LIMIT, EBUSY, "the session receives %d files already",
                        RECEIVES_MAX);
        return error_cure(reterr, -EBUSY, "Try again when one of them is complete.");
}

static int receive_new(Receives *all, RpcCall *call, ReceiveFn fn, Receive **ret, Error *reterr) {
        Receive *receive = calloc(1, sizeof(*receive));

        if (!receive)
                return error_oom(reterr);
        *receive = (Receive){ .next = all->first, .all = all, .call = call, .fn = fn };
        all->first = receive;
        all->count++;
        receive->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        *ret = receive;
        return receive->stop_fd < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot make an eventfd")
                       : 0;
}

static int receive_begin(Receive *receive, Error *reterr) {
        int r = loop_timer_new(receive->all->loop, on_grace, receive, &receive->grace, reterr);

        if (r < 0)
                return r;
        r = start_part(receive);
        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot start a thread for the file") : 0;
}

int receive_start(Receives *all, RpcCall *call, const char *path, unsigned mode, bool make_parents,
                  ReceiveFn fn, Error *reterr) {
        _cleanup_close_ int fd = rpc_take_fd(call, 0);
        const int source_fd = fd;
        Receive *receive = NULL;
        int r = receive_check(all, fd, reterr);

        if (r < 0)
                return r;
        r = receive_new(all, call, fn, &receive, reterr);
        if (r == 0)
                r = files_upload_new(all->files, path, TAKE_FD(fd), mode, make_parents,
                                     &receive->upload, reterr);
        if (r == 0) {
                receive->source_fd = source_fd;
                r = receive_begin(receive, reterr);
        }
        if (r < 0) {
                if (receive)
                        (void)receive_free(receive);
                return r;
        }
        rpc_call_on_end(call, receive_on_call_end, receive);
        return 0;
}

/* --- all of them --- */

int receives_new(Loop *loop, Files *files, Receives **ret, Error *reterr) {
        Receives *all = calloc(1, sizeof(*all));
        int r;

        if (!all)
                return error_oom(reterr);
        *all = (Receives){ .loop = loop, .files = files };
        r = threads_new(loop, &all->threads, reterr);
        if (r < 0)
                (void)receives_free(all);
        else
                *ret = all;
        return r;
}

bool receives_busy(const Receives *all) {
        return all->count > 0;
}

Receives *receives_free(Receives *all) {
        const uint64_t until = time_now_usec() + PATIENCE;

        if (!all)
                return NULL;
        /* A thread may block in read(2) on a source that wrongly reports data. It ends with the
         * process, and the next keeper removes its file. */
        list_each_safe(receive, all->first) {
                if (receive->running)
                        (void)thread_wait(&receive->thread, until);
        }
        (void)threads_free(all->threads);
        if (!all->first)
                free(all);
        return NULL;
}
