/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/proxy-internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "keeper/connect.h"
#include "methods/stored.h"
#include "serve/methods.h"
#include "serve/proxy-tools.h"
#include "session/live.h"

/* usec. A reader shows files that appear during READER_TIME, even if the policy hides such files
 * from the next start on. A live session does the same. */
enum {
        READER_TIME = 1000000,
        READER_IDLE = 100000,
        LATE_TIME = 1000000, /* added to the time for which a keeper waits for a client's reply */
};

static void proxy_read_waiting(void *data);
static void proxy_end_readers(void *data);

int proxy_new(Loop *loop, Proxy **ret, Error *reterr) {
        Proxy *proxy = calloc(1, sizeof(*proxy));

        if (!proxy)
                return error_oom(reterr);
        proxy->loop = loop;
        proxy->readers = (Readers){ .loop = loop, .on_end = proxy_read_waiting, .data = proxy };
        if (loop_timer_new(loop, proxy_on_hold_time, proxy, &proxy->timer, reterr) < 0 ||
            loop_timer_new(loop, proxy_end_readers, proxy, &proxy->read_timer, reterr) < 0) {
                free(proxy);
                return -ENOMEM;
        }
        *ret = proxy;
        return 0;
}

/* --- the end of a connection --- */

static void drop_held(Upstream *upstream) {
        free(upstream->held_method);
        upstream->held_method = NULL;
        json_write_clear(&upstream->held);
        upstream->held = (JsonWriter){ 0 };
        free(upstream->held_request);
        upstream->held_request = NULL;
}

static void drop_handed(Handed *handed) {
        (void)list_remove(&handed->upstream->handed, handed);
        (void)rpc_request_cancel(handed->request);
        (void)loop_timer_free(handed->timer);
        free(handed);
}

static void upstream_free(Upstream *upstream, const Error *error) {
        (void)list_remove(&upstream->proxy->upstreams, upstream);
        proxy_let_go(upstream);
        loop_unwatch(upstream->watch);
        rpc_client_free(upstream->keeper);
        readers_end(upstream->reader_fd);
        while (upstream->pending) {
                Pending *pending = upstream->pending;

                upstream->pending = pending->next;
                if (pending->call)
                        rpc_fail(pending->call, error);
                free(pending);
        }
        while (upstream->handed)
                drop_handed(upstream->handed);
        drop_held(upstream);
        free(upstream);
}

static void set_gone(const Upstream *upstream, Error *error) {
        (void)error_set(error, ERROR_SETUP, 0, "the keeper of session \"%s\" has ended",
                        upstream->session);
        (void)error_cure(error, 0, "Repeat the request; holt then starts the session again.");
}

/* Ends the readers that have been idle for long enough. */
static void proxy_end_readers(void *data) {
        Proxy *proxy = data;
        const uint64_t now = time_now_usec();

        proxy->read_at = 0;
        list_each_safe(upstream, proxy->upstreams) {
                if (!upstream->reads || upstream->pending)
                        continue;
                if (upstream->ends_at <= now)
                        upstream_free(upstream, NULL);
                else if (!proxy->read_at || upstream->ends_at < proxy->read_at)
                        proxy->read_at = upstream->ends_at;
        }
        loop_timer_set(proxy->read_timer, proxy->read_at);
}

static void proxy_end_reader(Upstream *upstream, uint64_t at) {
        Proxy *proxy = upstream->proxy;

        upstream->ends_at = at;
        if (proxy->read_at && proxy->read_at <= at)
                return;
        proxy->read_at = at;
        loop_timer_set(proxy->read_timer, at);
}

void proxy_client_ended(Proxy *proxy, RpcConnection *client) {
        Error error;

        list_each_safe(upstream, proxy->upstreams) {
                set_gone(upstream, &error);
                if (upstream->client == client)
                        upstream_free(upstream, &error);
        }
        proxy_tools_forget(&proxy->tools, client);
}

/* --- messages from a keeper --- */

static void ask_again(Proxy *proxy, Pending *pending, bool read);

/* Whether the request may be sent again. r: the error of the connection. */
static bool may_ask_again(Pending *pending, int r) {
        return pending->call && !pending->with_fds && keeper_may_retry(r, &pending->tries);
}

