/* SPDX-License-Identifier: Apache-2.0 */
#include "links/sha256.h"

#include <string.h>

static const uint32_t rounds[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2,
};

static uint32_t sha256_turn(uint32_t x, unsigned n) {
        return x >> n | x << (32 - n);
}

static void sha256_expand(const uint8_t *block, uint32_t w[64]) {
        for (int i = 0; i < 16; i++)
                w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
        for (int i = 16; i < 64; i++) {
                const uint32_t a = w[i - 15], b = w[i - 2];

                w[i] = w[i - 16] + (sha256_turn(a, 7) ^ sha256_turn(a, 18) ^ a >> 3) + w[i - 7] +
                       (sha256_turn(b, 17) ^ sha256_turn(b, 19) ^ b >> 10);
        }
}

static void sha256_block(Sha256 *sha, const uint8_t *block) {
        uint32_t w[64], s[8];

        sha256_expand(block, w);
        memcpy(s, sha->state, sizeof(s));
        for (int i = 0; i < 64; i++) {
                const uint32_t e = s[4], a = s[0];
                const uint32_t one = s[7] + rounds[i] + w[i] + ((e & s[5]) ^ (~e & s[6])) +
                                     (sha256_turn(e, 6) ^ sha256_turn(e, 11) ^ sha256_turn(e, 25));
                const uint32_t two = ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2])) +
                                     (sha256_turn(a, 2) ^ sha256_turn(a, 13) ^ sha256_turn(a, 22));

                memmove(s + 1, s, 7 * sizeof(*s));
                s[4] += one;
                s[0] = one + two;
        }
        for (int i = 0; i < 8; i++)
                sha->state[i] += s[i];
}

void sha256_begin(Sha256 *sha) {
        *sha = (Sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                    0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(Sha256 *sha, const void *data, size_t length) {
        const uint8_t *at = data;

        while (length > 0) {
                const size_t used = (size_t)(sha->length % SHA256_BLOCK);
                size_t part = SHA256_BLOCK - used;

                if (part > length)
                        part = length;
                memcpy(sha->block + used, at, part);
                sha->length += part;
                at += part;
                length -= part;
                if (sha->length % SHA256_BLOCK == 0)
                        sha256_block(sha, sha->block);
        }
}

void sha256_end(Sha256 *sha, uint8_t ret[SHA256_SIZE]) {
        static const uint8_t padding[SHA256_BLOCK] = { 0x80 };
        const uint64_t bits = sha->length * 8;
        const size_t used = (size_t)(sha->length % SHA256_BLOCK);
        uint8_t end[8];

        for (int i = 0; i < 8; i++)
                end[i] = (uint8_t)(bits >> (56 - 8 * i));
        sha256_add(sha, padding, used < 56 ? 56 - used : 120 - used);
        sha256_add(sha, end, sizeof(end));
        for (int i = 0; i < SHA256_SIZE; i++)
                ret[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* --- HMAC --- */

void hmac_sha256_begin(HmacSha256 *hmac, const void *key, size_t length) {
        uint8_t block[SHA256_BLOCK] = { 0 };

        sha256_begin(&hmac->inner);
        sha256_begin(&hmac->outer);
        if (length > sizeof(block)) {
                sha256_add(&hmac->inner, key, length);
                sha256_end(&hmac->inner, block);
                sha256_begin(&hmac->inner);
        } else {
                memcpy(block, key, length);
        }
        for (size_t i = 0; i < sizeof(block); i++)
                block[i] ^= 0x36;
        sha256_add(&hmac->inner, block, sizeof(block));
        for (size_t i = 0; i < sizeof(block); i++)
                block[i] ^= 0x36 ^ 0x5c;
        sha256_add(&hmac->outer, block, sizeof(block));
        explicit_bzero(block, sizeof(block));
}

void hmac_sha256_add(HmacSha256 *hmac, const void *data, size_t length) {
        sha256_add(&hmac->inner, data, length);
}

void hmac_sha256_end(HmacSha256 *hmac, uint8_t ret[SHA256_SIZE]) {
        uint8_t inner[SHA256_SIZE];

        sha256_end(&hmac->inner, inner);
        sha256_add(&hmac->outer, inner, sizeof(inner));
        sha256_end(&hmac->outer, ret);
        explicit_bzero(hmac, sizeof(*hmac));
}
