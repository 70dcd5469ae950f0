/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "maker/nft-batch.h"

/* --- a kernel that replies --- */

static void reply(int fd, uint32_t number, int errnum) {
        const struct {
                struct nlmsghdr header;
                struct nlmsgerr error;
        } message = { { sizeof(message), NLMSG_ERROR, 0, number, 0 }, { .error = -errnum } };

        assert_int_equal(send(fd, &message, sizeof(message), 0), sizeof(message));
}

/* Returns the number of all messages of the batch. */
static uint32_t receive(int fd) {
        _Alignas(struct nlmsghdr) char data[NFT_BATCH_SIZE];
        const ssize_t n = recv(fd, data, sizeof(data), 0);
        const uint32_t number = ((const struct nlmsghdr *)data)->nlmsg_seq;

        assert_true(n > 0);
        for (ssize_t at = 0; at < n;) {
                const struct nlmsghdr *header = (const void *)(data + at);

                assert_int_equal(header->nlmsg_seq, number);
                at += (ssize_t)NLMSG_ALIGN(header->nlmsg_len);
        }
        return number;
}

/* Replies to the first batch with two errors, of which the second comes late. */
static void *kernel(void *data) {
        const int fd = *(int *)data;
        const uint32_t first = receive(fd);
        uint32_t second;

        reply(fd, first, EEXIST);
        second = receive(fd);
        assert_int_not_equal(first, second);
        reply(fd, first, EOPNOTSUPP);
        reply(fd, second, 0);
        return NULL;
}

static int send_batch(int fd) {
        NftBatch batch = { .used = 0 };

        nft_batch_begin(&batch);
        nft_batch_add_chain(&batch, "chain", 0, 0);
        nft_batch_end(&batch);
        return nft_batch_send(&batch, fd);
}

static void test_a_late_reply_belongs_to_no_other_batch(void **state) {
        pthread_t thread;
        int pair[2];

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        assert_int_equal(pthread_create(&thread, NULL, kernel, &pair[1]), 0);
        assert_int_equal(send_batch(pair[0]), -EEXIST);
        assert_int_equal(send_batch(pair[0]), 0);
        (void)pthread_join(thread, NULL);
        (void)close(pair[0]);
        (void)close(pair[1]);
}

static void test_a_socket_that_ends_is_an_error(void **state) {
        int pair[2];

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
        assert_int_equal(send_batch(pair[0]), -EBADMSG);
        (void)close(pair[0]);
        (void)close(pair[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_late_reply_belongs_to_no_other_batch),
                cmocka_unit_test(test_a_socket_that_ends_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
