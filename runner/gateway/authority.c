/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/authority.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/pass-fds.h"
#include "base/strings.h"
#include "gateway/java-trust.h"
#include "network/gateway-protocol.h"

enum {
        SERIAL_BYTES = 16,
        YEARS = 10, /* A session may live long. The certificates end with its process. */
        YEAR = 366 * 24 * 60 * 60,
        DAY = 24 * 60 * 60, /* The clock inside a program may be wrong. */
};

typedef struct Authority {
        gnutls_x509_privkey_t ca_key, key;
        gnutls_x509_crt_t ca, certificate;
        gnutls_datum_t ca_pem, pem, key_pem;
} Authority;

/* --- certificates --- */

static int authority_make_key(gnutls_x509_privkey_t *ret) {
        int r = gnutls_x509_privkey_init(ret);

        return r < 0 ? r
                     : gnutls_x509_privkey_generate2(
                               *ret, GNUTLS_PK_ECDSA,
                               GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0, NULL, 0);
}

/* Begins a certificate: everything that the CA's own and the other one have in common. */
static int certificate_begin(gnutls_x509_crt_t *ret, gnutls_x509_privkey_t key, const char *name) {
        const time_t now = time(NULL);
        unsigned char serial[SERIAL_BYTES], id[32];
        size_t size = sizeof(id);
        int r = gnutls_x509_crt_init(ret);

        if (r == 0)
                r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
        serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, without leading zeros */
        if (r == 0)
                r = gnutls_x509_crt_set_version(*ret, 3);
        if (r == 0)
                r = gnutls_x509_crt_set_serial(*ret, serial, sizeof(serial));
        if (r == 0)
                r = gnutls_x509_crt_set_activation_time(*ret, now - DAY);
        if (r == 0)
                r = gnutls_x509_crt_set_expiration_time(*ret, now + (time_t)YEARS * YEAR);
        if (r == 0)
                r = gnutls_x509_crt_set_dn_by_oid(*ret, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                  (unsigned)strlen(name));
        if (r == 0)
                r = gnutls_x509_crt_set_key(*ret, key);
        if (r == 0)
                r = gnutls_x509_crt_get_key_id(*ret, GNUTLS_KEYID_USE_SHA256, id, &size);
        return r < 0 ? r : gnutls_x509_crt_set_subject_key_id(*ret, id, size);
}

static int authority_make_ca(Authority *a) {
        int r = authority_make_key(&a->ca_key);

        if (r == 0)
                r = certificate_begin(&a->ca, a->ca_key, "holt: CA of one sandbox");
        if (r == 0)
                r = gnutls_x509_crt_set_basic_constraints(a->ca, 1, 0);
        if (r == 0)
                r = gnutls_x509_crt_set_key_usage(a->ca, GNUTLS_KEY_KEY_CERT_SIGN);
        return r < 0 ? r : gnutls_x509_crt_sign2(a->ca, a->ca, a->ca_key, GNUTLS_DIG_SHA256, 0);
}

static int certificate_add_hosts(gnutls_x509_crt_t certificate, const Gateway *gateway) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < gateway->routes_count; i++) {
                const StrList *hosts = &gateway->routes[i].tls_hosts;

                for (size_t k = 0; r == 0 && k < hosts->count; k++)
                        r = gnutls_x509_crt_set_subject_alt_name(
                                certificate, GNUTLS_SAN_DNSNAME, hosts->items[k],
                                (unsigned)strlen(hosts->items[k]), GNUTLS_FSAN_APPEND);
        }
        return r;
}

static int authority_sign(Authority *a, const Gateway *gateway) {
        unsigned char id[32];
        size_t size = sizeof(id);
        int r = authority_make_key(&a->key);

        if (r == 0)
                r = certificate_begin(&a->certificate, a->key, "holt-gateway");
        if (r == 0)
                r = certificate_add_hosts(a->certificate, gateway);
        if (r == 0)
                r = gnutls_x509_crt_set_basic_constraints(a->certificate, 0, -1);
        if (r == 0)
                r = gnutls_x509_crt_set_key_usage(a->certificate, GNUTLS_KEY_DIGITAL_SIGNATURE);
        if (r == 0)
                r = gnutls_x509_crt_set_key_purpose_oid(a->certificate, GNUTLS_KP_TLS_WWW_SERVER,
                                                        0);
        if (r == 0)
                r = gnutls_x509_crt_get_subject_key_id(a->ca, id, &size, NULL);
        if (r == 0)
                r = gnutls_x509_crt_set_authority_key_id(a->certificate, id, size);
        return r < 0 ? r
                     : gnutls_x509_crt_sign2(a->certificate, a->ca, a->ca_key, GNUTLS_DIG_SHA256,
                                             0);
}

