/* SPDX-License-Identifier: Apache-2.0 */
/* The start of holt-gateway, in stages: settings, the second process, certificates, the sandbox's
 * socket, confinement, service. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own-limits.h"
#include "base/pass-fds.h"
#include "base/strings.h"
#include "confine/confine.h"
#include "gateway/authority.h"
#include "gateway/commands.h"
#include "gateway/fetcher.h"
#include "gateway/gateway.h"
#include "gateway/secrets.h"
#include "gateway/server.h"
#include "gateway/settings.h"
#include "gateway/transfer.h"
#include "gateway/tunnel.h"
#include "network/gateway-protocol.h"
#include "wire/socket-address.h"

enum { NOBODY = 65534 };

/* --- the host's files --- */

/* The certificates that the host trusts: the caller's own choice first, as OpenSSL does it. */
static const char *const certificate_files[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora */
        "/etc/ssl/cert.pem",
};

static int certificates_read(Gateway *gateway, const char *path, Error *reterr) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
                return 0;
        gateway->certificates = malloc((size_t)st.st_size);
        if (!gateway->certificates)
                return error_oom(reterr);
        n = read(fd, gateway->certificates, (size_t)st.st_size);
        gateway->certificates_length = n > 0 ? (size_t)n : 0;
        return 0;
}

static int gateway_read_certificates(Gateway *gateway, Error *reterr) {
        const char *own = getenv("SSL_CERT_FILE");
        int r = own ? certificates_read(gateway, own, reterr) : 0;

        for (size_t i = 0; r == 0 && !gateway->certificates && i < ELEMENTSOF(certificate_files);
             i++)
                r = certificates_read(gateway, certificate_files[i], reterr);
        return r;
}

static int gateway_number_names(Gateway *gateway, Error *reterr) {
        int r = names_new(gateway->loop, &gateway->names, reterr);

        for (size_t i = 0; r == 0 && i < gateway->routes_count; i++) {
                Route *route = &gateway->routes[i];
                const int number = route->address.family ? 0
                                                         : names_add(gateway->names, route->host);

                if (number < 0)
                        return error_oom(reterr);
                route->number = (unsigned)number;
        }
        return r;
}

/* --- stages --- */

static int gateway_fork_fetcher(Gateway *gateway, Error *reterr) {
        int r = fetcher_fork(&gateway->fetch_fd);

        return r < 0 ? error_set(reterr, ERROR_SETUP, -r, "cannot fork") : 0;
}

static int gateway_make_loop(Gateway *gateway, Error *reterr) {
        open_files_raise();
        return loop_new(&gateway->loop, reterr);
}

/* Receives a listening socket from the child of the launch. */
static int gateway_receive_socket(int *ret, Error *reterr) {
        char byte;

        if (receive_with_fd(GATEWAY_SETUP_FD, &byte, 1, ret, 0) != 1 || *ret < 0)
                return error_set(reterr, ERROR_SETUP, 0, "the sandbox did not start");
        socket_set_local(*ret);
        return fcntl(*ret, F_SETFL, O_NONBLOCK) < 0
                       ? error_set(reterr, ERROR_SETUP, errno, "cannot use the sandbox's socket")
                       : 0;
}

static int gateway_receive(Gateway *gateway, Error *reterr) {
        int r = gateway_receive_socket(&gateway->listen_fds[LISTENER_URL], reterr);

        if (r == 0 && gateway->terminates)
                r = gateway_receive_socket(&gateway->listen_fds[LISTENER_TLS], reterr);
        (void)close(GATEWAY_SETUP_FD);
        return r;
}

/* Credentials of the environment stay only in the routes, not where /proc shows them. */
static int gateway_forget_environment(Gateway *gateway, Error *reterr) {
        (void)gateway;
        (void)reterr;
        for (char **item = environ; item && *item; item++)
                explicit_bzero(*item, strlen(*item));
        environ = NULL;
        return 0;
}

/* holt does not stay root. In a user namespace, the id may not exist; then root has no rights
 * outside. */
static int gateway_leave_root(Gateway *gateway, Error *reterr) {
        (void)gateway;
        if (geteuid() != 0)
                return 0;
        if (setgroups(0, NULL) < 0 && errno != EPERM)
                return error_set(reterr, ERROR_SETUP, errno, "cannot leave root's groups");
        if (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
                return errno == EINVAL || errno == EPERM
                               ? 0
                               : error_set(reterr, ERROR_SETUP, errno, "cannot leave root");
        return 0;
}

static int gateway_confine(Gateway *gateway, Error *reterr) {
        (void)gateway;
        return confine_gateway(reterr);
}

/* If the event is lost, holt does not wait for the last events at the end. */
static int gateway_tell_ready(Gateway *gateway, Error *reterr) {
        const GatewayEvent event = { .type = GATEWAY_READY };

        (void)reterr;
        (void)send(gateway->control_fd, &event, sizeof(event), MSG_NOSIGNAL | MSG_DONTWAIT);
        return 0;
}

static int (*const stages[])(Gateway *gateway, Error *reterr) = {
        gateway_settings_read, gateway_fork_fetcher, gateway_make_loop,
        gateway_number_names,  transfers_new,        gateway_read_certificates,
        authority_make,        gateway_receive,      server_new,
        secrets_watch,         commands_watch,       gateway_forget_environment,
        gateway_leave_root,    gateway_confine,      gateway_tell_ready,
};

static void gateway_ignore_signals(void) {
        static const int signals[] = { SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGPIPE, SIGTSTP };

        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void)signal(signals[i], SIG_IGN);
}

int main(void) {
        static Gateway gateway = { .control_fd = GATEWAY_CONTROL_FD,
                                   .listen_fds = { FD_NONE, FD_NONE },
                                   .fetch_fd = FD_NONE };
        Error error;

        if (fcntl(GATEWAY_CONTROL_FD, F_SETFD, FD_CLOEXEC) < 0 ||
            fcntl(GATEWAY_SETUP_FD, F_SETFD, FD_CLOEXEC) < 0) {
                fprintf(stderr,
                        "holt-gateway: holt itself starts this program: use holt run --route\n");
                return 125;
        }
        (void)prctl(PR_SET_DUMPABLE, 0);
        gateway_ignore_signals();
        closefrom(GATEWAY_SETUP_FD + 1);
        if (chdir("/") < 0 || RUN_STEPS(stages, &gateway, &error) < 0)
                return 1;
        return loop_run(gateway.loop) < 0;
}
