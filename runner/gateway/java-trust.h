/* SPDX-License-Identifier: Apache-2.0 */
/* Writes certificates as a key store of Java, which does not read PEM.
 *
 * The format is JKS, version 2 (sun.security.provider.JavaKeyStore in OpenJDK). Numbers are
 * big-endian. An entry for each certificate follows the head. At the end is a SHA-1 digest of
 * everything and of the usual password of such stores, "changeit". Java reads the store under any
 * name and with any default type of key store. */
#pragma once

#include <stddef.h>

/* pem: certificates, with any text between them. Returns 0 or a negative errno. *ret is owned by
 * the caller. */
int java_trust_make(const char *pem, void **ret, size_t *ret_size);
