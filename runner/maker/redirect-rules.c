/* SPDX-License-Identifier: Apache-2.0 */
#include "maker/redirect-rules.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "maker/nft-batch.h"

enum {
        PRIORITY = -150, /* The customary one of tproxy ("mangle"). */
        REGISTER_ADDRESS = NFT_REG_1,
        REGISTER_PORT = NFT_REG_2,
};

#define CHAIN "redirect"

/* Hands the packet to the listener. If there is none, the next rules apply. */
static void redirect_packet(NftBatch *batch, uint8_t family) {
        const NetAddress to = net_address_own(family, NET_REDIRECT);
        const uint16_t port = htons(NET_REDIRECT_PORT);
        NftExpression e;

        nft_load_value(batch, REGISTER_ADDRESS, to.bytes, family == AF_INET ? 4 : 16);
        nft_load_value(batch, REGISTER_PORT, &port, sizeof(port));
        e = nft_expression_open(batch, "tproxy");
        nft_put_number(batch, NFTA_TPROXY_FAMILY, family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6);
        nft_put_number(batch, NFTA_TPROXY_REG_ADDR, REGISTER_ADDRESS);
        nft_put_number(batch, NFTA_TPROXY_REG_PORT, REGISTER_PORT);
        nft_expression_close(batch, e);
        nft_accept(batch);
}

int redirect_rules_begin(int fd) {
        NftBatch batch = { .used = 0 };

        nft_batch_begin(&batch);
        nft_batch_add_chain(&batch, CHAIN, NF_INET_PRE_ROUTING, PRIORITY);
        nft_rules_pass_others(&batch, CHAIN);
        nft_rules_pass_own(&batch, CHAIN, NLM_F_ACK);
        nft_batch_end(&batch);
        return nft_batch_send(&batch, fd);
}

int redirect_rules_add(int fd, const RedirectPlan *redirect) {
        NftBatch batch = { .used = 0 };

        nft_batch_begin(&batch);
        nft_rule_open(&batch, CHAIN, NLM_F_ACK);
        nft_match_family(&batch, redirect->address.family);
        nft_match_target(&batch, &redirect->address, redirect->prefix);
        nft_match_ports(&batch, redirect->first, redirect->last);
        redirect_packet(&batch, redirect->address.family);
        nft_rule_close(&batch);
        nft_batch_end(&batch);
        return nft_batch_send(&batch, fd);
}