/* Writes the texts. GnuTLS erases a key's memory when it frees the key. */
static int authority_export(Authority *a) {
        int r = gnutls_x509_crt_export2(a->ca, GNUTLS_X509_FMT_PEM, &a->ca_pem);

        if (r == 0)
                r = gnutls_x509_crt_export2(a->certificate, GNUTLS_X509_FMT_PEM, &a->pem);
        return r < 0 ? r : gnutls_x509_privkey_export2(a->key, GNUTLS_X509_FMT_PEM, &a->key_pem);
}

static void authority_clear(Authority *a) {
        if (a->ca_key)
                gnutls_x509_privkey_deinit(a->ca_key);
        if (a->key)
                gnutls_x509_privkey_deinit(a->key);
        if (a->ca)
                gnutls_x509_crt_deinit(a->ca);
        if (a->certificate)
                gnutls_x509_crt_deinit(a->certificate);
        gnutls_free(a->ca_pem.data);
        gnutls_free(a->pem.data);
        if (a->key_pem.data)
                gnutls_memset(a->key_pem.data, 0, a->key_pem.size);
        gnutls_free(a->key_pem.data);
}

/* --- the message to holt --- */

static int trust_write(int fd, const void *data, size_t size) {
        return write(fd, data, size) == (ssize_t)size ? 0 : -EIO;
}

/* Puts the CA's certificate, the bundle and Java's key store into a memory file, and notes their
 * sizes. */
static int trust_fill(const Gateway *gateway, const char *ca, int fd, GatewayTrust *ret) {
        _cleanup_free_ char *bundle = str_format("%.*s\n%s", (int)gateway->certificates_length,
                                                 gateway->certificates ? gateway->certificates : "",
                                                 ca);
        _cleanup_free_ void *java = NULL;
        size_t java_size = 0;
        int r = bundle ? java_trust_make(bundle, &java, &java_size) : -ENOMEM;

        if (r == 0)
                r = trust_write(fd, ca, strlen(ca));
        if (r == 0)
                r = trust_write(fd, bundle, strlen(bundle));
        if (r == 0)
                r = trust_write(fd, java, java_size);
        if (r == 0)
                *ret = (GatewayTrust){ .ca = (uint32_t)strlen(ca),
                                       .bundle = (uint32_t)strlen(bundle),
                                       .java = (uint32_t)java_size };
        return r;
}

static int trust_send(const Gateway *gateway, const char *ca) {
        _cleanup_close_ int fd = memfd_create("holt-trust", MFD_CLOEXEC);
        GatewayTrust trust;
        int r = fd < 0 ? -errno : trust_fill(gateway, ca, fd, &trust);

        if (r < 0)
                return r;
        return send_with_fd(gateway->control_fd, &trust, sizeof(trust), fd, 0) < 0 ? -errno : 0;
}

/* --- all of it --- */

static int authority_finish(Gateway *gateway, const Authority *a) {
        _cleanup_free_ char *ca = strndup((const char *)a->ca_pem.data, a->ca_pem.size);

        gateway->tls_certificate = strndup((const char *)a->pem.data, a->pem.size);
        gateway->tls_key = strndup((const char *)a->key_pem.data, a->key_pem.size);
        return ca && gateway->tls_certificate && gateway->tls_key ? trust_send(gateway, ca)
                                                                  : -ENOMEM;
}

int authority_make(Gateway *gateway, Error *reterr) {
        Authority a = { 0 };
        int r;

        if (!gateway->terminates)
                return 0;
        r = authority_make_ca(&a);
        if (r == 0)
                r = authority_sign(&a, gateway);
        if (r == 0)
                r = authority_export(&a);
        if (r < 0)
                r = error_set(reterr, ERROR_SETUP, 0, "cannot make certificates: %s",
                              gnutls_strerror(r));
        else if ((r = authority_finish(gateway, &a)) < 0)
                r = error_set(reterr, ERROR_SETUP, -r, "cannot send the certificates");
        authority_clear(&a);
        return r;
}
