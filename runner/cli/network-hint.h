/* SPDX-License-Identifier: Apache-2.0 */
/* A hint for a failed command that looked for a host on the network. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether the command's last messages are about a host that it could not find or reach. text may be
 * NULL. */
bool network_hint_finds(const char *text, size_t length);
typedef struct NetworkHint {
        const char *mode;    /* a value of network.mode */
        const char *session; /* the session of the command, or NULL */
        const char *text;    /* the end of the command's messages, or NULL */
        size_t length;
        bool by_project; /* The project's file has set the mode. */
        bool told;       /* The denials already name what the network has refused. */
} NetworkHint;

/* If the messages are about such a host, prints which network the sandbox has, and how to get more
 * of it. */
void network_hint_print(const NetworkHint *hint, FILE *out);
