/* SPDX-License-Identifier: Apache-2.0 */
/* The start of holt-links, in stages: settings, the loop, confinement, sockets. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "confine/confine.h"
#include "links/server.h"

static int links_read_settings(Server *server, Error *reterr) {
        const ssize_t n = recv(server->control_fd, &server->settings, sizeof(server->settings), 0);

        return n == (ssize_t)sizeof(server->settings)
                       ? 0
                       : error_set(reterr, ERROR_SETUP, n < 0 ? errno : EBADMSG,
                                   "cannot read the settings");
}

static int links_make_loop(Server *server, Error *reterr) {
        return loop_new(&server->loop, reterr);
}

static int links_confine(Server *server, Error *reterr) {
        (void)server;
        return confine_links(reterr);
}

static int (*const stages[])(Server *server, Error *reterr) = {
        links_read_settings,
        links_make_loop,
        links_confine,
        server_watch,
};

int main(void) {
        static Server server = { .control_fd = LINKS_CONTROL_FD, .listen_fd = LINKS_LISTEN_FD };
        Error error;

        (void)prctl(PR_SET_DUMPABLE, 0);
        (void)prctl(PR_SET_NAME, "holt-links"); /* Otherwise it is the number of a descriptor. */
        if (fcntl(LINKS_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0 ||
            fcntl(LINKS_LISTEN_FD, F_SETFD, FD_CLOEXEC) < 0) {
                fprintf(stderr, "holt-links: holt itself starts this program: use holt link\n");
                return 125;
        }
        (void)signal(SIGPIPE, SIG_IGN);
        if (RUN_STEPS(stages, &server, &error) < 0)
                return 1;
        return loop_run(server.loop) < 0;
}
