/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "egress/egress.h"
#include "wire/socket-address.h"

/* The spare only keeps a descriptor number free, so it may be a copy of any descriptor. */
static int accept_spare(const Egress *egress) {
        return fcntl(egress->control_fd, F_DUPFD_CLOEXEC, 0);
}

int egress_accept_prepare(Egress *egress, Error *reterr) {
        egress->spare_fd = accept_spare(egress);
        return egress->spare_fd < 0 ? error_set(reterr, ERROR_SETUP, errno, "cannot copy a socket")
                                    : 0;
}

/* Closes the spare descriptor, so that the next connection can be accepted, and resets it. */
static void accept_and_refuse(Egress *egress, int listener_fd) {
        const struct linger reset = { .l_onoff = 1 };
        int fd;

        egress->spare_fd = fd_close(egress->spare_fd);
        fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
                (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
                egress_deny(egress, EGRESS_BUSY, NULL, NULL, 0, NULL);
        }
        fd_close(fd);
        egress->spare_fd = accept_spare(egress);
}

int egress_accept(Egress *egress, int listener_fd, NetAddress *ret_peer, uint16_t *ret_port) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof(peer);
        int fd = accept4(listener_fd, ret_peer ? (struct sockaddr *)&peer : NULL,
                         ret_peer ? &length : NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0 && ret_peer)
                socket_address_get(&peer, ret_peer, ret_port);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
                accept_and_refuse(egress, listener_fd);
        return fd;
}