static void proxy_on_call_end(RpcCall *call, void *data) {
        Pending *pending = data;

        (void)call;
        pending->call = NULL;
}

static void proxy_answer(Upstream *upstream, RpcMessage *message, const Error *error) {
        Pending *pending = upstream->pending;
        int fds[ELEMENTSOF(message->fds)];
        size_t count = 0;

        /* A request that could not be sent may still have its id from another connection. */
        while (pending && (pending->unsent || pending->id != message->id))
                pending = pending->next;
        if (!pending)
                return;
        (void)list_remove(&upstream->pending, pending);
        if (pending->call && message->result) {
                JsonWriter *w = rpc_result(pending->call);

                for (const JsonValue *v = json_first(message->result); v; v = json_next(v))
                        json_copy(w, json_key(v), v);
                for (size_t i = 0; i < ELEMENTSOF(message->fds); i++)
                        if (message->fds[i] >= 0)
                                fds[count++] = message->fds[i];
                proxy_tools_note(&upstream->proxy->tools, pending->call);
                upstream->stopped |= streq(rpc_call_method(pending->call)->name, "session.stop");
                rpc_reply_fds(pending->call, fds, count);
        } else if (!message->result && may_ask_again(pending, -error->errnum)) {
                upstream->stopped = true;
                ask_again(upstream->proxy, pending, false);
                return;
        } else if (pending->call) {
                rpc_fail(pending->call, error);
        }
        free(pending);
}

/* Stops reading from the keeper while the client does not read. */
static void proxy_settle(const Upstream *upstream) {
        if (!upstream->watch) /* the keeper has hung up */
                return;
        loop_watch_set(upstream->watch,
                       (upstream->held_method || upstream->paused ? 0 : EPOLLIN) |
                               (rpc_client_waits(upstream->keeper) ? EPOLLOUT : 0));
}

/* Sends the client's reply, or its error, back to the keeper. Returns false if the keeper does not
 * read, and so no further request can be sent. */
static bool send_back(const Upstream *upstream, const char *id, const RpcAnswer *answer) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        Error ignored;
        int r;

        if (answer->result || answer->error) {
                json_copy(&w, NULL, answer->result ? answer->result : answer->error);
        } else {
                json_write_object(&w, NULL);
                json_write_int(&w, "code", -32000);
                json_write_string(&w, "message", answer->why);
                json_write_end(&w);
        }
        if (json_write_finish(&w) < 0)
                return false;
        r = rpc_client_answer(upstream->keeper, id, answer->result ? &w : NULL,
                              answer->result ? NULL : &w, &ignored);
        proxy_settle(upstream);
        return r == 0;
}

static void proxy_on_answer(void *data, const RpcAnswer *answer) {
        Handed *handed = data;
        Upstream *upstream = handed->upstream;
        Proxy *proxy = upstream->proxy;
        RpcConnection *client = upstream->client;
        Error error;
        bool sent;

        handed->request = NULL;
        sent = send_back(upstream, handed->id, answer);
        drop_handed(handed);
        if (sent) {
                proxy_hold_if_slow(upstream);
        } else {
                set_gone(upstream, &error);
                upstream_free(upstream, &error);
        }
        proxy_client_has_room(proxy, client);
}

/* The keeper no longer waits for the reply. The client must not use up its number of unanswered
 * requests by never answering. */
static void proxy_on_late_answer(void *data) {
        Handed *handed = data;
        Proxy *proxy = handed->upstream->proxy;
        RpcConnection *client = handed->upstream->client;

        drop_handed(handed);
        proxy_client_has_room(proxy, client);
}

static void handed_set_timer(Handed *handed) {
        Error ignored;

        if (handed->patience > 0 &&
            loop_timer_new(handed->upstream->proxy->loop, proxy_on_late_answer, handed,
                           &handed->timer, &ignored) == 0)
                loop_timer_set(handed->timer, time_now_usec() + handed->patience + LATE_TIME);
}

