/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the packet filter that lead many ports to one listener.
 *
 * Theory of operation. A rule such as example.org:* would need a listener for each of its ports.
 * Instead, "tproxy" of nf_tables hands the first packet (SYN) of each such connection to the
 * listener at NET_REDIRECT. It changes nothing in the packet, unlike a redirect by NAT, and needs
 * no connection tracking. So the accepted socket has the address and port to which the program has
 * connected (getsockname(2)), and holt-egress judges them as for any other listener. A program
 * cannot forge them, because they are those of its packet. A connection to the listener's own
 * address is judged as that address, which no rule allows.
 *
 * The loopback addresses and the sandbox's own address are never redirected. The listener must be
 * transparent (ip(7), IP_TRANSPARENT), for which only the maker has the capability. */
#pragma once

#include "maker/listeners.h"

/* Both functions take a socket of nft_batch_socket(), and return 0 or a negative errno. A kernel
 * may have no tproxy, or a container may forbid it. */

/* Makes the chain, without a redirect. */
int redirect_rules_begin(int fd);
int redirect_rules_add(int fd, const RedirectPlan *redirect);
