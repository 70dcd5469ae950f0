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
#include <string.h>
#include <sys/socket.h>

#include "base/sys.h"
#include "base/util.h"
#include "policy/net/address.h"

enum {
        QUEUE_PACKETS = 8192,       /* Packets that wait. When it is full, the next is dropped. */
        QUEUE_MEMORY = 4096 * 1024, /* Bytes of the socket's buffer; the kernel may lower it. */
        BATCH_SIZE = 16 * 1024,
        REVISION = 3, /* The version of the target NFQUEUE. */
        TCP_FLAGS = 13,
        FLAG_SYN = 0x02,
        FLAGS = 0x17,      /* ACK, RST, SYN and FIN. */
        DESTINATION4 = 16, /* Its offset in the IPv4 header. */
        DESTINATION6 = 24,
};

#define TABLE "holt"
#define CHAIN "connect"

typedef struct Batch {
        _Alignas(struct nlmsghdr) char data[BATCH_SIZE];
        size_t used;
        struct nlmsghdr *header; /* The header of the message that is being written. */
        struct nlattr *list;     /* The expressions of the rule that is being written. */
} Batch;

/* --- messages --- */

static struct nlmsghdr *batch_open(Batch *batch, uint16_t type, uint16_t flags, uint8_t family,
                                   uint16_t resource) {
        struct nlmsghdr *header = mnl_nlmsg_put_header(batch->data + batch->used);
        struct nfgenmsg *message;

        header->nlmsg_type = type;
        header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
        message = mnl_nlmsg_put_extra_header(header, sizeof(*message));
        message->nfgen_family = family;
        message->version = NFNETLINK_V0;
        message->res_id = htons(resource);
        batch->header = header;
        return header;
}

static void batch_close(Batch *batch) {
        batch->used += NLMSG_ALIGN(batch->header->nlmsg_len);
}

static void batch_mark(Batch *batch, uint16_t type) {
        (void)batch_open(batch, type, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
        batch_close(batch);
}

static struct nlmsghdr *batch_open_table(Batch *batch, uint16_t type, uint16_t flags) {
        return batch_open(batch, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type),
                          (uint16_t)(NLM_F_CREATE | flags), NFPROTO_INET, 0);
}

/* --- expressions --- */

typedef struct Expression {
        struct nlattr *item, *data;
} Expression;

static Expression expression_open(Batch *batch, const char *name) {
        Expression e = { .item = mnl_attr_nest_start(batch->header, NFTA_LIST_ELEM) };

        mnl_attr_put_strz(batch->header, NFTA_EXPR_NAME, name);
        e.data = mnl_attr_nest_start(batch->header, NFTA_EXPR_DATA);
        return e;
}

static void expression_close(Batch *batch, Expression e) {
        mnl_attr_nest_end(batch->header, e.data);
        mnl_attr_nest_end(batch->header, e.item);
}

static void put_number(Batch *batch, uint16_t type, uint32_t value) {
        mnl_attr_put_u32(batch->header, type, htonl(value));
}

static void rule_put_value(Batch *batch, uint16_t type, const void *value, size_t size) {
        struct nlattr *nest = mnl_attr_nest_start(batch->header, type);

        mnl_attr_put(batch->header, NFTA_DATA_VALUE, size, value);
        mnl_attr_nest_end(batch->header, nest);
}

static void load_meta(Batch *batch, uint32_t key) {
        Expression e = expression_open(batch, "meta");

        put_number(batch, NFTA_META_DREG, NFT_REG_1);
        put_number(batch, NFTA_META_KEY, key);
        expression_close(batch, e);
}

static void rule_load_bytes(Batch *batch, uint32_t base, uint32_t offset, uint32_t size) {
        Expression e = expression_open(batch, "payload");

        put_number(batch, NFTA_PAYLOAD_DREG, NFT_REG_1);
        put_number(batch, NFTA_PAYLOAD_BASE, base);
        put_number(batch, NFTA_PAYLOAD_OFFSET, offset);
        put_number(batch, NFTA_PAYLOAD_LEN, size);
        expression_close(batch, e);
}

static void keep_bits(Batch *batch, uint8_t bits) {
        Expression e = expression_open(batch, "bitwise");
        const uint8_t none = 0;

        put_number(batch, NFTA_BITWISE_SREG, NFT_REG_1);
        put_number(batch, NFTA_BITWISE_DREG, NFT_REG_1);
        put_number(batch, NFTA_BITWISE_LEN, 1);
        rule_put_value(batch, NFTA_BITWISE_MASK, &bits, 1);
        rule_put_value(batch, NFTA_BITWISE_XOR, &none, 1);
        expression_close(batch, e);
}

