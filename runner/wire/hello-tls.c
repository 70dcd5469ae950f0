/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/hello-tls.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "wire/authority.h"

enum {
        TLS_ALERT = 0x15,
        TLS_HANDSHAKE = 0x16,
        TLS_MAJOR = 3,
        TLS_MAJORS_MAX = 16, /* Go's server accepts any major version below this in the first
                                record. */
        TLS_RECORD_HEADER = 5,
        TLS_RECORD_MAX = 16384, /* Bytes of a record without its header. */
        TLS_MESSAGE_HEADER = 4,
        TLS_CLIENT_HELLO = 1,
        TLS_WARNING = 1,
        TLS_SERVER_NAME = 0,
        TLS_ECH = 0xfe0d,  /* Encrypted ClientHello, RFC 9849. */
        TLS_ESNI = 0xffce, /* Encrypted SNI, an earlier draft of it. */
        SSL2_CLIENT_HELLO = 1,
};

/* --- the message --- */

typedef struct TlsReader {
        const uint8_t *at, *end;
} TlsReader;

static size_t tls_left(const TlsReader *in) {
        return (size_t)(in->end - in->at);
}

/* Takes a vector that begins with `width` bytes of its length. */
static int tls_take_vector(TlsReader *in, size_t width, TlsReader *ret) {
        size_t length = 0;

        if (tls_left(in) < width)
                return -EBADMSG;
        for (size_t i = 0; i < width; i++)
                length = length << 8 | *in->at++;
        if (tls_left(in) < length)
                return -EBADMSG;
        *ret = (TlsReader){ in->at, in->at + length };
        in->at += length;
        return 0;
}

/* The list must have exactly one entry, a host name. Some servers would take the first of two,
 * others the last. */
static int tls_read_server_name(TlsReader extension, Hello *hello) {
        TlsReader list, name;
        Authority host;

        if (tls_take_vector(&extension, 2, &list) < 0 || tls_left(&extension) > 0 ||
            tls_left(&list) == 0 || *list.at++ != 0 || tls_take_vector(&list, 2, &name) < 0 ||
            tls_left(&list) > 0)
                return -EBADMSG;
        if (authority_host(name.at, tls_left(&name), &host) < 0)
                return -EBADMSG;
        strcpy(hello->name, host.host);
        return 0;
}

static int tls_read_extensions(TlsReader in, Hello *hello) {
        while (tls_left(&in) > 0) {
                TlsReader extension;
                unsigned type;

                if (tls_left(&in) < 2)
                        return -EBADMSG;
                type = (unsigned)(in.at[0] << 8 | in.at[1]);
                in.at += 2;
                if (tls_take_vector(&in, 2, &extension) < 0)
                        return -EBADMSG;
                if (type == TLS_ECH || type == TLS_ESNI)
                        hello->hidden = true;
                if (type == TLS_SERVER_NAME &&
                    (hello->name[0] || tls_read_server_name(extension, hello) < 0))
                        return -EBADMSG;
        }
        return 0;
}

/* Reads a ClientHello without its header. */
static int tls_read_client_hello(TlsReader in, Hello *hello) {
        TlsReader session, ciphers, compression, extensions;

        if (tls_left(&in) < 2 + 32) /* Version and random bytes. */
                return -EBADMSG;
        in.at += 2 + 32;
        if (tls_take_vector(&in, 1, &session) < 0 || tls_left(&session) > 32 ||
            tls_take_vector(&in, 2, &ciphers) < 0 || tls_left(&ciphers) == 0 ||
            tls_left(&ciphers) % 2 != 0 || tls_take_vector(&in, 1, &compression) < 0 ||
            tls_left(&compression) == 0)
                return -EBADMSG;
        if (tls_left(&in) == 0)
                return 0;
        if (tls_take_vector(&in, 2, &extensions) < 0 || tls_left(&in) > 0)
                return -EBADMSG;
        return tls_read_extensions(extensions, hello);
}

/* --- records --- */

/* Copies the first `size` bytes of the message. All of their records have been checked. */
static void tls_gather(const uint8_t *data, size_t size, uint8_t *ret) {
        while (size > 0) {
                size_t record = (size_t)(data[3] << 8 | data[4]);
                size_t part = record < size ? record : size;

                memcpy(ret, data + TLS_RECORD_HEADER, part);
                ret += part;
                size -= part;
                data += TLS_RECORD_HEADER + record;
        }
}

