/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/queue.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/icmp.h>
#include <linux/ip.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/list.h"
#include "egress/connection.h"
#include "maker/queue-rules.h"
#include "wire/socket-address.h"

enum {
        BUCKETS = 4096,
        PACKET_ROOM = 4096, /* Bytes of one message from the kernel. */
        PASS = 0,           /* No mark. */
};

struct Held {
        Held *next; /* The next one in the same bucket. */
        Syn syn;
        uint32_t sequence,
                packet; /* The sequence number of the SYN, and the kernel's number of the packet. */
        bool in;        /* It has been let in. */
        struct Connection *connection;
};

typedef struct Queue {
        int fd;
        int icmp_fd;   /* FD_NONE, unless queue_send_errors() was called. */
        unsigned turn; /* Packets to read; see turn_next(). */
        LoopWatch *watch;
        Held *buckets[BUCKETS];
} Queue;

/* --- verdicts --- */

static void queue_send_verdict(const Queue *queue, uint32_t packet, uint32_t verdict,
                               uint32_t mark) {
        const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
        const struct nfqnl_msg_verdict_hdr decision = { .verdict = htonl(verdict),
                                                        .id = htonl(packet) };
        _Alignas(struct nlmsghdr) char room[128];
        struct nlmsghdr *header = mnl_nlmsg_put_header(room);
        struct nfgenmsg *message;

        header->nlmsg_type = NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_VERDICT;
        header->nlmsg_flags = NLM_F_REQUEST;
        message = mnl_nlmsg_put_extra_header(header, sizeof(*message));
        message->nfgen_family = AF_UNSPEC;
        message->version = NFNETLINK_V0;
        message->res_id = htons(QUEUE_NUMBER);
        mnl_attr_put(header, NFQA_VERDICT_HDR, sizeof(decision), &decision);
        if (mark != PASS)
                mnl_attr_put_u32(header, NFQA_MARK, htonl(mark));
        (void)sendto(queue->fd, room, header->nlmsg_len, 0, (const struct sockaddr *)&kernel,
                     sizeof(kernel));
}

static uint16_t icmp_sum(const uint8_t *data, size_t size) {
        uint32_t sum = 0;

        for (size_t i = 0; i + 1 < size; i += 2)
                sum += (uint32_t)data[i] << 8 | data[i + 1];
        while (sum >> 16)
                sum = (sum & 0xffff) + (sum >> 16);
        return htons((uint16_t)~sum);
}

/* Sends "network unreachable" for an IPv4 packet. The error contains those headers of the packet
 * that the kernel looks at. */
static void queue_send_no_net(const Queue *queue, const Syn *syn, uint32_t sequence) {
        struct {
                struct icmphdr icmp;
                struct iphdr ip;
                uint16_t ports[2];
                uint32_t sequence;
        } message = {
                .icmp = { .type = ICMP_DEST_UNREACH, .code = ICMP_NET_UNREACH },
                .ip = { .version = 4,
                        .ihl = 5,
                        .tot_len = htons(sizeof(struct iphdr) + sizeof(struct tcphdr)),
                        .ttl = IPDEFTTL,
                        .protocol = IPPROTO_TCP },
                .ports = { htons(syn->from_port), htons(syn->to_port) },
                .sequence = htonl(sequence),
        };
        struct sockaddr_storage to;
        const socklen_t length = socket_address_set(&syn->from, 0, &to);

        memcpy(&message.ip.saddr, syn->from.bytes, 4);
        memcpy(&message.ip.daddr, syn->to.bytes, 4);
        message.ip.check = icmp_sum((const uint8_t *)&message.ip, sizeof(message.ip));
        message.icmp.checksum = icmp_sum((const uint8_t *)&message, sizeof(message));
        (void)sendto(queue->icmp_fd, &message, sizeof(message), MSG_DONTWAIT,
                     (const struct sockaddr *)&to, length);
}

/* Rejects the packet, so that the program gets errnum. For ETIMEDOUT it drops the packet, and the
 * kernel sends the packet again until the program gives up. */
static void queue_reject(const Queue *queue, uint32_t packet, const Syn *syn, uint32_t sequence,
                         int errnum) {
        const QueueMark mark = errnum == EHOSTUNREACH  ? QUEUE_NO_HOST
                               : errnum == ENETUNREACH ? QUEUE_NO_NET
                                                       : QUEUE_RESET;

        if (mark == QUEUE_NO_NET && queue->icmp_fd >= 0 && syn->to.family == AF_INET)
                queue_send_no_net(queue, syn, sequence);
        else if (errnum != ETIMEDOUT)
                return queue_send_verdict(queue, packet, NF_REPEAT, mark);
        queue_send_verdict(queue, packet, NF_DROP, PASS);
}

/* --- connections that wait --- */

static Held **queue_bucket(Queue *queue, const Syn *syn) {
        return &queue->buckets[(syn->from_port ^ syn->to_port << 4) % BUCKETS];
}

static Held *queue_find(Queue *queue, const Syn *syn) {
        Held *held = *queue_bucket(queue, syn);

        while (held && memcmp(&held->syn, syn, sizeof(*syn)) != 0)
                held = held->next;
        return held;
}

