/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pass-fds.h"
#include "base/strings.h"
#include "base/sys.h"

#define OWN_NAMESPACE "/proc/self/ns/user"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* _IO(PIDFS_IOCTL_MAGIC, 9) of linux/pidfd.h: PIDFD_GET_USER_NAMESPACE, Linux 6.11. */
#define GET_USER_NAMESPACE 0xff09

int peer_own(PeerNamespace *ret, Error *reterr) {
        struct stat st;
        int r;

        if (stat(OWN_NAMESPACE, &st) == 0) {
                *ret = (PeerNamespace){ st.st_dev, st.st_ino };
                return 0;
        }
        r = error_set(reterr, ERROR_SETUP, errno, "cannot read " OWN_NAMESPACE);
        return error_cure(reterr, r,
                          "Mount /proc. holt needs it to tell its clients from the commands of a "
                          "sandbox.");
}

static bool is_same(const struct stat *st, const PeerNamespace *own) {
        return st->st_dev == own->device && st->st_ino == own->inode;
}

int peer_refuse(Error *reterr) {
        (void)error_set(reterr, ERROR_USAGE, EACCES,
                        "a client in another user namespace is not served");
        return error_cure(
                reterr, -EACCES,
                "Sandboxes, containers and unshare --user have their own user namespaces. "
                "Connect from the one in which the server was started.");
}

/* --- looking --- */

typedef struct Peer {
        struct ucred credentials;
        int pidfd;
} Peer;

static int refuse_gone(Error *reterr) {
        return error_set(reterr, ERROR_USAGE, ESRCH, "the process that connected has ended");
}

/* Root's processes are served, even though this server may not look at them: no sandbox of this
 * server's user runs under root's uid. */
static bool is_root_above(const Peer *peer, uid_t uid) {
        return peer->credentials.uid == 0 && uid != 0;
}

static int refuse_unseen(const Peer *peer, uid_t uid, int errnum, Error *reterr) {
        int r;

        if (is_root_above(peer, uid) && (errnum == EACCES || errnum == EPERM))
                return 0;
        r = error_set(reterr, ERROR_USAGE, errnum,
                      "cannot read the user namespace of process %d, so it is not served",
                      peer->credentials.pid);
        return error_cure(reterr, r,
                          "The client's process must be dumpable (PR_SET_DUMPABLE), and in the "
                          "server's pid namespace or below it.");
}

/* Kernels before 6.5 give no pidfd of the peer. When this process opens one by the pid, the pid may
 * already belong to another process. */
static int open_peer(int fd, Peer *ret, Error *reterr) {
        socklen_t length = sizeof(ret->credentials), pidfd_length = sizeof(ret->pidfd);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ret->credentials, &length) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot identify the client");
        if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &ret->pidfd, &pidfd_length) == 0)
                return 0;
        ret->pidfd = FD_NONE;
        if (errno == ENOPROTOOPT && ret->credentials.pid > 0) {
                ret->pidfd = sys_pidfd_open(ret->credentials.pid);
                return 0;
        }
        return errno == ENOPROTOOPT ? 0 : refuse_gone(reterr);
}

static int check_uid(const struct ucred *peer, uid_t uid, Error *reterr) {
        if (peer->uid == uid || peer->uid == 0)
                return 0;
        return error_set(reterr, ERROR_USAGE, EACCES,
                         "this server does not serve uid %u, only uid %u", peer->uid, uid);
}

int peer_check_uid(int fd, uid_t uid, Error *reterr) {
        struct ucred peer;
        socklen_t length = sizeof(peer);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot identify the client");
        return check_uid(&peer, uid, reterr);
}

static int stat_by_pidfd(int pidfd, struct stat *ret) {
        _cleanup_close_ int fd = ioctl(pidfd, GET_USER_NAMESPACE, 0);

        return fd < 0 || fstat(fd, ret) < 0 ? -errno : 0;
}

