/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/json-write.h"
#include "base/list.h"
#include "base/time.h"
#include "gateway/client.h"
#include "gateway/plain.h"
#include "gateway/secrets.h"
#include "gateway/server.h"
#include "gateway/transfer.h"
#include "gateway/tunnel.h"
#include "network/gateway-protocol.h"

enum {
        ANSWER_BLOCK = 128 << 10,
        CLIENT_CLOSED = 499, /* nginx has introduced this code */
};

/* --- waiting --- */

static void exchange_suspend(Exchange *e) {
        if (e->suspended)
                return;
        e->suspended = true;
        MHD_suspend_connection(e->connection);
}

void exchange_resume(Exchange *e) {
        if (!e->suspended)
                return;
        e->suspended = false;
        MHD_resume_connection(e->connection);
        e->gateway->resumed = true;
        loop_timer_set(e->gateway->turn_timer, time_now_usec());
}

/* --- the response --- */

/* Gives libmicrohttpd bytes of the response's body. */
static ssize_t exchange_on_read(void *data, uint64_t at, char *ret, size_t most) {
        Exchange *e = data;
        const size_t n = buffer_take(&e->down, ret, most);

        (void)at;
        e->gateway->calls++;
        transfer_continue(e);
        if (e->done)
                client_waits(e->connection, true);
        if (n > 0)
                return (ssize_t)n;
        if (e->down.length > 0)
                return (ssize_t)buffer_take(&e->down, ret, most);
        if (e->done)
                return e->verdict.status ? MHD_CONTENT_READER_END_WITH_ERROR
                                         : MHD_CONTENT_READER_END_OF_STREAM;
        exchange_suspend(e);
        return 0;
}

static struct MHD_Response *exchange_make_answer(Exchange *e) {
        const uint64_t length = e->answer_length == LENGTH_UNKNOWN ? MHD_SIZE_UNKNOWN
                                                                   : e->answer_length;
        const size_t block = e->answer_length < ANSWER_BLOCK ? e->answer_length + 1 : ANSWER_BLOCK;
        struct MHD_Response *response = e->status == MHD_HTTP_SWITCHING_PROTOCOLS
                                                ? tunnel_make_answer(e)
                                                : MHD_create_response_from_callback(
                                                          length, block, exchange_on_read, e, NULL);

        /* Otherwise, libmicrohttpd would send the last chunk of a body even for HEAD. */
        if (response && length == MHD_SIZE_UNKNOWN && streq(e->method, MHD_HTTP_METHOD_HEAD))
                (void)MHD_set_response_options(response, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
        for (size_t i = 0; response && i < e->answer.count; i++) {
                char *colon = strchr(e->answer.items[i], ':');

                if (!colon)
                        continue;
                *colon = '\0';
                (void)MHD_add_response_header(response, e->answer.items[i],
                                              colon + 1 + strspn(colon + 1, " \t"));
        }
        return response;
}

/* Says when the route takes the next request. */
static void exchange_add_retry(const Exchange *e, struct MHD_Response *response) {
        const uint64_t usec = e->route->requests ? e->route->period / e->route->requests : 0;
        char text[24];

        (void)snprintf(text, sizeof(text), "%u", (unsigned)(usec / 1000000 + 1));
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, text);
}

/* Explains a refusal in the form that clients of APIs print. */
static struct MHD_Response *exchange_make_refusal(const Exchange *e) {
        _cleanup_(json_write_clear) JsonWriter w = { 0 };
        _cleanup_free_ char *message = str_format("holt: %s", e->verdict.reason);
        struct MHD_Response *response;

        json_write_object(&w, NULL);
        json_write_object(&w, "error");
        json_write_string(&w, "message", message);
        json_write_string(&w, "type", "holt");
        json_write_string(&w, "route", e->route ? e->route->name : NULL);
        json_write_end(&w);
        json_write_end(&w);
        if (json_write_finish(&w) < 0)
                return NULL;
        response = MHD_create_response_from_buffer(w.length, w.data, MHD_RESPMEM_MUST_COPY);
        if (response)
                (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                              "application/json");
        if (response && e->verdict.status == 429)
                exchange_add_retry(e, response);
        /* Some clients send a user and password only if they are asked for them. */
        if (response && e->verdict.status == 401)
                (void)MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                              "Basic realm=\"holt\"");
        return response;
}

/* Leaves the connection, which has TLS, to the tunnel. */
static enum MHD_Result exchange_give_away(Exchange *e) {
        if (!e->tunnel || tunnel_take_over(e) < 0)
                return MHD_NO;
        e->taken = true;
        exchange_suspend(e);
        return MHD_YES;
}

