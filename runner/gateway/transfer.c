/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/transfer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gateway/client.h"
#include "gateway/secrets.h"
#include "gateway/server.h"
#include "gateway/tunnel.h"
#include "wire/dns-wire.h"
#include "wire/socket-address.h"

enum {
        CONNECT_TIME = 15000,
        CONNECTIONS_KEPT = 16,
        READ_BLOCK = 128 << 10,
        SEND_BLOCK = 128 << 10,
        READS_MAX = 8, /* Pieces of a response that are read before any is passed on. */
};

/* --- the end of a transfer --- */

/* Explains a failure of the proxy outside. Returns false if it was another one. */
static bool transfer_explain_proxy(Exchange *e, CURLcode code) {
        long status = 0;

        if (e->easy)
                (void)curl_easy_getinfo(e->easy, CURLINFO_HTTP_CONNECTCODE, &status);
        if (status >= 300)
                verdict_set(&e->verdict, 502,
                            "the proxy outside (network.upstream) refused %s:%u with %ld",
                            e->route->host, e->route->port, status);
        else if (status == 0 && (code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT))
                verdict_set(&e->verdict, 502,
                            "the proxy outside (network.upstream) cannot be reached");
        return e->verdict.status != 0;
}

/* Explains a failure without libcurl's own text, which may contain the URL. */
static void transfer_explain(Exchange *e, CURLcode code) {
        const Route *route = e->route;
        static const struct {
                CURLcode code;
                unsigned status;
                const char *text;
        } failures[] = {
                { CURLE_OPERATION_TIMEDOUT, 504, "did not answer in time" },
                { CURLE_COULDNT_CONNECT, 502, "cannot be reached" },
                { CURLE_PEER_FAILED_VERIFICATION, 502, "has no certificate that this host trusts" },
                { CURLE_GOT_NOTHING, 502, "closed the connection without an answer" },
                { CURLE_PARTIAL_FILE, 502, "closed the connection within its answer" },
                { CURLE_RECV_ERROR, 502, "broke off the connection" },
                { CURLE_SEND_ERROR, 502, "broke off the connection" },
                { CURLE_UNSUPPORTED_PROTOCOL, 502, "sent an answer that is no HTTP" },
                { CURLE_WEIRD_SERVER_REPLY, 502, "sent an answer that is no HTTP" },
                { CURLE_WRITE_ERROR, 502, "sent an answer that cannot be passed on" },
        };

        if (e->gateway->proxy && transfer_explain_proxy(e, code))
                return;
        for (size_t i = 0; i < ELEMENTSOF(failures); i++)
                if (failures[i].code == code)
                        return verdict_set(&e->verdict, failures[i].status, "%s:%u %s", route->host,
                                           route->port, failures[i].text);
        verdict_set(&e->verdict, 502, "the request to %s:%u failed: %s", route->host, route->port,
                    curl_easy_strerror(code));
}

static void transfer_free(Exchange *e) {
        if (!e->easy)
                return;
        (void)curl_multi_remove_handle(e->gateway->multi, e->easy);
        curl_easy_cleanup(e->easy);
        curl_slist_free_all(e->headers);
        curl_slist_free_all(e->resolve);
        e->easy = NULL;
        e->headers = e->resolve = NULL;
}

void transfer_close(Exchange *e) {
        if (e->gateway->proxy)
                names_forget_host(e->gateway->names, e);
        else if (e->route && e->route->address.family == 0)
                names_forget(e->gateway->names, e->route->number, e);
        secrets_forget(e->gateway, e);
        tunnel_free(e);
        transfer_free(e);
        e->done = true;
        /* The program may send the next request before libmicrohttpd ends this one. */
        if (e->counted) {
                e->route->running--;
                client_waits(e->connection, true);
        }
        e->counted = false;
}

static void transfer_finish(Exchange *e, CURLcode code) {
        if (code == CURLE_OK && e->answered)
                code = scrub_feed(&e->scrub, NULL, 0, true, &e->down) < 0 ? CURLE_OUT_OF_MEMORY
                                                                          : CURLE_OK;
        else if (code == CURLE_OK)
                code = CURLE_GOT_NOTHING;
        if (code != CURLE_OK && e->verdict.status == 0)
                transfer_explain(e, code);
        transfer_close(e);
        exchange_resume(e);
}

static void transfers_collect(Gateway *gateway) {
        struct CURLMsg *message;
        int ignored;

        while ((message = curl_multi_info_read(gateway->multi, &ignored))) {
                Exchange *e = NULL;

                if (message->msg == CURLMSG_DONE &&
                    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&e) ==
                            CURLE_OK) {
                        if (e->tunnel && message->data.result == CURLE_OK)
                                tunnel_start(e);
                        else
                                transfer_finish(e, message->data.result);
                }
        }
}