/* Returns 0, -EAGAIN if the request must wait, or another negative errno. */
static int hand_request(Upstream *upstream) {
        Handed *handed = upstream->held_request;
        int r = rpc_request(upstream->client, upstream->held_method, &upstream->held,
                            proxy_on_answer, handed, &handed->request);

        if (r == 0) {
                handed->next = upstream->handed;
                upstream->handed = TAKE_PTR(upstream->held_request);
                handed_set_timer(handed);
        } else if (r != -EAGAIN && r != -EBUSY) {
                (void)send_back(upstream, handed->id,
                                &(RpcAnswer){ .why = "the client has disconnected" });
        }
        return r == -EBUSY ? -EAGAIN : r;
}

static void proxy_deliver(Upstream *upstream) {
        int r = 0;

        if (upstream->held_method)
                r = upstream->held_request
                            ? hand_request(upstream)
                            : rpc_notify(upstream->client, upstream->held_method, &upstream->held);
        if (r != -EAGAIN)
                drop_held(upstream);
        proxy_settle(upstream);
}

/* Cancels the request, because nobody waits for its reply any more. */
static void cancel_handed(const Upstream *upstream, const char *call) {
        for (Handed *handed = upstream->handed; handed; handed = handed->next)
                if (streq(handed->call, call)) {
                        drop_handed(handed);
                        return;
                }
}

static int hold_request(Upstream *upstream, const RpcMessage *message) {
        Handed *handed = calloc(1, sizeof(*handed));
        uint64_t patience;

        if (!handed)
                return -ENOMEM;
        handed->upstream = upstream;
        (void)snprintf(handed->id, sizeof(handed->id), "%s", message->request);
        (void)snprintf(handed->call, sizeof(handed->call), "%s",
                       json_member_text(message->params, "call"));
        if (json_uint(json_member(message->params, "timeout_ms"), UINT32_MAX, &patience) == 0)
                handed->patience = patience * 1000;
        upstream->held_request = handed;
        return 0;
}

static void hand_on(Upstream *upstream, const RpcMessage *message) {
        JsonWriter *w = &upstream->held;

        if (streq(message->method, "tool.cancel"))
                cancel_handed(upstream, json_member_text(message->params, "call"));
        if (message->request && hold_request(upstream, message) < 0)
                return;
        json_write_object(w, NULL);
        json_write_string(w, "session", upstream->session);
        for (const JsonValue *v = json_first(message->params); v; v = json_next(v))
                json_copy(w, json_key(v), v);
        json_write_end(w);
        upstream->held_method = strdup(message->method);
        if (!upstream->held_method || json_write_finish(w) < 0)
                drop_held(upstream);
        proxy_deliver(upstream);
}

static bool proxy_only_reads(const RpcCall *call) {
        const RpcMethod *method = rpc_call_method(call);

        return stored_has(method->name) || stored_reads_files(method);
}

/* Takes the requests that the next keeper can get: those that only read data, and those that the
 * keeper has certainly not received. The latter are unsent requests, and the only request of a
 * connection that was reset. If such a connection had several, nobody knows which ones the keeper
 * has received. */
static Pending *take_unread(Upstream *upstream, int r) {
        bool reset = r == -ECONNRESET && !upstream->heard && upstream->sent == 1;
        Pending *unread = NULL;

        list_each_safe(pending, upstream->pending)
                if (pending->call &&
                    (reset || pending->unsent || proxy_only_reads(pending->call)) &&
                    (upstream->reads || may_ask_again(pending, -ECONNRESET))) {
                        (void)list_remove(&upstream->pending, pending);
                        list_push(&unread, pending);
                }
        return unread;
}

static void end_upstream(Upstream *upstream, int r) {
        const bool reads = upstream->reads;
        Pending *unread = take_unread(upstream, r);
        Proxy *proxy = upstream->proxy;
        Error error;

        set_gone(upstream, &error);
        upstream_free(upstream, &error);
        while (unread) {
                Pending *pending = unread;

                unread = pending->next;
                ask_again(proxy, pending, reads);
        }
}

/* Reads only as much as the client has room for, because the keeper makes its replies as they are
 * read. */
