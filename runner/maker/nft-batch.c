/* SPDX-License-Identifier: Apache-2.0 */
#include "maker/nft-batch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "base/sys.h"
#include "base/util.h"

enum {
        TCP_FLAGS = 13, /* The offset of the flags in a TCP header. */
        TCP_PORT = 2,   /* The offset of the target's port. */
        FLAG_SYN = 0x02,
        FLAGS = 0x17, /* ACK, RST, SYN and FIN. */
        /* The offset of the target's address in an IP header. */
        TARGET4 = 16,
        TARGET6 = 24,
};

/* --- messages --- */

struct nlmsghdr *nft_batch_open(NftBatch *batch, uint16_t type, uint16_t flags, uint8_t family,
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

void nft_batch_close(NftBatch *batch) {
        batch->used += NLMSG_ALIGN(batch->header->nlmsg_len);
}

static void batch_mark(NftBatch *batch, uint16_t type) {
        (void)nft_batch_open(batch, type, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
        nft_batch_close(batch);
}

static struct nlmsghdr *batch_open_table(NftBatch *batch, uint16_t type, uint16_t flags) {
        return nft_batch_open(batch, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type),
                              (uint16_t)(NLM_F_CREATE | flags), NFPROTO_INET, 0);
}

void nft_batch_begin(NftBatch *batch) {
        batch->used = 0;
        batch_mark(batch, NFNL_MSG_BATCH_BEGIN);
        mnl_attr_put_strz(batch_open_table(batch, NFT_MSG_NEWTABLE, 0), NFTA_TABLE_NAME,
                          NFT_BATCH_TABLE);
        nft_batch_close(batch);
}

void nft_batch_add_chain(NftBatch *batch, const char *chain, uint32_t hook, int32_t priority) {
        struct nlmsghdr *header = batch_open_table(batch, NFT_MSG_NEWCHAIN, 0);
        struct nlattr *nest;

        mnl_attr_put_strz(header, NFTA_CHAIN_TABLE, NFT_BATCH_TABLE);
        mnl_attr_put_strz(header, NFTA_CHAIN_NAME, chain);
        mnl_attr_put_strz(header, NFTA_CHAIN_TYPE, "filter");
        nest = mnl_attr_nest_start(header, NFTA_CHAIN_HOOK);
        nft_put_number(batch, NFTA_HOOK_HOOKNUM, hook);
        nft_put_number(batch, NFTA_HOOK_PRIORITY, (uint32_t)priority);
        mnl_attr_nest_end(header, nest);
        nft_batch_close(batch);
}

void nft_batch_end(NftBatch *batch) {
        batch_mark(batch, NFNL_MSG_BATCH_END);
}

int nft_batch_socket(int *ret_fd) {
        const struct sockaddr_nl own = { .nl_family = AF_NETLINK };
        _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

        if (fd < 0 || bind(fd, (const struct sockaddr *)&own, sizeof(own)) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* Numbers the messages of the batch, so that its reply can be told from others. */
static uint32_t batch_number(NftBatch *batch) {
        static uint32_t last;

        last++;
        for (size_t at = 0; at < batch->used;) {
                struct nlmsghdr *header = (void *)(batch->data + at);

                header->nlmsg_seq = last;
                at += NLMSG_ALIGN(header->nlmsg_len);
        }
        return last;
}

int nft_batch_send(NftBatch *batch, int fd) {
        const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
        const uint32_t number = batch_number(batch);
        _Alignas(struct nlmsghdr) char answer[4096];
        const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
        const struct nlmsgerr *error;
        ssize_t n;

        if (sendto(fd, batch->data, batch->used, 0, (const struct sockaddr *)&kernel,
                   sizeof(kernel)) < 0)
                return -errno;
        /* An earlier batch may have had more than one error. */
        do {
                n = recv(fd, answer, sizeof(answer), 0);
                if (n < 0)
                        return -errno;
                if (!mnl_nlmsg_ok(header, (int)n))
                        return -EBADMSG;
        } while (header->nlmsg_seq != number);
        if (header->nlmsg_type != NLMSG_ERROR || mnl_nlmsg_get_payload_len(header) < sizeof(*error))
                return -EBADMSG;
        error = mnl_nlmsg_get_payload(header);
        return error->error;
}

/* --- expressions --- */

NftExpression nft_expression_open(NftBatch *batch, const char *name) {
        NftExpression e = { .item = mnl_attr_nest_start(batch->header, NFTA_LIST_ELEM) };

        mnl_attr_put_strz(batch->header, NFTA_EXPR_NAME, name);
        e.data = mnl_attr_nest_start(batch->header, NFTA_EXPR_DATA);
        return e;
}

void nft_expression_close(NftBatch *batch, NftExpression expression) {
        mnl_attr_nest_end(batch->header, expression.data);
        mnl_attr_nest_end(batch->header, expression.item);
}

void nft_put_number(NftBatch *batch, uint16_t type, uint32_t value) {
        mnl_attr_put_u32(batch->header, type, htonl(value));
}

static void rule_put_value(NftBatch *batch, uint16_t type, const void *value, size_t size) {
        struct nlattr *nest = mnl_attr_nest_start(batch->header, type);

        mnl_attr_put(batch->header, NFTA_DATA_VALUE, size, value);
        mnl_attr_nest_end(batch->header, nest);
}

static void load_meta(NftBatch *batch, uint32_t key) {
        NftExpression e = nft_expression_open(batch, "meta");

        nft_put_number(batch, NFTA_META_DREG, NFT_REG_1);
        nft_put_number(batch, NFTA_META_KEY, key);
        nft_expression_close(batch, e);
}

static void rule_load_bytes(NftBatch *batch, uint32_t base, uint32_t offset, uint32_t size) {
        NftExpression e = nft_expression_open(batch, "payload");

        nft_put_number(batch, NFTA_PAYLOAD_DREG, NFT_REG_1);
        nft_put_number(batch, NFTA_PAYLOAD_BASE, base);
        nft_put_number(batch, NFTA_PAYLOAD_OFFSET, offset);
        nft_put_number(batch, NFTA_PAYLOAD_LEN, size);
        nft_expression_close(batch, e);
}

static void keep_bits(NftBatch *batch, const void *bits, uint32_t size) {
        static const uint8_t none[16];
        NftExpression e = nft_expression_open(batch, "bitwise");

        nft_put_number(batch, NFTA_BITWISE_SREG, NFT_REG_1);
        nft_put_number(batch, NFTA_BITWISE_DREG, NFT_REG_1);
        nft_put_number(batch, NFTA_BITWISE_LEN, size);
        rule_put_value(batch, NFTA_BITWISE_MASK, bits, size);
        rule_put_value(batch, NFTA_BITWISE_XOR, none, size);
        nft_expression_close(batch, e);
}

static void compare_bytes(NftBatch *batch, uint32_t operation, const void *value, size_t size) {
        NftExpression e = nft_expression_open(batch, "cmp");

        nft_put_number(batch, NFTA_CMP_SREG, NFT_REG_1);
        nft_put_number(batch, NFTA_CMP_OP, operation);
        rule_put_value(batch, NFTA_CMP_DATA, value, size);
        nft_expression_close(batch, e);
}

static void compare_byte(NftBatch *batch, uint32_t operation, uint8_t value) {
        compare_bytes(batch, operation, &value, 1);
}

void nft_match_family(NftBatch *batch, uint8_t family) {
        load_meta(batch, NFT_META_NFPROTO);
        compare_byte(batch, NFT_CMP_EQ, family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6);
}

void nft_match_target(NftBatch *batch, const NetAddress *address, uint8_t prefix) {
        const bool four = address->family == AF_INET;
        const uint32_t size = four ? 4 : 16;
        uint8_t mask[16] = { 0 }, first[16];

        for (unsigned bit = 0; bit < prefix; bit++)
                mask[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
        for (size_t i = 0; i < sizeof(first); i++)
                first[i] = address->bytes[i] & mask[i];
        rule_load_bytes(batch, NFT_PAYLOAD_NETWORK_HEADER, four ? TARGET4 : TARGET6, size);
        if (prefix < size * 8)
                keep_bits(batch, mask, size);
        compare_bytes(batch, NFT_CMP_EQ, first, size);
}

void nft_match_ports(NftBatch *batch, uint16_t first, uint16_t last) {
        const uint16_t low = htons(first), high = htons(last);

        rule_load_bytes(batch, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_PORT, sizeof(low));
        compare_bytes(batch, NFT_CMP_GTE, &low, sizeof(low));
        compare_bytes(batch, NFT_CMP_LTE, &high, sizeof(high));
}

void nft_match_mark(NftBatch *batch, uint32_t mark) {
        load_meta(batch, NFT_META_MARK);
        compare_bytes(batch, NFT_CMP_EQ, &mark, sizeof(mark));
}

void nft_load_value(NftBatch *batch, uint32_t to, const void *value, size_t size) {
        NftExpression e = nft_expression_open(batch, "immediate");

        nft_put_number(batch, NFTA_IMMEDIATE_DREG, to);
        rule_put_value(batch, NFTA_IMMEDIATE_DATA, value, size);
        nft_expression_close(batch, e);
}

void nft_accept(NftBatch *batch) {
        NftExpression e = nft_expression_open(batch, "immediate");
        struct nlattr *data, *verdict;

        nft_put_number(batch, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
        data = mnl_attr_nest_start(batch->header, NFTA_IMMEDIATE_DATA);
        verdict = mnl_attr_nest_start(batch->header, NFTA_DATA_VERDICT);
        nft_put_number(batch, NFTA_VERDICT_CODE, NF_ACCEPT);
        mnl_attr_nest_end(batch->header, verdict);
        mnl_attr_nest_end(batch->header, data);
        nft_expression_close(batch, e);
}

/* --- rules --- */

void nft_rule_open(NftBatch *batch, const char *chain, uint16_t flags) {
        struct nlmsghdr *header = batch_open_table(batch, NFT_MSG_NEWRULE,
                                                   (uint16_t)(NLM_F_APPEND | flags));

        mnl_attr_put_strz(header, NFTA_RULE_TABLE, NFT_BATCH_TABLE);
        mnl_attr_put_strz(header, NFTA_RULE_CHAIN, chain);
        batch->list = mnl_attr_nest_start(header, NFTA_RULE_EXPRESSIONS);
}

void nft_rule_close(NftBatch *batch) {
        mnl_attr_nest_end(batch->header, batch->list);
        nft_batch_close(batch);
}

void nft_rules_pass_others(NftBatch *batch, const char *chain) {
        const uint8_t flags = FLAGS;

        nft_rule_open(batch, chain, 0);
        load_meta(batch, NFT_META_L4PROTO);
        compare_byte(batch, NFT_CMP_NEQ, IPPROTO_TCP);
        nft_accept(batch);
        nft_rule_close(batch);
        nft_rule_open(batch, chain, 0);
        rule_load_bytes(batch, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS, 1);
        keep_bits(batch, &flags, 1);
        compare_byte(batch, NFT_CMP_NEQ, FLAG_SYN);
        nft_accept(batch);
        nft_rule_close(batch);
}

void nft_rules_pass_own(NftBatch *batch, const char *chain, uint16_t flags) {
        const struct {
                NetAddress address;
                uint8_t prefix;
        } own[] = {
                { net_loopback[0], 8 },
                { net_loopback[1], 128 },
                { net_address_own(AF_INET, NET_OWN), 32 },
                { net_address_own(AF_INET6, NET_OWN), 128 },
        };

        for (size_t i = 0; i < ELEMENTSOF(own); i++) {
                nft_rule_open(batch, chain, i + 1 < ELEMENTSOF(own) ? 0 : flags);
                nft_match_family(batch, own[i].address.family);
                nft_match_target(batch, &own[i].address, own[i].prefix);
                nft_accept(batch);
                nft_rule_close(batch);
        }
}
