/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the process at the other end of a socket is in this user namespace.
 *
 * Theory of operation. A sandbox runs under the caller's own uid, so SO_PEERCRED cannot tell its
 * processes from the caller's. Their user namespaces differ. A server has two ways to compare them:
 *
 * - Looking. holt serve asks the kernel for the peer's namespace: by a pidfd (SO_PEERPIDFD,
 *   Linux 6.5), or else by its pid and /proc. Clients need no code for this.
 * - Proof. A keeper cannot look at other processes, because Landlock forbids it. Under root, its
 *   uid also differs from that of its clients. Therefore a client sends a descriptor of its own
 *   user namespace, and the keeper compares that with its own. A process can open
 *   descriptors of its own namespace and of those below it, never of one above (ioctl_ns(2)). So no
 *   process in a sandbox can send the one that a keeper expects. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* A user namespace. While a process in it runs, no other namespace gets the same numbers. */
typedef struct PeerNamespace {
        dev_t device;
        ino_t inode;
} PeerNamespace;

/* Returns the namespace of this process. A negative errno if /proc cannot be read. */
int peer_own(PeerNamespace *ret, Error *reterr);

/* Checks, without the peer's help, that the peer of fd, a connected unix socket, runs under uid or
 * as root, and is in namespace own. 0, -EACCES if it is not, or -ESRCH if it has ended. */
int peer_look(int fd, uid_t uid, const PeerNamespace *own, Error *reterr);

/* Checks only the uid. */
int peer_check_uid(int fd, uid_t uid, Error *reterr);

/* For a client, before the proof: checks that a keeper listens on fd, a connected socket. A command
 * in a sandbox could listen there, and use the proof itself.
 *
 * The listening process must have this process's effective uid, except under root. It must be in
 * this user namespace. A keeper's user namespace cannot be read, so for a keeper the same pid
 * namespace suffices, because every sandbox has another one.
 *
 * -EACCES if the check fails; -ECONNREFUSED, without an error, if the process has ended. If /proc
 * hides other processes (hidepid), only the uid is compared. */
int peer_check_server(int fd, Error *reterr);

/* For a client: sends the proof, which is an empty line with a descriptor and comes first on fd.
 * 0 or a negative errno of sendmsg(2). -EPIPE and -ECONNRESET set no error: the server has ended.
 */
int peer_prove(int fd, Error *reterr);

/* For a keeper: whether proof_fd, which the caller keeps, is a descriptor of namespace own. */
bool peer_has_proved(int proof_fd, const PeerNamespace *own);
/* Sets the error for a peer without a proof. Returns -EACCES. */
int peer_refuse(Error *reterr);