static void tls_read_message(const uint8_t *message, Hello *hello) {
        TlsReader in = { message + TLS_MESSAGE_HEADER, message + hello->message };
        Hello read = *hello;

        if (tls_read_client_hello(in, &read) < 0) {
                hello_refuse(hello, "a malformed ClientHello");
                return;
        }
        *hello = read;
        hello->kind = HELLO_TLS;
}

/* A message in several records is copied, so that it lies in one piece. */
static void tls_read_pieces(const uint8_t *data, Hello *hello) {
        _uninitialized_ uint8_t message[HELLO_MAX];

        tls_gather(data, hello->message, message);
        tls_read_message(message, hello);
}

/* Goes on to the next record. The message is not longer than HELLO_MAX. */
static void tls_add_record(const uint8_t *data, size_t record, Hello *hello) {
        bool first = hello->seen == 0;

        hello->seen += TLS_RECORD_HEADER + record;
        hello->body += record;
        if (hello->message == 0 && hello->body >= TLS_MESSAGE_HEADER) {
                uint8_t header[TLS_MESSAGE_HEADER];

                tls_gather(data, sizeof(header), header);
                hello->message = TLS_MESSAGE_HEADER +
                                 (size_t)(header[1] << 16 | header[2] << 8 | header[3]);
                if (hello->message > HELLO_MAX - TLS_RECORD_HEADER)
                        hello_refuse(hello, "a ClientHello that is too long");
        }
        if (hello->kind != HELLO_MORE || hello->message == 0 || hello->body < hello->message)
                return;
        if (first)
                tls_read_message(data + TLS_RECORD_HEADER, hello);
        else
                tls_read_pieces(data, hello);
}

/* Returns whether the first bytes are a record that begins a ClientHello. Some servers skip
 * warnings before a ClientHello, and Go's server accepts other versions. No honest client sends
 * these. They would hide the name, so they are refused. */
static bool tls_begins(const uint8_t *data, Hello *hello) {
        size_t record = (size_t)(data[3] << 8 | data[4]);

        if (data[0] == TLS_HANDSHAKE && data[1] == TLS_MAJOR)
                return true;
        if (data[0] == TLS_HANDSHAKE && record > 0 && data[5] == TLS_CLIENT_HELLO)
                hello_refuse(hello, "a ClientHello of an unknown version");
        else if (data[0] == TLS_ALERT && record == 2 && data[5] == TLS_WARNING)
                hello_refuse(hello, "a TLS warning before the ClientHello");
        else
                hello->kind = HELLO_OTHER;
        return false;
}

void hello_tls_parse(const uint8_t *data, size_t length, Hello *hello) {
        if (length >= 2 && data[1] >= TLS_MAJORS_MAX) {
                hello->kind = HELLO_OTHER;
                return;
        }
        if (length <= TLS_RECORD_HEADER || !tls_begins(data, hello))
                return;
        while (hello->kind == HELLO_MORE && length - hello->seen >= TLS_RECORD_HEADER) {
                const uint8_t *header = data + hello->seen;
                size_t record = (size_t)(header[3] << 8 | header[4]);

                if (header[0] != TLS_HANDSHAKE || header[1] != TLS_MAJOR || record == 0 ||
                    record > TLS_RECORD_MAX || data[TLS_RECORD_HEADER] != TLS_CLIENT_HELLO) {
                        hello_refuse(hello, "a malformed TLS record");
                        return;
                }
                if (length - hello->seen - TLS_RECORD_HEADER < record)
                        return;
                tls_add_record(data, record, hello);
        }
}

void hello_ssl2_parse(const uint8_t *data, size_t length, Hello *hello) {
        if (length >= 3 && data[2] != SSL2_CLIENT_HELLO)
                hello->kind = HELLO_OTHER;
        else if (length >= 5)
                hello->kind = data[3] == TLS_MAJOR || (data[3] == 0 && data[4] == 2) ? HELLO_TLS
                                                                                     : HELLO_OTHER;
}
