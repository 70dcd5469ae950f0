/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks a session's init and monitors from below: their memory, their descriptors, and the socket
 * on which the keeper trusts them. args[0] is a process, or "child" for one of our own. The child
 * is the control: Yama allows attacks on it, too. */
#include "hostile.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "../../helpers/session-protocol.h"

enum { FDS = 64, CALL_pidfd_open = 434 };

static int control[2];

/* Makes a child that holds one end of a socket pair, like a monitor; a keeper would listen at the
 * other end. */
static pid_t make_child(void) {
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control) < 0)
                untried("socketpair: %s", errno_name(errno));
        pid = fork();
        if (pid == 0)
                for (;;)
                        pause();
        if (dup2(control[1], SESSION_CONTROL_FD) < 0)
                untried("dup2: %s", errno_name(errno));
        return pid;
}

static pid_t target(const char *arg) {
        return strcmp(arg, "child") == 0 ? make_child() : atoi(arg);
}

static const char *proc_path(pid_t pid, const char *file) {
        static char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        return path;
}

/* Ends a control, so that nothing of it lives on. */
__attribute__((noreturn)) static void finish(const char *arg, pid_t pid, long result) {
        int errnum = errno;

        if (strcmp(arg, "child") == 0)
                (void)kill(pid, SIGKILL);
        errno = errnum;
        got(result);
}

static void trace(char **args) {
        pid_t pid = target(args[0]);

        finish(args[0], pid, ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

static void open_memory(char **args) {
        pid_t pid = target(args[0]);

        finish(args[0], pid, open(proc_path(pid, "mem"), O_RDWR | O_CLOEXEC));
}

static void write_memory(char **args) {
        pid_t pid = target(args[0]);
        static char byte = 'x';
        struct iovec from = { &byte, 1 }, to = { &byte, 1 };

        finish(args[0], pid, process_vm_writev(pid, &from, 1, &to, 1, 0));
}

static void list_fds(char **args) {
        pid_t pid = target(args[0]);
        DIR *dir = opendir(proc_path(pid, "fd"));

        finish(args[0], pid, dir ? dirfd(dir) : -1);
}

/* Tries every number: a missing descriptor gives EBADF, and a forbidden one gives EPERM before
 * that. */
static void borrow_fd(char **args) {
        pid_t pid = target(args[0]);
        int pidfd = (int)syscall(CALL_pidfd_open, pid, 0);

        for (int fd = 0; fd < FDS; fd++)
                if (syscall(CALL_pidfd_getfd, pidfd, fd, 0) >= 0)
                        finish(args[0], pid, fd);
        finish(args[0], pid, -1);
}

/* Sends "exec 1 is gone", as init does. */
static bool send_forged(int fd) {
        SessionMessage message = { .type = SESSION_GONE, .exec = 1 };

        return send(fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) > 0 ||
               write(fd, &message, sizeof(message)) > 0;
}

/* Sends the forged message through every descriptor of the process, opened again by its name, or
 * borrowed. */
static void forge(char **args) {
        pid_t pid = target(args[0]);
        int pidfd = (int)syscall(CALL_pidfd_open, pid, 0), errnum = 0;

        for (int fd = FDS - 1; fd >= 0; fd--) {
                char name[32];
                int borrowed = (int)syscall(CALL_pidfd_getfd, pidfd, fd, 0), opened;

                (void)snprintf(name, sizeof(name), "fd/%d", fd);
                opened = open(proc_path(pid, name), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                errnum = errno;
                if ((borrowed >= 0 && send_forged(borrowed)) ||
                    (opened >= 0 && send_forged(opened)))
                        finish(args[0], pid, fd);
        }
        errno = errnum;
        finish(args[0], pid, -1);
}

/* Sends the forged message through all descriptors of our own, whatever is at their other ends.
 * args: none. */
static void forge_own(char **args) {
        int sent = 0;

        (void)args;
        for (int fd = 0; fd < FDS; fd++)
                for (int i = 0; i < 16; i++)
                        sent += fd != STDOUT_FILENO && send_forged(fd);
        broken("%d messages", sent);
}

/* args[0]: the path of a socket, or "@NAME" for an abstract one. */
static void call_socket(char **args) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t length = strlen(args[0]);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (length >= sizeof(address.sun_path))
                untried("the path is too long");
        memcpy(address.sun_path, args[0], length);
        if (args[0][0] == '@')
                address.sun_path[0] = '\0';
        got(connect(fd, (struct sockaddr *)&address,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)));
}

static const Attack attacks[] = {
        { "trace", trace, 1 },
        { "open-memory", open_memory, 1 },
        { "write-memory", write_memory, 1 },
        { "list-fds", list_fds, 1 },
        { "borrow-fd", borrow_fd, 1 },
        { "forge", forge, 1 },
        { "forge-own", forge_own, 0 },
        { "call-socket", call_socket, 1 },
};

int main(int argc, char **argv) {
        return hostile_main(attacks, ELEMENTSOF(attacks), argc, argv);
}