void queue_let_in(Egress *egress, Held *held) {
        held->in = true;
        queue_send_verdict(egress->queue, held->packet, NF_ACCEPT, QUEUE_IN);
}

Held *queue_release(Egress *egress, Held *held, int errnum) {
        if (!held)
                return NULL;
        (void)list_remove(queue_bucket(egress->queue, &held->syn), held);
        if (!held->in)
                queue_reject(egress->queue, held->packet, &held->syn, held->sequence, errnum);
        free(held);
        return NULL;
}

struct Connection *queue_take(Egress *egress, const Syn *syn) {
        Held *held = egress->queue ? queue_find(egress->queue, syn) : NULL;
        struct Connection *connection = NULL;

        if (held && held->in) {
                connection = held->connection;
                (void)queue_release(egress, held, 0);
        }
        return connection;
}

/* --- packets --- */

/* Handles another packet of a known connection. With another sequence number, it begins a new
 * attempt from the same port, and the program has given up the old one. */
static void held_again(const Queue *queue, Held *held, uint32_t sequence, uint32_t packet) {
        if (held->in)
                return queue_send_verdict(queue, packet, NF_ACCEPT, QUEUE_IN);
        if (held->sequence == sequence)
                return queue_send_verdict(queue, packet, NF_DROP, PASS);
        queue_send_verdict(queue, held->packet, NF_DROP, PASS);
        held->sequence = sequence;
        held->packet = packet;
}

static void queue_hold(Egress *egress, const Syn *syn, uint32_t sequence, uint32_t packet) {
        Queue *queue = egress->queue;
        Held *held = queue_find(queue, syn);

        if (held)
                return held_again(queue, held, sequence, packet);
        held = calloc(1, sizeof(*held));
        if (!held)
                return queue_reject(queue, packet, syn, sequence, ECONNREFUSED);
        *held = (Held){ .syn = *syn, .sequence = sequence, .packet = packet };
        list_push(queue_bucket(queue, syn), held);
        connection_hold(egress, held, syn, &held->connection);
}

/* The attributes that are read from a message. */
typedef struct Packet {
        const struct nlattr *number, *payload;
} Packet;

static int packet_note(const struct nlattr *attribute, void *data) {
        Packet *packet = data;

        if (mnl_attr_get_type(attribute) == NFQA_PACKET_HDR &&
            mnl_attr_get_payload_len(attribute) >= sizeof(struct nfqnl_msg_packet_hdr))
                packet->number = attribute;
        else if (mnl_attr_get_type(attribute) == NFQA_PAYLOAD)
                packet->payload = attribute;
        return MNL_CB_OK;
}

/* Reads one message of the kernel. */
static void queue_read(Egress *egress, const struct nlmsghdr *header) {
        Packet found = { 0 };
        const struct nfqnl_msg_packet_hdr *packet;
        uint32_t id, sequence;
        Syn syn;

        if (header->nlmsg_type != (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET))
                return;
        (void)mnl_attr_parse(header, sizeof(struct nfgenmsg), packet_note, &found);
        if (!found.number)
                return;
        packet = mnl_attr_get_payload(found.number);
        id = ntohl(packet->packet_id);
        if (!found.payload ||
            syn_read(mnl_attr_get_payload(found.payload), mnl_attr_get_payload_len(found.payload),
                     &syn, &sequence) < 0)
                return queue_send_verdict(egress->queue, id, NF_REPEAT, QUEUE_RESET);
        queue_hold(egress, &syn, sequence, id);
}

static void queue_on_event(void *data, uint32_t events) {
        Egress *egress = data;
        _Alignas(struct nlmsghdr) char room[PACKET_ROOM];

        unsigned done;

        (void)events;
        for (done = 0; done < egress->queue->turn; done++) {
                struct sockaddr_nl sender = { 0 };
                socklen_t length = sizeof(sender);
                ssize_t n = recvfrom(egress->queue->fd, room, sizeof(room), MSG_DONTWAIT,
                                     (struct sockaddr *)&sender, &length);
                const struct nlmsghdr *header = (const struct nlmsghdr *)room;

                /* ENOBUFS: packets were dropped, and are sent again. */
                if (n < 0 && errno != ENOBUFS)
                        break;
                if (n > 0 && sender.nl_pid == 0 && mnl_nlmsg_ok(header, (int)n))
                        queue_read(egress, header);
        }
        egress->queue->turn = turn_next(egress->queue->turn, done);
}

int queue_new(Egress *egress, int fd, Error *reterr) {
        egress->queue = calloc(1, sizeof(*egress->queue));
        if (!egress->queue)
                return error_oom(reterr);
        egress->queue->fd = fd;
        egress->queue->icmp_fd = FD_NONE;
        egress->queue->turn = 1;
        return loop_watch(egress->loop, fd, EPOLLIN, queue_on_event, egress, &egress->queue->watch,
                          reterr);
}

void queue_send_errors(Egress *egress, int fd) {
        egress->queue->icmp_fd = fd;
}
