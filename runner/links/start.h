/* SPDX-License-Identifier: Apache-2.0 */
/* Starts holt-links (links/server.h) from a keeper that is confined already. */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "links/protocol.h"

typedef struct LinksProcess {
        int control_fd; /* Owned; FD_NONE if there is no process. */
        pid_t pid;      /* A child; 0 if there is none. */
        LinksSettings settings;
} LinksProcess;

#define LINKS_NONE                                                                                 \
        { .control_fd = FD_NONE }

/* Makes a key and a listening socket, and starts the process. Returns 0 or a negative errno. */
int links_start(const char *session, LinksProcess *ret, Error *reterr);
/* Ends the process, which may have ended already. */
void links_stop(LinksProcess *links);