/* --- libcurl's callbacks for one transfer --- */

static size_t transfer_on_upload(char *ret, size_t size, size_t count, void *data) {
        Exchange *e = data;
        const bool full = buffer_is_full(&e->up);
        const size_t n = buffer_take(&e->up, ret, size * count);

        if (full)
                exchange_resume(e);
        if (n > 0 || e->uploaded)
                return n;
        e->up_paused = true;
        return CURL_READFUNC_PAUSE;
}

static size_t transfer_on_header(char *line, size_t size, size_t count, void *data) {
        Exchange *e = data;

        if (transfer_take_header(e, line, size * count) < 0)
                return 0; /* ends the transfer with CURLE_WRITE_ERROR */
        if (e->answered)
                exchange_resume(e);
        return size * count;
}

static size_t transfer_on_download(char *bytes, size_t size, size_t count, void *data) {
        Exchange *e = data;
        const size_t length = size * count;

        e->received += length;
        e->gateway->received += length;
        e->route->bytes += length;
        if (!judge_bytes(e->route, 0, &e->verdict) ||
            scrub_feed(&e->scrub, bytes, length, false, &e->down) < 0)
                return 0;
        /* CURL_WRITEFUNC_PAUSE would make libcurl copy the bytes, and pass them again later. */
        if (buffer_is_full(&e->down)) {
                e->down_paused = true;
                (void)curl_easy_pause(e->easy,
                                      CURLPAUSE_RECV | (e->up_paused ? CURLPAUSE_SEND : 0));
        }
        exchange_resume(e);
        return length;
}

/* Judges the address once more, at the moment of the connection. */
static curl_socket_t transfer_on_socket(void *data, curlsocktype purpose,
                                        struct curl_sockaddr *address) {
        const Exchange *e = data;
        struct sockaddr_storage storage = { 0 };
        NetAddress target;
        uint16_t port;
        const char *ignored;
        int fd;

        (void)purpose;
        if (address->family != AF_INET && address->family != AF_INET6)
                return CURL_SOCKET_BAD;
        memcpy(&storage, &address->addr, address->addrlen);
        socket_address_get(&storage, &target, &port);
        if (!e->gateway->proxy && e->route->address.family == 0 &&
            judge_forbids(e->gateway, e->route, &target, &ignored))
                return CURL_SOCKET_BAD;
        fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
        if (fd >= 0 && net_address_is_loopback(&target))
                socket_set_local(fd);
        return fd;
}

void transfer_continue(Exchange *e) {
        int action = CURLPAUSE_CONT;

        if (e->tunnel)
                return tunnel_continue(e);
        if (!e->easy || (!e->up_paused && !e->down_paused))
                return;
        if (e->up_paused && e->up.length == 0 && !e->uploaded)
                action |= CURLPAUSE_SEND;
        /* A turn of the loop for each small piece would cost more than the wait. */
        if (e->down_paused && e->down.length > BUFFER_LOW)
                action |= CURLPAUSE_RECV;
        if (action == ((e->up_paused ? CURLPAUSE_SEND : 0) | (e->down_paused ? CURLPAUSE_RECV : 0)))
                return;
        e->up_paused = action & CURLPAUSE_SEND;
        e->down_paused = action & CURLPAUSE_RECV;
        (void)curl_easy_pause(e->easy, action);
}

/* --- the start of a transfer --- */

#define SET(option, value) (code == CURLE_OK ? curl_easy_setopt(e->easy, option, value) : code)

static CURLcode transfer_set_method(Exchange *e) {
        const bool body = e->length > 0;
        CURLcode code = CURLE_OK;

        code = SET(CURLOPT_CUSTOMREQUEST, e->method);
        code = SET(CURLOPT_NOBODY, (long)(strcmp(e->method, "HEAD") == 0));
        if (e->tunnel) {
                code = SET(CURLOPT_CONNECT_ONLY, 1L);
                return SET(CURLOPT_FRESH_CONNECT, 1L);
        }
        if (!body)
                return code;
        code = SET(CURLOPT_UPLOAD, 1L);
        code = SET(CURLOPT_CUSTOMREQUEST, e->method);
        code = SET(CURLOPT_READFUNCTION, transfer_on_upload);
        code = SET(CURLOPT_READDATA, e);
        code = SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)SEND_BLOCK);
        return e->length == LENGTH_UNKNOWN ? code
                                           : SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)e->length);
}

/* Asks the proxy outside for a connection (CONNECT), so that it does not see requests by TLS. It
 * gets no header of the request, and its own headers do not count as a response. */
