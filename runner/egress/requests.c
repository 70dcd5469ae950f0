/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/requests.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"

enum {
        SENT_AT_ONCE = 8
}; /* Requests without a reply, at most; the sockets have room for more messages. */

typedef struct Request {
        struct Request *next;
        MakerRequest message;
        RequestFn fn; /* NULL once the caller has forgotten the request. */
        void *data;
} Request;

typedef struct Requests {
        Request *sent, *waiting; /* The oldest first. */
        size_t sent_count;
        LoopWatch *watch; /* NULL once the maker has gone. */
} Requests;

static void request_settle(Request *request, int fd, int errnum) {
        if (request->fn)
                request->fn(request->data, fd, errnum);
        else
                fd_close(fd);
        free(request);
}

/* The maker has gone, although nobody ends it before this process: somebody on the host has killed
 * it. No request can succeed any more, so the network ends, and holt tells the caller. */
static void requests_fail(const Egress *egress) {
        Requests *requests = egress->requests;
        Request *all[] = { requests->sent, requests->waiting };

        requests->watch = loop_unwatch(requests->watch);
        requests->sent = requests->waiting = NULL;
        requests->sent_count = 0;
        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                list_each_safe(request, all[i])
                        request_settle(request, FD_NONE, EPIPE);
        loop_stop(egress->loop);
}

static void requests_send_more(const Egress *egress) {
        Requests *requests = egress->requests;

        while (requests->waiting && requests->sent_count < SENT_AT_ONCE) {
                Request *request = requests->waiting;

                if (send(egress->maker_fd, &request->message, sizeof(request->message),
                         MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                        return;
                (void)list_remove(&requests->waiting, request);
                list_append(&requests->sent, request);
                requests->sent_count++;
        }
}

static void requests_on_answer(void *data, uint32_t events) {
        const Egress *egress = data;
        Requests *requests = egress->requests;
        Request *request = requests->sent;
        Made made;
        int fd, r = maker_receive(egress->maker_fd, &made, &fd);

        (void)events;
        if (r < 0 || !request) {
                fd_close(fd);
                return requests_fail(egress);
        }
        (void)list_remove(&requests->sent, request);
        requests->sent_count--;
        requests_send_more(egress);
        request_settle(request, fd, fd >= 0 ? 0 : made.ready.errnum);
}

int requests_new(Egress *egress, Error *reterr) {
        egress->requests = calloc(1, sizeof(*egress->requests));
        if (!egress->requests)
                return error_oom(reterr);
        return loop_watch(egress->loop, egress->maker_fd, EPOLLIN, requests_on_answer, egress,
                          &egress->requests->watch, reterr);
}

int request_send(Egress *egress, const MakerRequest *message, RequestFn fn, void *data) {
        Requests *requests = egress->requests;
        Request *request;

        if (!requests->watch)
                return -EPIPE;
        request = calloc(1, sizeof(*request));
        if (!request)
                return -ENOMEM;
        *request = (Request){ .message = *message, .fn = fn, .data = data };
        list_append(&requests->waiting, request);
        requests_send_more(egress);
        return 0;
}

void request_forget(const Egress *egress, const void *data) {
        Request *const lists[] = { egress->requests->sent, egress->requests->waiting };

        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                for (Request *request = lists[i]; request; request = request->next)
                        if (request->data == data)
                                request->fn = NULL;
}