static enum MHD_Result exchange_queue(Exchange *e) {
        const bool refused = !e->answered;
        struct MHD_Response *response;
        enum MHD_Result r;

        e->queued = true;
        if (e->tls && !refused && e->status == MHD_HTTP_SWITCHING_PROTOCOLS)
                return exchange_give_away(e);
        response = refused ? exchange_make_refusal(e) : exchange_make_answer(e);
        if (!response)
                return MHD_NO;
        r = MHD_queue_response(e->connection, refused ? e->verdict.status : e->status, response);
        MHD_destroy_response(response);
        return r;
}

/* --- the request --- */

void *exchange_on_target(void *data, const char *target, struct MHD_Connection *connection) {
        Exchange *e = calloc(1, sizeof(*e));

        if (!e)
                return NULL;
        e->gateway = data;
        e->gateway->calls++;
        e->connection = connection;
        e->tls = judge_is_tls(connection);
        e->target = strdup(target);
        e->rest = "";
        e->started = time_now_usec();
        list_push(&e->gateway->exchanges, e);
        return e;
}

/* Reads the length that the request announces. libmicrohttpd reads chunks if both headers are
 * there. The request is framed anew for the upstream, so the two cannot read it in different ways.
 * For other codings than chunks, libmicrohttpd would wait for the end of the connection. */
static void exchange_read_length(Exchange *e) {
        const char *length = MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND,
                                                         MHD_HTTP_HEADER_CONTENT_LENGTH);
        const char *coding = MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND,
                                                         MHD_HTTP_HEADER_TRANSFER_ENCODING);

        if (coding && strcasecmp(coding, "chunked") != 0)
                verdict_set(&e->verdict, 501, "the only transfer coding of a request is chunked");
        else if (coding)
                e->length = LENGTH_UNKNOWN;
        else if (length && str_to_uint(length, INT64_MAX, &e->length) < 0)
                verdict_set(&e->verdict, 400, "the length of the body is no number");
}

/* length: of the body, as far as it is known. more: bytes of it that the route has not counted. */
static void exchange_check_body(Exchange *e, uint64_t length, uint64_t more) {
        if (e->verdict.status || length == LENGTH_UNKNOWN)
                return;
        if (e->route->body_max && length > e->route->body_max)
                verdict_set(&e->verdict, 413, "this route carries bodies of at most %llu bytes",
                            (unsigned long long)e->route->body_max);
        else
                (void)judge_bytes(e->route, more, &e->verdict);
}

/* Without this, the exchange would go on until the upstream answers, and count as a running one. */
bool exchange_leave(Gateway *gateway, const struct MHD_Connection *connection, const char *why) {
        Exchange *e = gateway->exchanges;
        bool waits;

        while (e && e->connection != connection)
                e = e->next;
        if (!e || !e->counted || e->done)
                return false;
        waits = e->suspended;
        verdict_set(&e->verdict, CLIENT_CLOSED, "%s", why);
        transfer_close(e);
        exchange_resume(e);
        return waits;
}

static void exchange_on_secrets(void *data, const char *why, const char *told) {
        Exchange *e = data;

        (void)snprintf(e->told, sizeof(e->told), "%s", told);
        e->keyless = why;
        if (why)
                verdict_set(&e->verdict, 502, "%s", why);
        else
                transfer_start(e);
        if (e->verdict.status)
                e->done = true;
        exchange_resume(e);
}

static enum MHD_Result exchange_begin(Exchange *e, const char *method, bool http_1_1) {
        e->begun = true;
        client_waits(e->connection, true);
        e->method = strdup(method);
        if (!e->method || !e->target)
                return MHD_NO;
        judge_request(e->gateway, e->connection, method, e->target, &e->route, &e->rest,
                      &e->verdict);
        if (e->verdict.status == 0)
                exchange_read_length(e);
        if (e->verdict.status == 0)
                exchange_check_body(e, e->length, e->length);
        if (e->verdict.status == 0)
                tunnel_prepare(e, http_1_1);
        if (e->verdict.status)
                return exchange_queue(e);
        e->counted = true;
        e->route->running++;
        client_watch(e->connection);
        if (e->length == 0)
                client_works(e->connection);
        secrets_get(e->gateway, e->route, exchange_on_secrets, e);
        return MHD_YES;
}

