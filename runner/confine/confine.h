/* SPDX-License-Identifier: Apache-2.0 */
/* The confinement of holt-egress, its maker, holt-gateway and holt-links, before they serve. */
#pragma once

#include "base/error.h"

/* Gives up capabilities, files and the execution of programs, and all system calls except those for
 * sockets, pipes and memory. Returns 0 or a negative errno. */
int confine_egress(Error *reterr);
/* The same for holt-gateway. */
int confine_gateway(Error *reterr);
/* The same for holt-links, which can make no socket either. */
int confine_links(Error *reterr);
/* The same for the maker, which keeps CAP_NET_ADMIN and CAP_NET_BIND_SERVICE in the sandbox's
 * network. */
int confine_maker(void);
