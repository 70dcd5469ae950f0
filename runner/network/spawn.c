/* SPDX-License-Identifier: Apache-2.0 */
#include "network/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>

#include "base/paths.h"
#include "base/util.h"

enum { FIRST_FD = 3, HIGH_FD = 16 };

/* Moves a socket to a high number, because the child's descriptors 0 to 4 are overwritten. */
static int spawn_move_up(int *fd) {
        int moved = fcntl(*fd, F_DUPFD_CLOEXEC, HIGH_FD);

        if (moved < 0)
                return -errno;
        fd_close(*fd);
        *fd = moved;
        return 0;
}

int spawn_socketpair(int ret[2], int room) {
        int r = 0;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
                return -errno;
        for (int i = 0; r == 0 && i < 2; i++) {
                if (room)
                        (void)setsockopt(ret[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
                r = spawn_move_up(&ret[i]);
        }
        return r;
}

static int spawn_at(const char *path, const SpawnProgram *program, pid_t *ret) {
        posix_spawn_file_actions_t actions;
        int r;

        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        r = posix_spawn_file_actions_adddup2(&actions, program->fds[0], FIRST_FD);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, program->fds[1], FIRST_FD + 1);
        for (int fd = 0; r == 0 && fd <= 2; fd++)
                r = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
        if (r == 0)
                r = posix_spawn(ret, path, &actions, NULL, program->argv, program->env);
        (void)posix_spawn_file_actions_destroy(&actions);
        return -r;
}

int spawn_beside(const SpawnProgram *program, pid_t *ret) {
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        int r = -ENOENT;
        char *slash;

        self[n < 0 ? 0 : n] = '\0';
        slash = strrchr(self, '/');
        if (slash)
                *slash = '\0';
        for (size_t i = 0; r == -ENOENT && i < program->paths_count; i++) {
                _cleanup_free_ char *path = path_join(slash ? self : "/", program->paths[i]);

                if (path)
                        r = spawn_at(path, program, ret);
        }
        return r;
}