static CURLcode transfer_set_proxy(const Exchange *e, const NetUpstream *proxy) {
        char host[NET_ADDRESS_TEXT], url[NET_NAME_MAX + 32];
        CURLcode code = CURLE_OK;

        (void)snprintf(url, sizeof(url),
                       proxy->address.family == AF_INET6 ? "http://[%s]:%u" : "http://%s:%u",
                       proxy->address.family ? net_address_text(&proxy->address, host)
                                             : proxy->name,
                       proxy->port);
        code = SET(CURLOPT_PROXY, url);
        code = SET(CURLOPT_NOPROXY, "");
        code = SET(CURLOPT_HTTPPROXYTUNNEL, 1L);
        code = SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        code = SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
        if (proxy->login[0]) {
                const size_t user = strcspn(proxy->login, ":");
                _cleanup_free_ char *name = strndup(proxy->login, user);

                if (!name)
                        return CURLE_OUT_OF_MEMORY;
                code = SET(CURLOPT_PROXYAUTH, (long)CURLAUTH_BASIC);
                code = SET(CURLOPT_PROXYUSERNAME, name);
                code = SET(CURLOPT_PROXYPASSWORD,
                           proxy->login + user + (proxy->login[user] == ':'));
        }
        return code;
}

static CURLcode transfer_set_trust(const Exchange *e) {
        struct curl_blob certificates = { .data = e->gateway->certificates,
                                          .len = e->gateway->certificates_length,
                                          .flags = CURL_BLOB_NOCOPY };
        CURLcode code = CURLE_OK;

#if LIBCURL_VERSION_NUM >= 0x075500
        code = SET(CURLOPT_PROTOCOLS_STR, e->route->tls ? "https" : "http");
#else
        code = SET(CURLOPT_PROTOCOLS, e->route->tls ? CURLPROTO_HTTPS : CURLPROTO_HTTP);
#endif
        code = e->gateway->proxy ? transfer_set_proxy(e, e->gateway->proxy)
                                 : SET(CURLOPT_PROXY, "");
        code = SET(CURLOPT_CAPATH, NULL);
        code = SET(CURLOPT_CAINFO, NULL);
        if (e->gateway->certificates)
                code = SET(CURLOPT_CAINFO_BLOB, &certificates);
        return code;
}

/* Redirects are not followed: FOLLOWLOCATION is off by default. */
static CURLcode transfer_set(Exchange *e, const char *url) {
        CURLcode code = CURLE_OK;

        code = SET(CURLOPT_URL, url);
        code = SET(CURLOPT_PRIVATE, e);
        code = SET(CURLOPT_NOSIGNAL, 1L);
        code = SET(CURLOPT_PATH_AS_IS, 1L);
        code = SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        code = SET(CURLOPT_HTTPHEADER, e->headers);
        code = SET(CURLOPT_RESOLVE, e->resolve);
        code = SET(CURLOPT_TIMEOUT_MS, (long)e->route->timeout);
        code = SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIME);
        code = SET(CURLOPT_BUFFERSIZE, (long)READ_BLOCK);
        code = SET(CURLOPT_HEADERFUNCTION, transfer_on_header);
        code = SET(CURLOPT_HEADERDATA, e);
        code = SET(CURLOPT_WRITEFUNCTION, transfer_on_download);
        code = SET(CURLOPT_WRITEDATA, e);
        code = SET(CURLOPT_OPENSOCKETFUNCTION, transfer_on_socket);
        code = SET(CURLOPT_OPENSOCKETDATA, e);
        if (code == CURLE_OK)
                code = transfer_set_trust(e);
        return code == CURLE_OK ? transfer_set_method(e) : code;
}

static void transfer_go(Exchange *e) {
        _cleanup_free_ char *url = NULL;
        CURLcode code = CURLE_OUT_OF_MEMORY;

        e->easy = curl_easy_init();
        if (e->easy && transfer_add_headers(e) == 0)
                url = transfer_url(e);
        if (url)
                code = transfer_set(e, url);
        if (url)
                explicit_bzero(url, strlen(url));
        if (code == CURLE_OK && curl_multi_add_handle(e->gateway->multi, e->easy) != CURLM_OK)
                code = CURLE_OUT_OF_MEMORY;
        if (code != CURLE_OK)
                transfer_finish(e, code);
}

/* Writes the addresses that the route may use as "+HOST:PORT:ADDRESS,...". With "+", libcurl
 * forgets them after a time. */
static bool transfer_add_addresses(Exchange *e, const char *host, uint16_t port,
                                   const NameResult *result, const char **ret_why) {
        char line[NET_NAME_MAX + 16 + NAME_ADDRESSES_MAX * (NET_ADDRESS_TEXT + 3)];
        size_t length = (size_t)snprintf(line, sizeof(line), "+%s:%u:", host, port);
        bool found = false;

        for (size_t i = 0; i < result->count; i++) {
                const NetAddress *address = &result->items[i];
                char text[NET_ADDRESS_TEXT];

                if (!e->gateway->proxy && judge_forbids(e->gateway, e->route, address, ret_why))
                        continue;
                length += (size_t)snprintf(line + length, sizeof(line) - length,
                                           address->family == AF_INET6 ? "%s[%s]" : "%s%s",
                                           found ? "," : "", net_address_text(address, text));
                found = true;
        }
        if (found)
                e->resolve = curl_slist_append(NULL, line);
        return e->resolve != NULL;
}