/* The pid belongs to the peer as long as the peer has not been reaped, which the pidfd shows. */
static int stat_by_pid(const Peer *peer, struct stat *ret) {
        char path[64];
        int r;

        if (peer->credentials.pid <= 0)
                return -EACCES;
        (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", peer->credentials.pid);
        r = stat(path, ret) < 0 ? -errno : 0;
        if (peer->pidfd < 0 || (sys_pidfd_send_signal(peer->pidfd, 0) < 0 && errno == ESRCH))
                return -ESRCH;
        return r;
}

static int peer_look_at(const Peer *peer, uid_t uid, const PeerNamespace *own, Error *reterr) {
        struct stat st = { 0 };
        int r = peer->pidfd < 0 ? -ENOTTY : stat_by_pidfd(peer->pidfd, &st);

        /* A kernel before pidfs fails with ENOTTY or EINVAL. A seccomp filter, such as the one in
         * holt's own sandboxes, fails with EPERM. */
        if (r == -ENOTTY || r == -EINVAL || r == -EPERM)
                r = stat_by_pid(peer, &st);
        if (r == -ESRCH || r == -ENOENT)
                return refuse_gone(reterr);
        if (r < 0)
                return refuse_unseen(peer, uid, -r, reterr);
        return is_same(&st, own) ? 0 : peer_refuse(reterr);
}

int peer_look(int fd, uid_t uid, const PeerNamespace *own, Error *reterr) {
        Peer peer = { .pidfd = FD_NONE };
        int r = open_peer(fd, &peer, reterr);

        if (r == 0)
                r = check_uid(&peer.credentials, uid, reterr);
        if (r == 0)
                r = peer_look_at(&peer, uid, own, reterr);
        (void)fd_close(peer.pidfd);
        return r;
}

/* --- a server --- */

static int refuse_server(const char *why, Error *reterr) {
        (void)error_set(reterr, ERROR_SETUP, EACCES, "the session's socket is not its keeper's: %s",
                        why);
        return error_cure(reterr, -EACCES,
                          "A command in a sandbox may have put it there. Find the process that "
                          "listens (ss -xlp), then remove keeper.sock in the session's directory.");
}

/* Counts the pid namespaces of a process, from this process's own downwards. /proc/PID/status,
 * which everybody may read, has a number for each behind "NSpid:". -ENOENT if the process has ended
 * or is hidden. */
static int count_pid_namespaces(pid_t pid) {
        static const char key[] = "NSpid:";
        _cleanup_free_ char *line = NULL;
        int count = -ENOENT;
        size_t size = 0;
        char path[64];
        FILE *file;

        (void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
        file = fopen(path, "re");
        if (!file)
                return -ENOENT;
        /* Lines have no fixed limit: "Groups:" may list thousands. */
        while (count < 0 && getline(&line, &size, file) >= 0)
                if (str_starts(line, key)) {
                        count = 0;
                        for (const char *c = line + strlen(key); *c; c++)
                                count += *c == '\t';
                }
        (void)fclose(file);
        return count;
}

/* A keeper is not dumpable, so only root can read its user namespace. */
static int look_at_server(const Peer *peer, const PeerNamespace *own, Error *reterr) {
        struct stat st = { 0 };
        int r = peer->pidfd < 0 ? -ENOTTY : stat_by_pidfd(peer->pidfd, &st);

        if (r == -ENOTTY || r == -EINVAL || r == -EPERM)
                r = stat_by_pid(peer, &st);
        if (r == 0 && !is_same(&st, own))
                return refuse_server("it belongs to another user namespace", reterr);
        if (r == -ESRCH)
                return -ECONNREFUSED;
        if (r < 0 && count_pid_namespaces(peer->credentials.pid) > 1)
                return refuse_server("it belongs to another pid namespace", reterr);
        return 0;
}

int peer_check_server(int fd, Error *reterr) {
        Peer peer = { .pidfd = FD_NONE };
        PeerNamespace own;
        int r = peer_own(&own, reterr);

        if (r < 0)
                return r;
        r = open_peer(fd, &peer, reterr);
        if (r == -ESRCH)
                r = -ECONNREFUSED;
        /* A keeper that root has started runs under a uid of its session. */
        else if (r == 0 && geteuid() != 0 && peer.credentials.uid != geteuid())
                r = refuse_server("it belongs to another user", reterr);
        else if (r == 0 && peer.credentials.pid <= 0)
                r = refuse_server("it belongs to a pid namespace that cannot be seen here", reterr);
        else if (r == 0)
                r = look_at_server(&peer, &own, reterr);
        (void)fd_close(peer.pidfd);
        return r;
}

/* --- proof --- */

int peer_prove(int fd, Error *reterr) {
        _cleanup_close_ int proof_fd = open(OWN_NAMESPACE, O_RDONLY | O_CLOEXEC);
        struct iovec line = { (char[]){ '\n' }, 1 };
        struct msghdr message = { .msg_iov = &line, .msg_iovlen = 1 };
        PassedFds passed;

        if (proof_fd < 0)
                return error_set(reterr, ERROR_SETUP, errno, "cannot open " OWN_NAMESPACE);
        pass_fds(&message, &passed, &proof_fd, 1);
        if (sendmsg(fd, &message, MSG_NOSIGNAL) == 1)
                return 0;
        if (errno == EPIPE || errno == ECONNRESET)
                return -errno;
        return error_set(reterr, ERROR_SETUP, errno, "cannot send to the session's keeper");
}

bool peer_has_proved(int proof_fd, const PeerNamespace *own) {
        struct stat st;

        return proof_fd >= 0 && fstat(proof_fd, &st) == 0 && is_same(&st, own);
}
