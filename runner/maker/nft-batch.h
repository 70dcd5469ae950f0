/* SPDX-License-Identifier: Apache-2.0 */
/* One batch of nfnetlink(7) messages that makes tables, chains and rules of the packet filter,
 * without nft(8). Programs inside cannot change these rules: that takes a capability. */
#pragma once

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/net/address.h"

enum {
        NFT_BATCH_SIZE = 16 * 1024, /* Room for all that a caller puts into one batch. */
};

#define NFT_BATCH_TABLE "holt" /* The name of the only table. */

/* A batch that is being written. Zero is an empty one. */
typedef struct NftBatch {
        _Alignas(struct nlmsghdr) char data[NFT_BATCH_SIZE];
        size_t used;
        struct nlmsghdr *header; /* The header of the message that is being written. */
        struct nlattr *list;     /* The expressions of the rule that is being written. */
} NftBatch;

/* --- messages --- */

/* Begins a message of any part of nfnetlink, with attributes to follow. */
struct nlmsghdr *nft_batch_open(NftBatch *batch, uint16_t type, uint16_t flags, uint8_t family,
                                uint16_t resource);
void nft_batch_close(NftBatch *batch);
/* Begins a batch of rules, and makes the table in it. */
void nft_batch_begin(NftBatch *batch);
/* Makes a chain of the table, for a hook of the family inet. */
void nft_batch_add_chain(NftBatch *batch, const char *chain, uint32_t hook, int32_t priority);
/* Ends the batch. The kernel carries out all of it, or nothing. */
void nft_batch_end(NftBatch *batch);

/* Opens a socket for batches in the network namespace of the caller. Returns 0 or a negative errno.
 */
int nft_batch_socket(int *ret_fd);
/* Sends the batch, one message of which asks for a reply (NLM_F_ACK). Returns 0, or the error of
 * that message or of the first that failed. */
int nft_batch_send(NftBatch *batch, int fd);

/* --- rules --- */

/* A rule is a list of expressions. Each one loads, compares or acts. If a comparison fails, the
 * kernel goes on with the next rule. flags: NLM_F_ACK or 0. */
void nft_rule_open(NftBatch *batch, const char *chain, uint16_t flags);
void nft_rule_close(NftBatch *batch);
/* Adds a rule that lets all other packets pass, so that later rules see only the first packet (SYN)
 * of TCP connections. */
void nft_rules_pass_others(NftBatch *batch, const char *chain);
/* Packets to the loopback addresses and to the sandbox's own address pass: programs inside serve
 * there. flags: those of the last rule. */
void nft_rules_pass_own(NftBatch *batch, const char *chain, uint16_t flags);

/* Writes a number in network order. */
void nft_put_number(NftBatch *batch, uint16_t type, uint32_t value);
/* Begins and ends an expression with the attributes that the caller writes between them. */
typedef struct NftExpression {
        struct nlattr *item, *data;
} NftExpression;
NftExpression nft_expression_open(NftBatch *batch, const char *name);
void nft_expression_close(NftBatch *batch, NftExpression expression);

/* Compares the family of the packet: AF_INET or AF_INET6. */
void nft_match_family(NftBatch *batch, uint8_t family);
/* Compares the first `prefix` bits of the address to which the packet goes. */
void nft_match_target(NftBatch *batch, const NetAddress *address, uint8_t prefix);
/* Compares the port to which the packet goes, first and last included. */
void nft_match_ports(NftBatch *batch, uint16_t first, uint16_t last);
void nft_match_mark(NftBatch *batch, uint32_t mark);
/* Loads bytes into a register. */
void nft_load_value(NftBatch *batch, uint32_t to, const void *value, size_t size);
void nft_accept(NftBatch *batch);
