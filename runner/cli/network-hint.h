/* SPDX-License-Identifier: Apache-2.0 */
/* A hint for a failed command that looked for a host on the network. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Prints that the sandbox has no network, if the command's last messages are about that. text may
 * be NULL. */
void network_hint_print(const char *text, size_t length, FILE *out);
