/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/java-trust.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum {
        JAVA_VERSION = 2,
        JAVA_TRUSTED = 2, /* the kind of an entry: a certificate that is trusted */
        JAVA_DIGEST = 20, /* bytes of SHA-1 */
        JAVA_ENTRY = 64,  /* bytes of an entry without its certificate, at most */
};

#define JAVA_MAGIC UINT32_C(0xfeedfeed)

/* The password "changeit" in UTF-16, and the text that the format adds to it. */
static const char java_salt[] = "\0c\0h\0a\0n\0g\0e\0i\0tMighty Aphrodite";

typedef struct JavaStore {
        unsigned char *data;
        size_t size, room;
} JavaStore;

static void java_put(JavaStore *store, const void *data, size_t size) {
        memcpy(store->data + store->size, data, size);
        store->size += size;
}

static void java_put_number(JavaStore *store, uint64_t value, size_t bytes) {
        while (bytes-- > 0)
                store->data[store->size++] = (unsigned char)(value >> (8 * bytes));
}

static void java_put_text(JavaStore *store, const char *text) {
        java_put_number(store, strlen(text), 2);
        java_put(store, text, strlen(text));
}

static void java_put_certificate(JavaStore *store, const gnutls_datum_t *der, unsigned number) {
        char alias[24];

        (void)snprintf(alias, sizeof(alias), "holt-%u", number);
        java_put_number(store, JAVA_TRUSTED, 4);
        java_put_text(store, alias);
        java_put_number(store, 0, 8); /* the time of creation */
        java_put_text(store, "X.509");
        java_put_number(store, der->size, 4);
        java_put(store, der->data, der->size);
}

/* Adds all certificates. A text that only looks like one is left out. Returns their number. */
static unsigned java_put_all(JavaStore *store, const char *pem) {
        static const char begin[] = "-----BEGIN CERTIFICATE-----",
                          end[] = "-----END CERTIFICATE-----";
        unsigned count = 0;
        const char *from, *to;

        while ((from = strstr(pem, begin)) && (to = strstr(from, end))) {
                gnutls_datum_t text = { .data = (unsigned char *)(uintptr_t)from }, der;

                pem = to + strlen(end);
                text.size = (unsigned)(pem - from);
                if (gnutls_pem_base64_decode2("CERTIFICATE", &text, &der) < 0)
                        continue;
                java_put_certificate(store, &der, count++);
                gnutls_free(der.data);
        }
        return count;
}

/* How many bytes the store takes at most: base64 is longer than what it codes. */
static size_t java_room(const char *pem) {
        size_t room = strlen(pem) + JAVA_ENTRY + JAVA_DIGEST;

        while ((pem = strstr(pem, "-----BEGIN"))) {
                room += JAVA_ENTRY;
                pem++;
        }
        return room;
}

static int java_digest(JavaStore *store) {
        gnutls_hash_hd_t hash;
        int r = gnutls_hash_init(&hash, GNUTLS_DIG_SHA1);

        if (r < 0)
                return -EINVAL;
        r = gnutls_hash(hash, java_salt, sizeof(java_salt) - 1);
        if (r == 0)
                r = gnutls_hash(hash, store->data, store->size);
        gnutls_hash_deinit(hash, store->data + store->size);
        store->size += JAVA_DIGEST;
        return r < 0 ? -EINVAL : 0;
}

int java_trust_make(const char *pem, void **ret, size_t *ret_size) {
        JavaStore store = { .room = java_room(pem) };
        size_t place;
        unsigned count;
        int r;

        store.data = malloc(store.room);
        if (!store.data)
                return -ENOMEM;
        java_put_number(&store, JAVA_MAGIC, 4);
        java_put_number(&store, JAVA_VERSION, 4);
        place = store.size;
        java_put_number(&store, 0, 4);
        count = java_put_all(&store, pem);
        for (size_t i = 0; i < 4; i++)
                store.data[place + i] = (unsigned char)(count >> (8 * (3 - i)));
        r = java_digest(&store);
        if (r < 0) {
                free(store.data);
                return r;
        }
        *ret = store.data;
        *ret_size = store.size;
        return 0;
}
