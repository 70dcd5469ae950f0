/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/upstream-wire.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "policy/net/rules.h"

size_t upstream_write(const char *host, uint16_t port, const char *credentials,
                      char ret[UPSTREAM_REQUEST_MAX]) {
        const bool brackets = strchr(host, ':');
        char target[NET_NAME_MAX + 16];

        (void)snprintf(target, sizeof(target), "%s%s%s:%u", brackets ? "[" : "", host,
                       brackets ? "]" : "", port);
        (void)snprintf(ret, UPSTREAM_REQUEST_MAX, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n",
                       target, target, credentials[0] ? "Proxy-Authorization: Basic " : "",
                       credentials, credentials[0] ? "\r\n" : "");
        return strlen(ret);
}

/* Moves *seen on, to the end of the head if that has arrived. Returns whether it has. The head ends
 * with an empty line; some proxies send no carriage returns. */
static bool upstream_find_end(const uint8_t *data, size_t length, size_t *seen) {
        for (; *seen < length; (*seen)++) {
                const size_t i = *seen;

                if (data[i] == '\n' && i > 0 &&
                    (data[i - 1] == '\n' ||
                     (data[i - 1] == '\r' && i > 1 && data[i - 2] == '\n'))) {
                        (*seen)++;
                        return true;
                }
        }
        return false;
}

static bool upstream_is_digit(uint8_t byte) {
        return byte >= '0' && byte <= '9';
}

int upstream_read(const uint8_t *data, size_t length, size_t *seen, unsigned *ret_status) {
        static const char version[] = "HTTP/1.";
        const size_t known = length < sizeof(version) - 1 ? length : sizeof(version) - 1;

        if (memcmp(data, version, known) != 0)
                return -EBADMSG;
        if (!upstream_find_end(data, length, seen))
                return length < UPSTREAM_REPLY_MAX ? 0 : -EBADMSG;
        if (*seen < 13 || !upstream_is_digit(data[7]) || data[8] != ' ' ||
            !upstream_is_digit(data[9]) || !upstream_is_digit(data[10]) ||
            !upstream_is_digit(data[11]) ||
            (data[12] != ' ' && data[12] != '\r' && data[12] != '\n'))
                return -EBADMSG;
        *ret_status = (unsigned)(data[9] - '0') * 100 + (unsigned)(data[10] - '0') * 10 +
                      (unsigned)(data[11] - '0');
        return 1;
}

int upstream_errno(unsigned status) {
        static const struct {
                unsigned status;
                int errnum;
        } rows[] = {
                { 401, EACCES },       { 403, EACCES },       { 407, EACCES },
                { 404, EHOSTUNREACH }, { 502, EHOSTUNREACH }, { 504, ETIMEDOUT },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (rows[i].status == status)
                        return rows[i].errnum;
        return ECONNREFUSED;
}