static void read_keeper(Upstream *upstream) {
        while (!upstream->held_method) {
                _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
                Error error;
                int r;

                upstream->paused = !rpc_has_room(upstream->client);
                if (upstream->paused)
                        return proxy_settle(upstream);
                r = rpc_client_next(upstream->keeper, false, &message, &error);

                if (r == -EAGAIN)
                        return proxy_settle(upstream);
                if (r < 0)
                        return end_upstream(upstream, r);
                upstream->heard = true;
                /* It is unknown which request the keeper could not parse. */
                if (rpc_message_answers(&message, 0))
                        return upstream_free(upstream, &error);
                if (message.method)
                        hand_on(upstream, &message);
                else
                        proxy_answer(upstream, &message, &error);
                if (upstream->reads && !upstream->pending)
                        proxy_end_reader(upstream, time_now_usec() + READER_IDLE);
        }
}

static void on_keeper(void *data, uint32_t events) {
        Upstream *upstream = data;

        /* The keeper's end is noticed when its messages are read. epoll(7) reports it again and
         * again, whatever events are requested. While messages wait for the client, that would keep
         * the loop busy. So the watch ends: the last messages can be read without it when the
         * client has room. */
        if (events & EPOLLOUT && rpc_client_flush(upstream->keeper) == 0) {
                proxy_go_on(upstream);
                proxy_settle(upstream);
        }
        if (events & (EPOLLHUP | EPOLLERR) && (upstream->held_method || upstream->paused))
                upstream->watch = loop_unwatch(upstream->watch);
        if (events & ~(uint32_t)EPOLLOUT)
                read_keeper(upstream);
}

void proxy_client_has_room(Proxy *proxy, RpcConnection *client) {

        list_each_safe(upstream, proxy->upstreams) {
                if (upstream->client != client || (!upstream->held_method && !upstream->paused))
                        continue;
                upstream->paused = false;
                proxy_deliver(upstream);
                if (!upstream->held_method)
                        read_keeper(upstream);
        }
}

/* --- requests of clients --- */

int upstream_new(Proxy *proxy, RpcConnection *client, const char *session, int reader_fd, int fd,
                 Upstream **ret, Error *error) {
        Upstream *upstream = calloc(1, sizeof(*upstream));
        int r;

        if (!upstream) {
                fd_close(fd);
                readers_end(reader_fd);
                return error_oom(error);
        }
        *upstream = (Upstream){ .next = proxy->upstreams,
                                .proxy = proxy,
                                .client = client,
                                .reads = reader_fd >= 0,
                                .reader_fd = reader_fd,
                                .takes_until = time_now_usec() + READER_TIME };
        (void)strncpy(upstream->session, session, sizeof(upstream->session) - 1);
        proxy->upstreams = upstream;
        r = rpc_client_new(fd, &upstream->keeper, error);
        if (r == 0)
                rpc_client_queue(upstream->keeper);
        if (r == 0)
                r = loop_watch(proxy->loop, rpc_client_fd(upstream->keeper), EPOLLIN, on_keeper,
                               upstream, &upstream->watch, error);
        if (r < 0) {
                upstream_free(upstream, error);
                return r;
        }
        /* Registrations of tools are not counted as sent requests, so that the client's own first
         * request can still be sent again. */
        if (!upstream->reads)
                proxy_tools_send(proxy->tools, client, session, upstream->keeper);
        *ret = upstream;
        return 0;
}

static int connect_upstream(Proxy *proxy, RpcConnection *client, const char *session, bool reads,
                            Upstream **ret, Error *error) {
        int fd, reader_fd = FD_NONE;
        int r = reads ? readers_start(&proxy->readers, session, &fd, &reader_fd, error)
                      : keeper_connect(session, &fd, error);

        return r < 0 ? r : upstream_new(proxy, client, session, reader_fd, fd, ret, error);
}

Upstream *proxy_find_upstream(const Proxy *proxy, const RpcConnection *client, const char *session,
                              bool reads) {
        for (Upstream *u = proxy->upstreams; u; u = u->next)
                if (u->client == client && u->reads == reads &&
                    !(reads && time_now_usec() >= u->takes_until) && u->watch && !u->stopped &&
                    streq(u->session, session))
                        return u;
        return NULL;
}

