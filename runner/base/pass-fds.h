/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches file descriptors to a message (SCM_RIGHTS, unix(7)). The child between clone and exec
 * uses it too, so it calls no library. */
#pragma once

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

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
