/* SPDX-License-Identifier: Apache-2.0 */
/* The part of hello.h for TLS. */
#pragma once

#include "wire/hello.h"

/* Reads records from hello->seen on, and a ClientHello once it is whole. */
void hello_tls_parse(const uint8_t *data, size_t length, Hello *hello);
/* The same for SSLv2, whose ClientHello has no name. */
void hello_ssl2_parse(const uint8_t *data, size_t length, Hello *hello);

/* Sets HELLO_BAD with a static reason. */
void hello_refuse(Hello *hello, const char *why);