static int send_on(Upstream *upstream, Pending *pending, Error *error) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        int fds[RPC_FDS_MAX], r;
        size_t count = 0;

        json_write_object(&w, NULL);
        rpc_write_params(pending->call, "session", &w);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return error_oom(error);
        while (count < RPC_FDS_MAX && (fds[count] = rpc_take_fd(pending->call, count)) >= 0)
                count++;
        r = proxy_add_secrets(pending->call, fds, &count, error);
        if (r == 0)
                r = rpc_client_send(upstream->keeper, rpc_call_method(pending->call)->name, &w, fds,
                                    count, &pending->id, error);
        for (size_t i = 0; i < count; i++)
                fd_close(fds[i]);
        pending->with_fds = count > 0;
        pending->unsent = r == -EPIPE || r == -ECONNRESET;
        upstream->sent += !pending->unsent;
        proxy_settle(upstream);
        return pending->unsent ? 0 : r; /* reading shows that the keeper has gone, and why */
}

/* Always takes ownership of pending. reads: asks a reader. */
static int proxy_ask(Proxy *proxy, Pending *pending, bool reads, Error *error) {
        RpcCall *call = pending->call;
        RpcConnection *client = rpc_call_connection(call);
        const char *session = rpc_string(call, "session");
        Upstream *upstream = proxy_find_upstream(proxy, client, session, reads);
        int r = 0;

        if (!upstream && reads && readers_full(&proxy->readers)) {
                list_append(&proxy->waiting, pending);
                for (Upstream *u = proxy->upstreams; u; u = u->next)
                        if (u->reads && !u->pending)
                                proxy_end_reader(u, time_now_usec());
                return 0;
        }
        if (!upstream) {
                r = connect_upstream(proxy, client, session, reads, &upstream, error);
                if (r == 0)
                        upstream->version = pending->version;
        }
        if (r == 0)
                r = send_on(upstream, pending, error);
        if (r < 0) {
                rpc_call_on_end(call, NULL, NULL);
                free(pending);
                return r;
        }
        pending->upstream = upstream;
        list_push(&upstream->pending, pending);
        return 0;
}

enum { READER_TRIES = 2 };

int proxy_call(RpcCall *call, void *data, Error *error) {
        Proxy *proxy = ((const Server *)data)->proxy;
        SessionVersion version = { 0 };
        Pending *pending;
        int r = proxy_answer_at_rest(proxy, call, &version, error);

        if (r < 0 || r == ASK_NOBODY)
                return r < 0 ? r : 0;
        pending = calloc(1, sizeof(*pending));
        if (!pending)
                return error_oom(error);
        *pending = (Pending){ .call = call, .version = version };
        rpc_call_on_end(call, proxy_on_call_end, pending);
        return proxy_ask(proxy, pending, r == ASK_READER, error);
}

static void proxy_ask_late(Proxy *proxy, Pending *pending, bool reads) {
        RpcCall *call = pending->call;
        Error error;

        if (proxy_ask(proxy, pending, reads, &error) < 0)
                rpc_fail(call, &error);
}

/* Sends the request again; the session may be at rest by now. read: a reader has failed. After
 * READER_TRIES failures, it goes to a keeper, which can tell the reason. */
static void ask_again(Proxy *proxy, Pending *pending, bool read) {
        RpcCall *call = pending->call;
        Error error;
        int r = proxy_answer_at_rest(proxy, call, &pending->version, &error);

        if (r == ASK_READER && read && ++pending->tries > READER_TRIES)
                r = ASK_KEEPER;
        if (r == ASK_KEEPER || r == ASK_READER)
                return proxy_ask_late(proxy, pending, r == ASK_READER);
        free(pending);
        if (r < 0) {
                rpc_call_on_end(call, NULL, NULL);
                rpc_fail(call, &error);
        }
}

static void proxy_read_waiting(void *data) {
        Proxy *proxy = data;

        while (proxy->waiting && !readers_full(&proxy->readers)) {
                Pending *pending = proxy->waiting;

                proxy->waiting = pending->next;
                if (pending->call)
                        proxy_ask_late(proxy, pending, true);
                else
                        free(pending);
        }
}