/* Takes bytes of the request's body, or waits until the upstream has taken earlier ones. */
static enum MHD_Result exchange_take_body(Exchange *e, const char *body, size_t *size) {
        if (e->done || e->verdict.status) {
                *size = 0; /* Nobody wants them any more. */
                return MHD_YES;
        }
        client_waits(e->connection, true);
        if (buffer_is_full(&e->up)) {
                client_works(e->connection);
                exchange_suspend(e);
                return MHD_YES;
        }
        if (pipe_buffer_add(&e->up, body, *size) < 0)
                return MHD_NO;
        e->sent += *size;
        e->route->bytes += *size;
        *size = 0;
        exchange_check_body(e, e->sent, 0);
        if (e->verdict.status)
                transfer_close(e);
        else
                transfer_continue(e);
        return MHD_YES;
}

enum MHD_Result exchange_on_request(void *data, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *body,
                                    size_t *body_size, void **state) {
        Exchange *e = *state;

        (void)data;
        (void)connection;
        (void)url;
        if (!e)
                return MHD_NO;
        e->gateway->calls++;
        if (!e->begun)
                return exchange_begin(e, method, streq(version, MHD_HTTP_VERSION_1_1));
        if (*body_size > 0)
                return exchange_take_body(e, body, body_size);
        if (!e->uploaded) {
                e->uploaded = true;
                client_works(e->connection);
                transfer_continue(e);
        }
        if (e->queued)
                return e->taken ? MHD_NO : MHD_YES;
        if (e->answered || e->verdict.status)
                return exchange_queue(e);
        exchange_suspend(e);
        return MHD_YES;
}

/* --- the end --- */

/* Whether the upstream may not have accepted the credential. */
static bool exchange_is_doubted(const Exchange *e) {
        return e->answered && (e->status == 401 || e->status == 403) && e->route &&
               secrets_has_any(e->route);
}

static GatewayEventType exchange_outcome(const Exchange *e) {
        if (e->keyless)
                return GATEWAY_KEYLESS;
        if (e->verdict.status == 0)
                return exchange_is_doubted(e) ? GATEWAY_DOUBTED : GATEWAY_DONE;
        return e->verdict.status < CLIENT_CLOSED && !e->answered ? GATEWAY_REFUSED : GATEWAY_FAILED;
}

/* Tells holt. If holt does not read fast enough, the event is lost: a program inside must not make
 * holt wait. */
void exchange_tell(const Exchange *e) {
        const char *target = e->route ? e->rest : e->target ? e->target : "";
        const char *method = e->method ? e->method : "";
        GatewayEvent event = { .type = exchange_outcome(e),
                               .status = e->answered ? e->status : e->verdict.status,
                               .sent = e->sent,
                               .received = e->received,
                               .usec = time_now_usec() - e->started };

        (void)snprintf(event.route, sizeof(event.route), "%s", e->route ? e->route->name : "");
        plain_copy_text(event.reason, sizeof(event.reason),
                        event.type != GATEWAY_DOUBTED ? e->verdict.reason
                        : e->status == 401 ? "the service refused the credential of this route"
                                           : "the service refused the request; perhaps the "
                                             "credential of this route does not allow it");
        plain_copy_text(event.told, sizeof(event.told), e->told);
        plain_copy_url(event.method, sizeof(event.method), method, strlen(method));
        plain_copy_url(event.path, sizeof(event.path), target, strcspn(target, "?"));
        scrub_text(&e->scrub, event.path);
        scrub_text(&e->scrub, event.reason);
        (void)send(e->gateway->control_fd, &event, sizeof(event), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void exchanges_end(Gateway *gateway, const Route *route, const char *why) {
        list_each_safe(e, gateway->exchanges) {
                if (e->route != route || e->verdict.status)
                        continue;
                verdict_set(&e->verdict, 403, "%s", why);
                if (e->tunnel) {
                        tunnel_end(e);
                        continue;
                }
                transfer_close(e);
                exchange_resume(e);
        }
}

void exchange_on_end(void *data, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode code) {
        Exchange *e = *state;

        (void)data;
        if (!e)
                return;
        e->gateway->calls++;
        if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK && e->verdict.status == 0 && !e->taken)
                verdict_set(&e->verdict, CLIENT_CLOSED, "the program closed the connection");
        transfer_close(e);
        client_waits(connection, false);
        (void)list_remove(&e->gateway->exchanges, e);
        if (e->method) /* Otherwise there was no whole request. */
                exchange_tell(e);
        buffer_clear(&e->up);
        buffer_clear(&e->down);
        scrub_clear(&e->scrub);
        strlist_clear(&e->answer);
        free(e->target);
        free(e->method);
        if (!e->gateway->exchanges)
                server_rest(e->gateway);
        free(e);
        *state = NULL;
}