static void transfer_on_addresses(void *data, const NameResult *result) {
        Exchange *e = data;
        const char *why = NULL;

        if (transfer_add_addresses(e, e->route->host, e->route->port, result, &why))
                return transfer_go(e);
        if (why)
                verdict_set(&e->verdict, 502, "%s resolves to %s, which no rule allows",
                            e->route->host, why);
        else
                verdict_set(&e->verdict, 502, "%s cannot be resolved", e->route->host);
        e->done = true;
        exchange_resume(e);
}

static void transfer_on_proxy(void *data, const NameResult *result) {
        Exchange *e = data;
        const NetUpstream *proxy = e->gateway->proxy;
        const char *ignored;

        if (transfer_add_addresses(e, proxy->name, proxy->port, result, &ignored))
                return transfer_go(e);
        verdict_set(&e->verdict, 502, "the proxy outside (network.upstream) cannot be resolved");
        e->done = true;
        exchange_resume(e);
}

void transfer_start(Exchange *e) {
        const NetUpstream *proxy = e->gateway->proxy;

        if (proxy && proxy->address.family == 0)
                names_resolve_host(e->gateway->names, proxy->name, transfer_on_proxy, e);
        else if (proxy || e->route->address.family)
                transfer_go(e);
        else
                names_resolve(e->gateway->names, e->route->number, transfer_on_addresses, e);
}

/* --- libcurl in the loop --- */

static uint32_t transfer_events(int what) {
        return (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
}

typedef struct TransferSocket {
        Gateway *gateway;
        LoopWatch *watch;
        int fd;
} TransferSocket;

static void transfers_act(Gateway *gateway, int fd, int events) {
        int ignored;

        /* libcurl reads one record of TLS at a time. Passing on several at once saves most turns of
         * libmicrohttpd. */
        for (int i = 0; i < READS_MAX; i++) {
                const uint64_t before = gateway->received;

                (void)curl_multi_socket_action(gateway->multi, fd, events, &ignored);
                if (gateway->received == before)
                        break;
        }
        transfers_collect(gateway);
        server_turn(gateway);
}

static void transfers_on_event(void *data, uint32_t events) {
        const TransferSocket *socket = data;

        transfers_act(socket->gateway, socket->fd,
                      (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                              (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                              (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
}

static int transfers_on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *own) {
        Gateway *gateway = data;
        TransferSocket *socket = own;

        (void)easy;
        if (what == CURL_POLL_REMOVE) {
                if (socket)
                        (void)loop_unwatch(socket->watch);
                free(socket);
                return 0;
        }
        if (socket) {
                loop_watch_set(socket->watch, transfer_events(what));
                return 0;
        }
        socket = calloc(1, sizeof(*socket));
        if (!socket)
                return -1;
        *socket = (TransferSocket){ .gateway = gateway, .fd = fd };
        if (loop_watch(gateway->loop, fd, transfer_events(what), transfers_on_event, socket,
                       &socket->watch, NULL) < 0) {
                free(socket);
                return -1;
        }
        (void)curl_multi_assign(gateway->multi, fd, socket);
        return 0;
}

static void transfers_on_time(void *data) {
        transfers_act(data, CURL_SOCKET_TIMEOUT, 0);
}

static int transfers_on_timer(CURLM *multi, long ms, void *data) {
        const Gateway *gateway = data;

        (void)multi;
        /* A timer in some years stands for none. */
        loop_timer_set(gateway->multi_timer,
                       ms < 0 ? UINT64_MAX / 2 : time_now_usec() + (uint64_t)ms * 1000);
        return 0;
}

int transfers_new(Gateway *gateway, Error *reterr) {
        int r = loop_timer_new(gateway->loop, transfers_on_time, gateway, &gateway->multi_timer,
                               reterr);

        if (r < 0)
                return r;
        if (curl_global_init(CURL_GLOBAL_SSL) != CURLE_OK || !(gateway->multi = curl_multi_init()))
                return error_oom(reterr);
        (void)curl_multi_setopt(gateway->multi, CURLMOPT_SOCKETFUNCTION, transfers_on_socket);
        (void)curl_multi_setopt(gateway->multi, CURLMOPT_SOCKETDATA, gateway);
        (void)curl_multi_setopt(gateway->multi, CURLMOPT_TIMERFUNCTION, transfers_on_timer);
        (void)curl_multi_setopt(gateway->multi, CURLMOPT_TIMERDATA, gateway);
        (void)curl_multi_setopt(gateway->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
        return 0;
}
