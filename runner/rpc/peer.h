/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a socket: a process of this user namespace, or a stranger.
 *
 * Theory of operation. A sandbox is the caller's own uid, so SO_PEERCRED can't tell its processes
 * from the caller's. Its user namespace can, and there are two ways to learn it:
 *
 * - Looking. holt serve asks the kernel for the peer's namespace: by a pidfd (SO_PEERPIDFD,
 *   Linux 6.5), or else by its pid and /proc. No client has to know of that.
 * - Proof. A keeper is confined by Landlock, which lets it look at no other process, and run by
 *   root it is another uid than its clients. So a client sends a descriptor of its own user
 *   namespace, and the keeper compares it with that of its own. A process gets one of its own
 *   namespace and of those below it, and never one of the namespace above (ioctl_ns(2)): nobody in
 *   a sandbox has what a keeper asks for. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* A user namespace. It is alive as long as a process in it is, so its number is nobody else's. */
typedef struct PeerNamespace {
        dev_t device;
        ino_t inode;
} PeerNamespace;

/* That of this process. 0, or a negative errno where /proc can't be read. */
int peer_own(PeerNamespace *ret, Error *reterr);

/* Refuses the peer of the connected unix socket fd unless it is uid, or root, and looking shows
 * that it is in namespace own. -EACCES, or -ESRCH for a peer that has gone. */
int peer_look(int fd, uid_t uid, const PeerNamespace *own, Error *reterr);

/* The uid alone. */
int peer_check_uid(int fd, uid_t uid, Error *reterr);

/* As a client, before the proof: whether the connected socket fd is a keeper's, and no sandbox's
 * that would take the proof for itself. The one that listens must have the effective uid, unless
 * that is root's, and be in the user namespace of this process. A keeper does not let itself be
 * looked at, so it need only be in the same pid namespace, which no sandbox is in.
 *
 * -ECONNREFUSED without an error if it has ended, or -EACCES. Where /proc hides other processes
 * (hidepid) only the uid is compared. */
int peer_check_server(int fd, Error *reterr);

/* As a client: sends the proof, an empty line, as the first thing on fd. 0 or a negative errno of
 * sendmsg(2), without an error where the server has gone (-EPIPE, -ECONNRESET). */
int peer_prove(int fd, Error *reterr);

/* As a keeper: whether proof_fd, which stays the caller's, is a descriptor of namespace own. */
bool peer_has_proved(int proof_fd, const PeerNamespace *own);
/* The error for a peer that has sent none. Returns -EACCES. */
int peer_refuse(Error *reterr);
