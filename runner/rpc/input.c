/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/input.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"

/* --- fds --- */

void rpc_fds_close(RpcFds *fds) {
        for (size_t i = 0; i < fds->count; i++)
                (void)fd_close(fds->fds[i]);
        fds->count = 0;
}

/* A recvmsg(2) that returns fds ends with bytes of the message that they were sent with. So they
 * belong to the line of the last byte. Before each read, the buffer has no whole line, so at most
 * two lines have fds. */
static RpcFds *fds_of_last_line(RpcInput *input) {
        uint64_t line = framing_last_line(&input->framing);
        RpcFds *fds = &input->fds[input->fds[0].used && input->fds[0].line != line];

        if (!fds->used)
                *fds = (RpcFds){ .line = line, .used = true };
        return fds;
}

static void take_fd(RpcFds *fds, int fd) {
        if (fds->count < RPC_FDS_MAX) {
                fds->fds[fds->count++] = fd;
        } else {
                fds->refused = true;
                (void)fd_close(fd);
        }
}

static void input_take_fds(RpcInput *input, struct msghdr *message) {
        for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head;
             head = CMSG_NXTHDR(message, head)) {
                size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < count; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(head) + i * sizeof(fd), sizeof(fd));
                        take_fd(fds_of_last_line(input), fd);
                }
        }
        /* More fds came than fit into control, or than this process may open. */
        if (message->msg_flags & MSG_CTRUNC)
                fds_of_last_line(input)->refused = true;
}

static RpcFds fds_of_line(RpcInput *input, uint64_t line) {
        RpcFds fds = { 0 };

        if (input->fds[0].used && input->fds[0].line == line) {
                fds = input->fds[0];
                input->fds[0] = input->fds[1];
                input->fds[1] = (RpcFds){ 0 };
        }
        return fds;
}

/* --- reading --- */

static ssize_t input_receive(RpcInput *input, char *room, size_t size, bool wait) {
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(RPC_FDS_MAX * sizeof(int))];
        } control;
        struct iovec iov = { room, size };
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n = recvmsg(input->fd, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));

        if (n <= 0)
                return n < 0 ? -errno : 0;
        framing_add(&input->framing, (size_t)n);
        input_take_fds(input, &message);
        return n;
}

/* Other processes may share a pipe or terminal, so O_NONBLOCK is not set. A regular file is always
 * ready. */
static ssize_t read_some(RpcInput *input, char *room, size_t size, bool wait) {
        struct pollfd p = { .fd = input->fd, .events = POLLIN };
        int ready = poll(&p, 1, wait ? -1 : 0);
        ssize_t n;

        if (ready < 0)
                return -errno;
        if (ready == 0)
                return -EAGAIN;
        n = read(input->fd, room, size);
        if (n < 0)
                return -errno;
        framing_add(&input->framing, (size_t)n);
        return n;
}

ssize_t rpc_input_read(RpcInput *input, bool wait) {
        size_t size;
        ssize_t n;
        char *room;
        int r;

        r = framing_room(&input->framing, &room, &size);
        if (r < 0)
                return r;
        do
                n = input->socket ? input_receive(input, room, size, wait)
                                  : read_some(input, room, size, wait);
        while (n == -EINTR);
        return n;
}

bool rpc_input_next(RpcInput *input, FramingLine *ret, RpcFds *ret_fds) {
        if (!framing_next(&input->framing, ret))
                return false;
        *ret_fds = fds_of_line(input, ret->offset);
        return true;
}

bool rpc_input_rest(RpcInput *input, FramingLine *ret, RpcFds *ret_fds) {
        if (!framing_rest(&input->framing, ret))
                return false;
        *ret_fds = fds_of_line(input, ret->offset);
        return true;
}

void rpc_input_clear(RpcInput *input) {
        for (size_t i = 0; i < ELEMENTSOF(input->fds); i++)
                rpc_fds_close(&input->fds[i]);
        framing_clear(&input->framing);
}
