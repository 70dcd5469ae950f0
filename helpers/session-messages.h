/* SPDX-License-Identifier: Apache-2.0 */
/* Packs and unpacks the messages between a session's init and its keeper (session-protocol.h) with
 * sendmsg(2) and recvmsg(2). For session-init.c, which links no libc; the including file provides
 * the raw system calls of init-sys.h. */
#pragma once

enum {
        FDS_MAX = 4,
        SOL_SOCKET_LEVEL = 1,
        SCM_RIGHTS_TYPE = 1,
        MSG_NOSIGNAL_FLAG = 0x4000,
        MSG_DONTWAIT_FLAG = 0x40,
        MSG_CMSG_CLOEXEC_FLAG = 0x40000000,
};

/* The kernel's own layouts. */
typedef struct Vector {
        void *base;
        unsigned long length;
} Vector;

typedef struct ControlHeader {
        unsigned long length;
        int level, type;
} ControlHeader;

typedef struct Rights {
        ControlHeader header;
        int fds[FDS_MAX];
} Rights;

typedef struct MessageHeader {
        void *name;
        int name_length;
        Vector *vector;
        unsigned long vector_count;
        void *control;
        unsigned long control_length;
        unsigned flags;
} MessageHeader;

typedef struct Packet {
        SessionMessage message;
        char block[SESSION_INLINE_MAX];
} Packet;

static void packet_send(SessionMessage *message, int fd) {
        Rights rights = { .header = { .length = sizeof(ControlHeader) + sizeof(int),
                                      .level = SOL_SOCKET_LEVEL,
                                      .type = SCM_RIGHTS_TYPE },
                          .fds = { fd } };
        Vector vector = { message, sizeof(*message) };
        MessageHeader header = { .vector = &vector, .vector_count = 1 };

        if (fd >= 0) {
                header.control = &rights;
                header.control_length = sizeof(rights.header) + 8;
        }
        /* Blocks while the keeper does not read: no message may be lost. */
        while (sys3(__NR_sendmsg, SESSION_CONTROL_FD, (long)&header, MSG_NOSIGNAL_FLAG) == -EINTR)
                ;
}

static void packet_report(uint32_t type, uint32_t exec, int32_t value, uint32_t detail) {
        SessionMessage message = { .type = type, .exec = exec, .value = value, .detail = detail };

        packet_send(&message, -1);
}

/* Returns the result of recvmsg(2). Missing fds are -1. */
static long packet_receive(Packet *packet, int fds[FDS_MAX]) {
        Rights rights = { .header = { 0 } };
        Vector vector = { packet, sizeof(*packet) };
        MessageHeader header = { .vector = &vector,
                                 .vector_count = 1,
                                 .control = &rights,
                                 .control_length = sizeof(rights) };
        long n = sys3(__NR_recvmsg, SESSION_CONTROL_FD, (long)&header,
                      MSG_DONTWAIT_FLAG | MSG_CMSG_CLOEXEC_FLAG);
        unsigned long count = 0;

        if (n > 0 && header.control_length >= sizeof(ControlHeader) &&
            rights.header.type == SCM_RIGHTS_TYPE)
                count = (rights.header.length - sizeof(ControlHeader)) / sizeof(int);
        for (unsigned long i = 0; i < FDS_MAX; i++)
                fds[i] = i < count ? rights.fds[i] : -1;
        return n;
}

static void packet_close_fds(const int fds[FDS_MAX]) {
        for (int i = 0; i < FDS_MAX; i++)
                if (fds[i] >= 0)
                        (void)sys1(__NR_close, fds[i]);
}
