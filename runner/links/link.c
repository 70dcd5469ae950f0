/* SPDX-License-Identifier: Apache-2.0 */
#include "links/link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"

static const char digits[] = "0123456789abcdef";
static const char *const link_modes[] = { "get", "put" };

/* --- the path --- */

bool link_path_fits(const char *path) {
        if (path[0] == '\0' || strlen(path) > LINK_PATH_MAX)
                return false;
        for (;;) {
                const size_t length = strcspn(path, "/");

                if (length == 0 || (length <= 2 && strspn(path, ".") >= length))
                        return false;
                if (path[length] == '\0')
                        return true;
                path += length + 1;
        }
}

/* The unreserved characters of RFC 3986, and the slash between names. */
static bool link_is_plain(uint8_t c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c && strchr("-._~/", c));
}

static char *link_write_path(const char *path, char *at) {
        for (; *path; path++) {
                const uint8_t c = (uint8_t)*path;

                if (link_is_plain(c)) {
                        *at++ = (char)c;
                        continue;
                }
                *at++ = '%';
                *at++ = digits[c >> 4];
                *at++ = digits[c & 15];
        }
        *at = '\0';
        return at;
}

static int link_digit(char c) {
        const char *found = c ? strchr(digits, c) : NULL;

        return found ? (int)(found - digits) : -1;
}

/* Returns 0 or -EBADMSG. */
static int link_read_path(const char *at, const char *end, char ret[LINK_PATH_MAX + 1]) {
        size_t n = 0;

        while (at < end) {
                int c = (uint8_t)*at++;

                if (c == '%') {
                        const int high = end - at >= 2 ? link_digit(at[0]) : -1;
                        const int low = high >= 0 ? link_digit(at[1]) : -1;

                        c = low < 0 ? 0 : high << 4 | low;
                        at += 2;
                        if (link_is_plain((uint8_t)c))
                                return -EBADMSG;
                } else if (!link_is_plain((uint8_t)c)) {
                        return -EBADMSG;
                }
                if (c == 0 || n == LINK_PATH_MAX)
                        return -EBADMSG;
                ret[n++] = (char)c;
        }
        ret[n] = '\0';
        return link_path_fits(ret) ? 0 : -EBADMSG;
}

/* --- the signature --- */

/* Lengths and NULs separate the parts, so no two links sign the same bytes. */
static void link_sign(const LinkKey *key, const Link *link, uint8_t ret[SHA256_SIZE]) {
        HmacSha256 hmac;
        char text[64];
        const int n = snprintf(text, sizeof(text), "holt-link 1 %s %" PRIu32 " %" PRIu64,
                               link_modes[link->upload], link->id, link->expires_ms);

        hmac_sha256_begin(&hmac, key->bytes, sizeof(key->bytes));
        hmac_sha256_add(&hmac, text, (size_t)n + 1);
        hmac_sha256_add(&hmac, key->session, strnlen(key->session, sizeof(key->session)));
        hmac_sha256_add(&hmac, "", 1);
        hmac_sha256_add(&hmac, link->path, strlen(link->path));
        hmac_sha256_end(&hmac, ret);
}

/* Takes the same time for any difference. */
static bool link_same(const uint8_t *a, const uint8_t *b) {
        volatile uint8_t difference = 0;

        for (size_t i = 0; i < SHA256_SIZE; i++)
                difference = (uint8_t)(difference | (a[i] ^ b[i]));
        return difference == 0;
}

/* --- the text --- */

void link_write(const LinkKey *key, const Link *link, char ret[LINK_TARGET_MAX + 1]) {
        uint8_t signature[SHA256_SIZE];
        char *at = ret + sprintf(ret, "/v1/%s/%" PRIu32 "/%" PRIu64 "/", link_modes[link->upload],
                                 link->id, link->expires_ms);

        link_sign(key, link, signature);
        for (size_t i = 0; i < sizeof(signature); i++) {
                *at++ = digits[signature[i] >> 4];
                *at++ = digits[signature[i] & 15];
        }
        *at++ = '/';
        (void)link_write_path(link->path, at);
}

/* Takes the part before the next slash off *at. Returns false if there is no slash. */
static bool link_take(const char **at, const char *end, const char **ret, size_t *ret_length) {
        const char *slash = memchr(*at, '/', (size_t)(end - *at));

        if (!slash)
                return false;
        *ret = *at;
        *ret_length = (size_t)(slash - *at);
        *at = slash + 1;
        return true;
}

/* A number without needless zeros, from 1. */
static bool link_take_number(const char **at, const char *end, uint64_t max, uint64_t *ret) {
        const char *part;
        char text[24];
        size_t length;

        if (!link_take(at, end, &part, &length) || length == 0 || length >= sizeof(text) ||
            part[0] == '0')
                return false;
        memcpy(text, part, length);
        text[length] = '\0';
        return strlen(text) == length && str_to_uint(text, max, ret) == 0;
}

static bool link_take_signature(const char **at, const char *end, uint8_t ret[SHA256_SIZE]) {
        const char *part;
        size_t length;

        if (!link_take(at, end, &part, &length) || length != 2 * (size_t)SHA256_SIZE)
                return false;
        for (size_t i = 0; i < SHA256_SIZE; i++) {
                const int high = link_digit(part[2 * i]), low = link_digit(part[2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                ret[i] = (uint8_t)(high << 4 | low);
        }
        return true;
}

static bool link_take_mode(const char **at, bool *ret) {
        for (unsigned i = 0; i < 2; i++)
                if (str_starts(*at, i ? "/v1/put/" : "/v1/get/")) {
                        *at += 8;
                        *ret = i;
                        return true;
                }
        return false;
}

static int link_read_text(const char *text, size_t length, Link *ret, uint8_t *signature) {
        const char *at = text, *end = text + length;
        uint64_t id, expires;

        if (!link_take_mode(&at, &ret->upload) || !link_take_number(&at, end, UINT32_MAX, &id) ||
            !link_take_number(&at, end, INT64_MAX, &expires) ||
            !link_take_signature(&at, end, signature))
                return -EBADMSG;
        ret->id = (uint32_t)id;
        ret->expires_ms = expires;
        return link_read_path(at, end, ret->path);
}

int link_read(const LinkKey *key, const char *target, size_t length, Link *ret) {
        uint8_t given[SHA256_SIZE], right[SHA256_SIZE];
        char text[LINK_TARGET_MAX + 1];
        Link link = { 0 };

        if (length > LINK_TARGET_MAX || memchr(target, '\0', length))
                return -EBADMSG;
        memcpy(text, target, length);
        text[length] = '\0';
        if (link_read_text(text, length, &link, given) < 0)
                return -EBADMSG;
        link_sign(key, &link, right);
        if (!link_same(given, right))
                return -EACCES;
        *ret = link;
        return 0;
}