static void compare_bytes(Batch *batch, uint32_t operation, const void *value, size_t size) {
        Expression e = expression_open(batch, "cmp");

        put_number(batch, NFTA_CMP_SREG, NFT_REG_1);
        put_number(batch, NFTA_CMP_OP, operation);
        rule_put_value(batch, NFTA_CMP_DATA, value, size);
        expression_close(batch, e);
}

static void compare_byte(Batch *batch, uint32_t operation, uint8_t value) {
        compare_bytes(batch, operation, &value, 1);
}

static void accept_packet(Batch *batch) {
        Expression e = expression_open(batch, "immediate");
        struct nlattr *data, *verdict;

        put_number(batch, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
        data = mnl_attr_nest_start(batch->header, NFTA_IMMEDIATE_DATA);
        verdict = mnl_attr_nest_start(batch->header, NFTA_DATA_VERDICT);
        put_number(batch, NFTA_VERDICT_CODE, NF_ACCEPT);
        mnl_attr_nest_end(batch->header, verdict);
        mnl_attr_nest_end(batch->header, data);
        expression_close(batch, e);
}

static void reject_packet(Batch *batch, uint32_t type, uint8_t code) {
        Expression e = expression_open(batch, "reject");

        put_number(batch, NFTA_REJECT_TYPE, type);
        mnl_attr_put_u8(batch->header, NFTA_REJECT_ICMP_CODE, code);
        expression_close(batch, e);
}

/* Puts the packet into the queue. If holt-egress has ended, nobody reads the queue, and the packet
 * passes. It then meets no listener, so that the connection is refused at once. */
static void queue_packet(Batch *batch) {
        const struct {
                _Alignas(8) struct xt_NFQ_info_v3 info;
        } target = { { .queuenum = QUEUE_NUMBER, .queues_total = 1, .flags = NFQ_FLAG_BYPASS } };
        Expression e = expression_open(batch, "target");

        mnl_attr_put_strz(batch->header, NFTA_TARGET_NAME, "NFQUEUE");
        put_number(batch, NFTA_TARGET_REV, REVISION);
        mnl_attr_put(batch->header, NFTA_TARGET_INFO, sizeof(target), &target);
        expression_close(batch, e);
}

/* --- the rules --- */

static void rule_open(Batch *batch, uint16_t flags) {
        struct nlmsghdr *header = batch_open_table(batch, NFT_MSG_NEWRULE,
                                                   (uint16_t)(NLM_F_APPEND | flags));

        mnl_attr_put_strz(header, NFTA_RULE_TABLE, TABLE);
        mnl_attr_put_strz(header, NFTA_RULE_CHAIN, CHAIN);
        batch->list = mnl_attr_nest_start(header, NFTA_RULE_EXPRESSIONS);
}

static void rule_close(Batch *batch) {
        mnl_attr_nest_end(batch->header, batch->list);
        batch_close(batch);
}

/* Packets that begin no TCP connection pass. */
static void rules_pass_others(Batch *batch) {
        rule_open(batch, 0);
        load_meta(batch, NFT_META_L4PROTO);
        compare_byte(batch, NFT_CMP_NEQ, IPPROTO_TCP);
        accept_packet(batch);
        rule_close(batch);
        rule_open(batch, 0);
        rule_load_bytes(batch, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS, 1);
        keep_bits(batch, FLAGS);
        compare_byte(batch, NFT_CMP_NEQ, FLAG_SYN);
        accept_packet(batch);
        rule_close(batch);
}

static void rules_reject_marked(Batch *batch) {
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
                rule_open(batch, 0);
                load_meta(batch, NFT_META_MARK);
                compare_bytes(batch, NFT_CMP_EQ, &mark, sizeof(mark));
                reject_packet(batch, rejects[mark].type, rejects[mark].code);
                rule_close(batch);
        }
}

/* Packets to the loopback addresses and to the sandbox's own address pass: programs inside serve
 * there. */
static void rules_pass_own(Batch *batch) {
        static const struct {
                uint8_t protocol;
                uint8_t offset, size;
                uint8_t address[16];
        } own[] = {
                { NFPROTO_IPV4, DESTINATION4, 1, { 127 } },
                { NFPROTO_IPV4, DESTINATION4, 4, { 198, 18, 0, NET_OWN } },
                { NFPROTO_IPV6, DESTINATION6, 16, { [15] = 1 } },
                { NFPROTO_IPV6,
                  DESTINATION6,
                  16,
                  { 0xfd, 0, 0x68, 0x6f, 0x6c, 0x74, [15] = NET_OWN } },
        };

        for (size_t i = 0; i < ELEMENTSOF(own); i++) {
                rule_open(batch, 0);
                load_meta(batch, NFT_META_NFPROTO);
                compare_byte(batch, NFT_CMP_EQ, own[i].protocol);
                rule_load_bytes(batch, NFT_PAYLOAD_NETWORK_HEADER, own[i].offset, own[i].size);
                compare_bytes(batch, NFT_CMP_EQ, own[i].address, own[i].size);
                accept_packet(batch);
                rule_close(batch);
        }
}

