/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104). holt-full links no library that has them, and
 * holt-links links none at all. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64 };

typedef struct Sha256 {
        uint32_t state[8];
        uint64_t length; /* Bytes so far. */
        uint8_t block[SHA256_BLOCK];
} Sha256;

void sha256_begin(Sha256 *sha);
void sha256_add(Sha256 *sha, const void *data, size_t length);
void sha256_end(Sha256 *sha, uint8_t ret[SHA256_SIZE]);

typedef struct HmacSha256 {
        Sha256 inner, outer;
} HmacSha256;

void hmac_sha256_begin(HmacSha256 *hmac, const void *key, size_t length);
void hmac_sha256_add(HmacSha256 *hmac, const void *data, size_t length);
void hmac_sha256_end(HmacSha256 *hmac, uint8_t ret[SHA256_SIZE]);
