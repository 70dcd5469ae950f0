/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/tunnel-inside.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/client.h"

/* --- the start --- */

static int inside_add(Buffer *buffer, const char *text) {
        return pipe_buffer_add(buffer, text, strlen(text));
}

static int inside_write_head(const Exchange *e, Buffer *ret) {
        int r = inside_add(ret, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                "Upgrade: websocket\r\n");

        for (size_t i = 0; r == 0 && i < e->answer.count; i++) {
                r = inside_add(ret, e->answer.items[i]);
                if (r == 0)
                        r = inside_add(ret, "\r\n");
        }
        return r == 0 ? inside_add(ret, "\r\n") : r;
}

int tunnel_inside_take(Exchange *e, TunnelInside *inside) {
        const union MHD_ConnectionInfo *session = MHD_get_connection_info(
                e->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        const union MHD_ConnectionInfo *socket;
        Buffer head = { 0 };
        int r = session ? inside_write_head(e, &head) : -EIO;

        if (r == 0 && e->down.length > 0)
                r = pipe_buffer_add(&head, e->down.data + e->down.start, e->down.length);
        if (r < 0) {
                buffer_clear(&head);
                return r;
        }
        buffer_clear(&e->down);
        e->down = head;
        inside->session = session->tls_session;
        socket = MHD_get_connection_info(e->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        inside->fd = socket->connect_fd;
        client_unwatch(e->connection);
        return 0;
}

/* --- bytes --- */

/* Returns the result of a call of GnuTLS as tunnel_inside_receive() does. Many programs end without
 * telling that by TLS. The frames of a WebSocket have lengths, so nothing can be cut off unnoticed.
 */
static ssize_t inside_result(ssize_t n) {
        if (n >= 0)
                return n;
        if (n == GNUTLS_E_PREMATURE_TERMINATION)
                return 0;
        return gnutls_error_is_fatal((int)n) ? -ECONNRESET : -EAGAIN;
}

ssize_t tunnel_inside_receive(const TunnelInside *inside, char *ret, size_t most) {
        ssize_t n;

        if (inside->session)
                return inside_result(gnutls_record_recv(inside->session, ret, most));
        n = recv(inside->fd, ret, most, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

ssize_t tunnel_inside_send(const TunnelInside *inside, const char *bytes, size_t length) {
        ssize_t n;

        if (inside->session)
                return inside_result(gnutls_record_send(inside->session, bytes, length));
        n = send(inside->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        return n < 0 ? -errno : n;
}

void tunnel_inside_shut(const TunnelInside *inside) {
        if (inside->session)
                (void)gnutls_bye(inside->session, GNUTLS_SHUT_WR);
        (void)shutdown(inside->fd, SHUT_WR);
}
