/* SPDX-License-Identifier: Apache-2.0 */
/* A hint for a failed command that looked for a host on the network. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/strings.h"

typedef struct NetworkHint {
        unsigned mode;       /* a NETWORK_* value */
        const char *session; /* the session of the command, or NULL */
        const char *text;    /* the end of the command's messages, or NULL */
        size_t length;
        const StrList *publish, *import; /* the ports that the host shares; or NULL */
        const StrList *routes;           /* "NAME URL" of each route's upstream; or NULL */
        bool by_project;                 /* The project's file has set the mode. */
        bool asked; /* The project's file has rules, but nobody else has any. */
        bool told;  /* The denials already name what the network has refused. */
} NetworkHint;

/* If the messages are about such a host, prints which network the sandbox has, and how to get more
 * of it. */
void network_hint_print(const NetworkHint *hint, FILE *out);
