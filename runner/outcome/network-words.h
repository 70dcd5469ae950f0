/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the messages of programs that did not find or reach a host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns where the word begins in text, in any case, or NULL. text may be NULL. */
const char *network_words_find(const char *text, size_t length, const char *word);
/* Whether the last messages of a failed command are about a host that the network of the sandbox
 * kept from it. mode: a NETWORK_* value of policy.h. With rules, a name that was not found has a
 * denial of its own, so only connections count. text may be NULL. */
bool network_words_missed(unsigned mode, const char *text, size_t length);
/* Returns the port of the loopback inside to which a connection was refused, or 0. text may be
 * NULL. */
uint16_t network_words_own_port(const char *text, size_t length);