static void batch_add_chain(Batch *batch) {
        struct nlmsghdr *header = batch_open_table(batch, NFT_MSG_NEWTABLE, 0);
        struct nlattr *hook;

        mnl_attr_put_strz(header, NFTA_TABLE_NAME, TABLE);
        batch_close(batch);
        header = batch_open_table(batch, NFT_MSG_NEWCHAIN, 0);
        mnl_attr_put_strz(header, NFTA_CHAIN_TABLE, TABLE);
        mnl_attr_put_strz(header, NFTA_CHAIN_NAME, CHAIN);
        mnl_attr_put_strz(header, NFTA_CHAIN_TYPE, "filter");
        hook = mnl_attr_nest_start(header, NFTA_CHAIN_HOOK);
        put_number(batch, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
        put_number(batch, NFTA_HOOK_PRIORITY, 0);
        mnl_attr_nest_end(header, hook);
        batch_close(batch);
}

static void batch_fill_rules(Batch *batch) {
        batch_mark(batch, NFNL_MSG_BATCH_BEGIN);
        batch_add_chain(batch);
        rules_pass_others(batch);
        rules_reject_marked(batch);
        rules_pass_own(batch);
        rule_open(batch, NLM_F_ACK);
        queue_packet(batch);
        rule_close(batch);
        batch_mark(batch, NFNL_MSG_BATCH_END);
}

/* --- the queue --- */

static void queue_fill(Batch *batch) {
        const struct nfqnl_msg_config_cmd command = { .command = NFQNL_CFG_CMD_BIND };
        const struct nfqnl_msg_config_params params = { .copy_range = htonl(QUEUE_COPIED),
                                                        .copy_mode = NFQNL_COPY_PACKET };
        struct nlmsghdr *header;

        batch->used = 0;
        header = batch_open(batch, NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_CONFIG, NLM_F_ACK, AF_UNSPEC,
                            QUEUE_NUMBER);
        mnl_attr_put(header, NFQA_CFG_CMD, sizeof(command), &command);
        mnl_attr_put(header, NFQA_CFG_PARAMS, sizeof(params), &params);
        put_number(batch, NFQA_CFG_QUEUE_MAXLEN, QUEUE_PACKETS);
        /* NFQA_CFG_F_GSO lets the kernel queue a packet whose checksum is still to be computed. */
        put_number(batch, NFQA_CFG_MASK, NFQA_CFG_F_GSO);
        put_number(batch, NFQA_CFG_FLAGS, NFQA_CFG_F_GSO);
        batch_close(batch);
}

/* Sends the messages. Reads the kernel's reply to the one message that asks for it, or to the first
 * that fails. */
static int batch_send(const Batch *batch, int fd) {
        const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
        _Alignas(struct nlmsghdr) char answer[4096];
        const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
        const struct nlmsgerr *error;
        ssize_t n;

        if (sendto(fd, batch->data, batch->used, 0, (const struct sockaddr *)&kernel,
                   sizeof(kernel)) < 0)
                return -errno;
        n = recv(fd, answer, sizeof(answer), 0);
        if (n < 0)
                return -errno;
        if (!mnl_nlmsg_ok(header, (int)n) || header->nlmsg_type != NLMSG_ERROR ||
            mnl_nlmsg_get_payload_len(header) < sizeof(*error))
                return -EBADMSG;
        error = mnl_nlmsg_get_payload(header);
        return error->error;
}

int queue_rules_make(int *ret_fd) {
        const struct sockaddr_nl own = { .nl_family = AF_NETLINK };
        const int memory = QUEUE_MEMORY;
        _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
        Batch batch = { .used = 0 };
        int r;

        if (fd < 0 || bind(fd, (const struct sockaddr *)&own, sizeof(own)) < 0)
                return -errno;
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &memory, sizeof(memory));
        queue_fill(&batch);
        r = batch_send(&batch, fd);
        if (r < 0)
                return r;
        batch.used = 0;
        batch_fill_rules(&batch);
        r = batch_send(&batch, fd);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        return 0;
}
