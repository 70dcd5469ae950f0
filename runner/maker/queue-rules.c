/* SPDX-License-Identifier: Apache-2.0 */
#include "maker/queue-rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netfilter/xt_NFQUEUE.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/util.h"
#include "maker/nft-batch.h"

enum {
        QUEUE_PACKETS = 8192, /* Packets that wait. When the queue is full, the kernel drops the
                                 next packet. */
        QUEUE_MEMORY = 4096 * 1024, /* Bytes of the socket's buffer; the kernel may lower it. */
        REVISION = 3,               /* The version of the target NFQUEUE. */
        IMPORTS_QUEUED = 24,        /* Listeners of imported ports for which a batch has room. */
};

#define CHAIN "connect"
/* Packets reach the second chain after the verdict, or if nobody reads the queue. */
#define LAST_CHAIN "last"

static void reject_packet(NftBatch *batch, uint32_t type, uint8_t code) {
        NftExpression e = nft_expression_open(batch, "reject");

        nft_put_number(batch, NFTA_REJECT_TYPE, type);
        mnl_attr_put_u8(batch->header, NFTA_REJECT_ICMP_CODE, code);
        nft_expression_close(batch, e);
}

/* Two parts of the kernel can put a packet into the queue. These functions write the expression of
 * each. If nobody reads the queue, because holt-egress has ended, the packet goes on to the second
 * chain. */

static void queue_packet(NftBatch *batch) {
        NftExpression e = nft_expression_open(batch, "queue");

        mnl_attr_put_u16(batch->header, NFTA_QUEUE_NUM, htons(QUEUE_NUMBER));
        mnl_attr_put_u16(batch->header, NFTA_QUEUE_TOTAL, htons(1));
        mnl_attr_put_u16(batch->header, NFTA_QUEUE_FLAGS, htons(NFT_QUEUE_FLAG_BYPASS));
        nft_expression_close(batch, e);
}

static void queue_packet_by_target(NftBatch *batch) {
        const struct {
                _Alignas(8) struct xt_NFQ_info_v3 info;
        } target = { { .queuenum = QUEUE_NUMBER, .queues_total = 1, .flags = NFQ_FLAG_BYPASS } };
        NftExpression e = nft_expression_open(batch, "target");

        mnl_attr_put_strz(batch->header, NFTA_TARGET_NAME, "NFQUEUE");
        nft_put_number(batch, NFTA_TARGET_REV, REVISION);
        mnl_attr_put(batch->header, NFTA_TARGET_INFO, sizeof(target), &target);
        nft_expression_close(batch, e);
}

/* Writes the expression that puts a packet into the queue. */
typedef void (*QueueFn)(NftBatch *batch);

/* The first is a module that every distribution has, and the kernel loads it by itself. The kernel
 * never loads the target of xtables for a rule of the family inet, so that target works only where
 * it is built in. */
static const QueueFn queue_packets[] = { queue_packet, queue_packet_by_target };

/* Returns the number of the expression to try first. A rejected batch takes longer than everything
 * else here, because the kernel waits for its other processors. A kernel without modules is usually
 * made for small virtual machines, and has only the target. */
static size_t queue_packet_first(void) {
        return access("/proc/modules", F_OK) < 0 ? 1 : 0;
}

/* --- the rules --- */

static void rules_reject_marked(NftBatch *batch) {
        static const struct {
                uint32_t type;
                uint8_t code;
        } rejects[] = {
                [QUEUE_RESET] = { NFT_REJECT_TCP_RST, 0 },
                [QUEUE_NO_HOST] = { NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_HOST_UNREACH },
                [QUEUE_NO_NET] = { NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_NO_ROUTE },
        };

        static_assert(ELEMENTSOF(rejects) == QUEUE_MARK_END, "every mark has a row");
        for (uint32_t mark = QUEUE_RESET; mark < QUEUE_MARK_END; mark++) {
                nft_rule_open(batch, CHAIN, 0);
                nft_match_mark(batch, mark);
                reject_packet(batch, rejects[mark].type, rejects[mark].code);
                nft_rule_close(batch);
        }
}

