/* SPDX-License-Identifier: Apache-2.0 */
#include "links/start.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/sys.h"

/* holt-links as it was built, from links-blob.S. */
extern const char holt_links_start[], holt_links_end[];

enum { BACKLOG = 128, HIGH_FD = 16 };

/* --- the program --- */

/* Landlock lets a confined process execute a memory file, because no path leads to it. The seals
 * keep it as it is. vm.memfd_noexec (Linux 6.3) requires MFD_EXEC; older kernels do not know it. */
static int links_make_program(int *ret, Error *reterr) {
        const size_t size = (size_t)(holt_links_end - holt_links_start);
        _cleanup_close_ int fd = sys_memfd_create("holt-links",
                                                  MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

        if (size == 0) {
                int r = error_set(reterr, ERROR_SETUP, ENOSYS,
                                  "this build of holt cannot serve links");
                return error_cure(reterr, r, "Build holt where a static libc is installed.");
        }
        if (fd < 0 && errno == EINVAL)
                fd = sys_memfd_create("holt-links", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0 || sys_write_all(fd, holt_links_start, size) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a memory file");
        *ret = TAKE_FD(fd);
        return 0;
}

/* --- the sockets --- */

static int links_listen(uint16_t *ret_port, int *ret, Error *reterr) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);
        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(fd, BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&address, &length) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot listen on 127.0.0.1");
        *ret_port = ntohs(address.sin_port);
        *ret = TAKE_FD(fd);
        return 0;
}

/* Moves a descriptor to a number that the child does not overwrite. */
static int links_move_up(int *fd) {
        int moved = fcntl(*fd, F_DUPFD_CLOEXEC, HIGH_FD);

        if (moved < 0)
                return -errno;
        (void)fd_close(*fd);
        *fd = moved;
        return 0;
}

/* --- the process --- */

static int links_set_signals(posix_spawnattr_t *attributes) {
        sigset_t none, all;

        (void)sigemptyset(&none);
        (void)sigfillset(&all);
        (void)posix_spawnattr_setsigmask(attributes, &none);
        (void)posix_spawnattr_setsigdefault(attributes, &all);
        return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* The keeper's own streams are /dev/null. Its other descriptors close by themselves. */
static int links_spawn(int program_fd, int control_fd, int listen_fd, pid_t *ret) {
        static char name[] = "holt-links";
        char *argv[] = { name, NULL }, *env[] = { NULL }, path[32];
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r = posix_spawn_file_actions_init(&actions);

        if (r)
                return -r;
        (void)posix_spawnattr_init(&attributes);
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", program_fd);
        r = posix_spawn_file_actions_adddup2(&actions, control_fd, LINKS_CONTROL_FD);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, listen_fd, LINKS_LISTEN_FD);
        if (r == 0)
                r = links_set_signals(&attributes);
        if (r == 0)
                r = posix_spawn(ret, path, &actions, &attributes, argv, env);
        (void)posix_spawn_file_actions_destroy(&actions);
        (void)posix_spawnattr_destroy(&attributes);
        return -r;
}

static int links_run(LinksProcess *links, int listen_fd, int program_fd, Error *reterr) {
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a socket pair");
        r = links_move_up(&pair[0]);
        if (r == 0)
                r = links_move_up(&pair[1]);
        if (r == 0)
                r = links_spawn(program_fd, pair[1], listen_fd, &links->pid);
        if (r == 0 && send(pair[0], &links->settings, sizeof(links->settings), MSG_NOSIGNAL) < 0)
                r = -errno;
        (void)fd_close(pair[1]);
        links->control_fd = pair[0];
        if (r == 0)
                return 0;
        links_stop(links);
        return error_set(reterr, ERROR_SETUP, -r, "cannot start holt-links");
}

int links_start(const char *session, LinksProcess *ret, Error *reterr) {
        _cleanup_close_ int listen_fd = FD_NONE, program_fd = FD_NONE;
        LinksProcess links = LINKS_NONE;
        LinkKey *key = &links.settings.key;
        int r;

        (void)snprintf(key->session, sizeof(key->session), "%s", session);
        if (getrandom(key->bytes, sizeof(key->bytes), 0) != (ssize_t)sizeof(key->bytes))
                return error_set(reterr, ERROR_SETUP, errno, "cannot make a key");
        r = links_listen(&links.settings.port, &listen_fd, reterr);
        if (r == 0)
                r = links_make_program(&program_fd, reterr);
        if (r < 0)
                return r;
        if (links_move_up(&listen_fd) < 0 || links_move_up(&program_fd) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot start holt-links");
        r = links_run(&links, listen_fd, program_fd, reterr);
        if (r == 0)
                *ret = links;
        explicit_bzero(&links.settings, sizeof(links.settings));
        return r;
}

void links_stop(LinksProcess *links) {
        links->control_fd = fd_close(links->control_fd);
        if (links->pid > 0) {
                (void)kill(links->pid, SIGKILL);
                while (waitpid(links->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        explicit_bzero(&links->settings, sizeof(links->settings));
        *links = (LinksProcess)LINKS_NONE;
}
