/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives file descriptors with messages (SCM_RIGHTS, unix(7)). The child between clone
 * and exec uses it too, so it calls no library. */
#pragma once

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"

enum { PASS_FDS_MAX = 4 };

/* Memory of the control message; it must last until sendmsg(2). */
typedef union PassedFds {
        struct cmsghdr header;
        char room[CMSG_SPACE(PASS_FDS_MAX * sizeof(int))];
} PassedFds;

/* The fds stay the caller's. count is at most PASS_FDS_MAX; with 0, the message stays as it is. */
static inline void pass_fds(struct msghdr *message, PassedFds *memory, const int *fds,
                            size_t count) {
        assert(count <= PASS_FDS_MAX);
        if (count == 0)
                return;
        *memory = (PassedFds){ .room = { 0 } };
        memory->header.cmsg_level = SOL_SOCKET;
        memory->header.cmsg_type = SCM_RIGHTS;
        memory->header.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&memory->header), fds, count * sizeof(int));
        message->msg_control = memory;
        message->msg_controllen = CMSG_SPACE(count * sizeof(int));
}

/* Sends a message with a descriptor, which stays the caller's, or with none if fd is FD_NONE.
 * Returns like sendmsg(2). */
static inline ssize_t send_with_fd(int socket, const void *data, size_t size, int fd, int flags) {
        struct iovec vector = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
        struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1 };
        PassedFds memory;

        pass_fds(&message, &memory, &fd, fd >= 0);
        return sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

/* Receives a message, and up to one descriptor: *ret_fd is FD_NONE if there was none. The kernel
 * closes further ones. CMSG_SPACE() would leave room for a second one, in its padding. Returns like
 * recvmsg(2). */
static inline ssize_t receive_with_fd(int socket, void *data, size_t size, int *ret_fd, int flags) {
        struct iovec vector = { .iov_base = data, .iov_len = size };
        PassedFds memory = { .room = { 0 } };
        struct msghdr message = { .msg_iov = &vector,
                                  .msg_iovlen = 1,
                                  .msg_control = &memory,
                                  .msg_controllen = CMSG_LEN(sizeof(int)) };
        ssize_t n = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);

        *ret_fd = FD_NONE;
        if (n >= 0 && message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
            memory.header.cmsg_type == SCM_RIGHTS)
                memcpy(ret_fd, CMSG_DATA(&memory.header), sizeof(int));
        return n;
}
