/* SPDX-License-Identifier: Apache-2.0 */
/* Signed links: SHA-256, the text and the signature of a link, ranges, and bodies in chunks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "links/chunks.h"
#include "links/link.h"
#include "links/range.h"

static const char *hex(const uint8_t *bytes) {
        static char text[2 * SHA256_SIZE + 1];

        for (size_t i = 0; i < SHA256_SIZE; i++)
                (void)sprintf(text + 2 * i, "%02x", bytes[i]);
        return text;
}

/* --- SHA-256 and HMAC --- */

/* Adds the bytes in pieces of `piece` bytes. */
static const char *sha256_of(const char *bytes, size_t length, size_t piece) {
        uint8_t digest[SHA256_SIZE];
        Sha256 sha;

        sha256_begin(&sha);
        for (size_t at = 0; at < length; at += piece)
                sha256_add(&sha, bytes + at, length - at < piece ? length - at : piece);
        sha256_end(&sha, digest);
        return hex(digest);
}

/* The examples of FIPS 180-4 and of NIST's test vectors. */
static void test_sha256(void **state) {
        static const struct {
                const char *text, *digest;
        } cases[] = {
                { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
                { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
                { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
                { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
                  "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
        };
        _cleanup_free_ char *million = malloc(1000000);

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (size_t piece = 1; piece < 70; piece++)
                        assert_string_equal(sha256_of(cases[i].text, strlen(cases[i].text), piece),
                                            cases[i].digest);
        memset(million, 'a', 1000000);
        assert_string_equal(sha256_of(million, 1000000, 4096),
                            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Lengths around the end of a block differ in their padding; sha256sum has computed the last
 * digest. */
static void test_sha256_lengths(void **state) {
        static const struct {
                size_t length;
                const char *digest;
        } cases[] = {
                { 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
                { 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
                { 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
                { 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0" },
        };
        char text[65];

        (void)state;
        memset(text, 'a', sizeof(text));
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_string_equal(sha256_of(text, cases[i].length, 7), cases[i].digest);
}

/* The test cases 1, 2, 3 and 6 of RFC 4231. */
static void test_hmac(void **state) {
        static const struct {
                uint8_t byte; /* The key: this byte, repeated, or "Jefe". */
                size_t length;
                const char *text, *digest;
        } cases[] = {
                { 0x0b, 20, "Hi There",
                  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
                { 0, 4, "what do ya want for nothing?",
                  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
                { 0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
                  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint8_t key[131], digest[SHA256_SIZE];
                HmacSha256 hmac;

                memset(key, cases[i].byte, sizeof(key));
                if (!cases[i].byte)
                        memcpy(key, "Jefe", 4);
                hmac_sha256_begin(&hmac, key, cases[i].length);
                hmac_sha256_add(&hmac, cases[i].text, strlen(cases[i].text));
                hmac_sha256_end(&hmac, digest);
                assert_string_equal(hex(digest), cases[i].digest);
        }
}

/* --- links --- */

static const LinkKey the_key = { .bytes = { 1, 2, 3 }, .session = "work" };

static void test_both_ways(void **state) {
        static const char *const paths[] = {
                "a", "report.pdf", "a/b/c", "...", "a b", "\xc3\xa4", "\xff\x01%00?#", "a/.b", "~",
        };

        (void)state;
        for (size_t i = 0; i < 2 * ELEMENTSOF(paths); i++) {
                Link link = { .upload = i % 2, .id = UINT32_MAX, .expires_ms = 1700000000000 };
                char target[LINK_TARGET_MAX + 1];
                Link back;

                (void)strcpy(link.path, paths[i / 2]);
                assert_true(link_path_fits(link.path));
                link_write(&the_key, &link, target);
                assert_int_equal(link_read(&the_key, target, strlen(target), &back), 0);
                assert_int_equal(back.upload, link.upload);
                assert_int_equal(back.id, link.id);
                assert_int_equal(back.expires_ms, link.expires_ms);
                assert_string_equal(back.path, link.path);
        }
}

static void test_the_longest_path(void **state) {
        Link link = { .id = UINT32_MAX, .upload = true, .expires_ms = INT64_MAX };
        char target[LINK_TARGET_MAX + 1];
        Link back;

        (void)state;
        memset(link.path, 0xff, LINK_PATH_MAX);
        link_write(&the_key, &link, target);
        assert_true(strlen(target) <= LINK_TARGET_MAX);
        assert_int_equal(link_read(&the_key, target, strlen(target), &back), 0);
        assert_string_equal(back.path, link.path);
}

static void test_paths_that_do_not_fit(void **state) {
        static const char *const paths[] = {
                "", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a", "a/.", "a/..", "a/../b",
        };
        char long_path[LINK_PATH_MAX + 2];

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                if (link_path_fits(paths[i]))
                        fail_msg("\"%s\"", paths[i]);
        memset(long_path, 'a', sizeof(long_path));
        long_path[LINK_PATH_MAX + 1] = '\0';
        assert_false(link_path_fits(long_path));
        long_path[LINK_PATH_MAX] = '\0';
        assert_true(link_path_fits(long_path));
}

/* No other text than the one that was signed is a link. */
static void test_each_byte_counts(void **state) {
        const Link link = { .id = 7, .expires_ms = 1700000000000, .path = "a%b/c" };
        char target[LINK_TARGET_MAX + 1];
        size_t length;
        Link back;

        (void)state;
        link_write(&the_key, &link, target);
        length = strlen(target);
        for (size_t i = 0; i < length; i++)
                for (unsigned c = 0; c < 256; c++) {
                        const char old = target[i];

                        target[i] = (char)c;
                        assert_true((link_read(&the_key, target, length, &back) == 0) ==
                                    (old == (char)c));
                        target[i] = old;
                }
        for (size_t i = 0; i < length; i++)
                assert_true(link_read(&the_key, target, i, &back) < 0);
        target[length] = 'x';
        assert_true(link_read(&the_key, target, length + 1, &back) < 0);
}

static void test_other_keys(void **state) {
        const Link link = { .id = 7, .expires_ms = 1700000000000, .path = "a" };
        char target[LINK_TARGET_MAX + 1];
        LinkKey other = the_key, name = the_key;
        Link back = { .id = 42 };

        (void)state;
        other.bytes[LINK_KEY_SIZE - 1] ^= 1;
        name.session[0] = 'W';
        link_write(&the_key, &link, target);
        assert_int_equal(link_read(&other, target, strlen(target), &back), -EACCES);
        assert_int_equal(link_read(&name, target, strlen(target), &back), -EACCES);
        assert_int_equal(back.id, 42);
}

static void test_texts_that_are_no_links(void **state) {
        static const char *const texts[] = {
                "",
                "/",
                "/v1/get/",
                "/v1/get/1/2/3/a",
                "/v2/get/1/2/3/a",
                "GET /",
                "/v1/get/1/2//a",
        };
        Link back;

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                assert_int_equal(link_read(&the_key, texts[i], strlen(texts[i]), &back), -EBADMSG);
}

/* --- ranges --- */

static void test_ranges(void **state) {
        static const struct {
                const char *text;
                uint64_t size;
                int result;
                uint64_t start, length;
        } cases[] = {
                { "bytes=0-0", 10, 1, 0, 1 },
                { "bytes=2-5", 10, 1, 2, 4 },
                { "BYTES=2-", 10, 1, 2, 8 },
                { "bytes=-3", 10, 1, 7, 3 },
                { "bytes=-30", 10, 1, 0, 10 },
                { "bytes=9-99", 10, 1, 9, 1 },
                { "bytes=9-99999999999999999999999", 10, 1, 9, 1 },
                { "bytes=10-", 10, -ERANGE, 0, 0 },
                { "bytes=99999999999999999999999-", 10, -ERANGE, 0, 0 },
                { "bytes=0-", 0, -ERANGE, 0, 0 },
                { "bytes=-0", 10, -ERANGE, 0, 0 },
                { "bytes=-1", 0, -ERANGE, 0, 0 },
                { "bytes=5-2", 10, 0, 0, 0 },
                { "bytes=-", 10, 0, 0, 0 },
                { "bytes=0-1,3-4", 10, 0, 0, 0 },
                { "bytes=0-1 ", 10, 0, 0, 0 },
                { "bytes= 0-1", 10, 0, 0, 0 },
                { "bytes=+0-1", 10, 0, 0, 0 },
                { "lines=0-1", 10, 0, 0, 0 },
                { "bytes", 10, 0, 0, 0 },
                { "", 10, 0, 0, 0 },
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t start = 0, length = 0;
                int r = range_read(cases[i].text, strlen(cases[i].text), cases[i].size, &start,
                                   &length);

                if (r != cases[i].result || start != cases[i].start || length != cases[i].length)
                        fail_msg("\"%s\": %d", cases[i].text, r);
        }
}

/* Decodes the text, and again in single bytes. */
static void expect_chunks(const char *text, const char *wanted, ChunkState end) {
        for (size_t step = 1; step <= strlen(text); step += strlen(text) - 1) {
                ChunkReader reader = { 0 };
                char got[64] = "";
                ssize_t n = 0;

                for (size_t at = 0; n >= 0 && at < strlen(text); at += step) {
                        char piece[64];

                        memcpy(piece, text + at, step);
                        n = chunks_decode(&reader, piece, step);
                        if (n > 0)
                                strncat(got, piece, (size_t)n);
                }
                if ((n < 0) != !wanted)
                        fail_msg("\"%s\": %zd", text, n);
                if (!wanted)
                        continue;
                assert_string_equal(got, wanted);
                assert_int_equal(reader.state, end);
        }
}

static void test_chunks(void **state) {
        (void)state;
        expect_chunks("3\r\nabc\r\n0\r\n\r\n", "abc", CHUNK_END);
        expect_chunks("1;x=y\r\na\r\n0\r\nA: b\r\n\r\n", "a", CHUNK_END);
        expect_chunks("a\r\n0123456789\r\n", "0123456789", CHUNK_SIZE);
        expect_chunks("0\r\n\r\n3\r\nabc\r\n", "", CHUNK_END);
        expect_chunks("fffffffffffffff\r\nab", "ab", CHUNK_DATA);
        expect_chunks("0000000000000001\r\n", NULL, 0);
        expect_chunks("3\nabc\n", NULL, 0);
        expect_chunks("-3\r\nabc", NULL, 0);
        expect_chunks("3\r\nabcd\r\n", NULL, 0);
        expect_chunks("\r\nabc", NULL, 0);
        expect_chunks("0\r\n\rx", NULL, 0);
        expect_chunks("0\r\na\nb", NULL, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sha256),
                cmocka_unit_test(test_sha256_lengths),
                cmocka_unit_test(test_hmac),
                cmocka_unit_test(test_both_ways),
                cmocka_unit_test(test_the_longest_path),
                cmocka_unit_test(test_paths_that_do_not_fit),
                cmocka_unit_test(test_each_byte_counts),
                cmocka_unit_test(test_other_keys),
                cmocka_unit_test(test_texts_that_are_no_links),
                cmocka_unit_test(test_ranges),
                cmocka_unit_test(test_chunks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