/* Queues only the packets to imported ports, because other packets to the loopback pass. */
static void rules_queue_imports(NftBatch *batch, const NetPlan *plan, QueueFn put_queue) {
        size_t made = 0;

        for (size_t i = 0; i < plan->listeners_count && made < IMPORTS_QUEUED; i++) {
                const ListenerPlan *listener = &plan->listeners[i];
                const bool four = listener->address.family == AF_INET;

                if (!listener_is_import(listener))
                        continue;
                nft_rule_open(batch, CHAIN, 0);
                nft_match_family(batch, listener->address.family);
                nft_match_target(batch, &listener->address, four ? 32 : 128);
                nft_match_ports(batch, listener->port, listener->port);
                put_queue(batch);
                nft_rule_close(batch);
                made++;
        }
}

/* Rejects packets that were not let in. Without a reader, imported ports are refused by the kernel,
 * because their listeners are gone. */
static void rules_reject_unread(NftBatch *batch) {
        nft_batch_add_chain(batch, LAST_CHAIN, NF_INET_LOCAL_OUT, 1);
        nft_rules_pass_others(batch, LAST_CHAIN);
        nft_rule_open(batch, LAST_CHAIN, 0);
        nft_match_mark(batch, QUEUE_IN);
        nft_accept(batch);
        nft_rule_close(batch);
        nft_rules_pass_own(batch, LAST_CHAIN, 0);
        nft_rule_open(batch, LAST_CHAIN, 0);
        reject_packet(batch, NFT_REJECT_TCP_RST, 0);
        nft_rule_close(batch);
}

static void batch_fill_rules(NftBatch *batch, const NetPlan *plan, QueueFn put_queue) {
        nft_batch_begin(batch);
        rules_reject_unread(batch);
        nft_batch_add_chain(batch, CHAIN, NF_INET_LOCAL_OUT, 0);
        nft_rules_pass_others(batch, CHAIN);
        rules_reject_marked(batch);
        rules_queue_imports(batch, plan, put_queue);
        nft_rules_pass_own(batch, CHAIN, 0);
        nft_rule_open(batch, CHAIN, NLM_F_ACK);
        put_queue(batch);
        nft_rule_close(batch);
        nft_batch_end(batch);
}

/* --- the queue --- */

static void queue_fill(NftBatch *batch) {
        const struct nfqnl_msg_config_cmd command = { .command = NFQNL_CFG_CMD_BIND };
        const struct nfqnl_msg_config_params params = { .copy_range = htonl(QUEUE_COPIED),
                                                        .copy_mode = NFQNL_COPY_PACKET };
        struct nlmsghdr *header = nft_batch_open(batch, NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_CONFIG,
                                                 NLM_F_ACK, AF_UNSPEC, QUEUE_NUMBER);

        mnl_attr_put(header, NFQA_CFG_CMD, sizeof(command), &command);
        mnl_attr_put(header, NFQA_CFG_PARAMS, sizeof(params), &params);
        nft_put_number(batch, NFQA_CFG_QUEUE_MAXLEN, QUEUE_PACKETS);
        /* NFQA_CFG_F_GSO lets the kernel queue a packet whose checksum is still to be computed. */
        nft_put_number(batch, NFQA_CFG_MASK, NFQA_CFG_F_GSO);
        nft_put_number(batch, NFQA_CFG_FLAGS, NFQA_CFG_F_GSO);
        nft_batch_close(batch);
}

int queue_rules_make(const NetPlan *plan, int *ret_fd) {
        const int memory = QUEUE_MEMORY;
        _cleanup_close_ int fd = FD_NONE;
        NftBatch batch = { .used = 0 };
        size_t first;
        int r = nft_batch_socket(&fd);

        if (r < 0)
                return r;
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &memory, sizeof(memory));
        queue_fill(&batch);
        r = nft_batch_send(&batch, fd);
        if (r < 0)
                return r;
        r = -ENOENT;
        first = queue_packet_first();
        for (size_t i = 0; r == -ENOENT && i < ELEMENTSOF(queue_packets); i++) {
                batch_fill_rules(&batch, plan,
                                 queue_packets[(first + i) % ELEMENTSOF(queue_packets)]);
                r = nft_batch_send(&batch, fd);
        }
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        return 0;
}
