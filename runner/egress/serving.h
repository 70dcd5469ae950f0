/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners inside the sandbox that holt-egress serves. */
#pragma once

#include "egress/egress.h"

/* Serves fd, a listener bound as `at` says, and takes it over. Returns 0 or a negative errno. */
int serving_add(Egress *egress, const ListenerPlan *at, int fd, Error *reterr);
/* Whether a listener exists at this address and port, or one for the port on every address. */
bool serving_has(const Egress *egress, const ListenerPlan *at);
/* Closes the listeners that are not needed. Accepts their waiting connections first. */
void serving_prune(Egress *egress, bool (*needed)(const Egress *egress, const ListenerPlan *at));
/* Closes the listeners of single addresses on the port of `any`, because with them no listener can
 * take every address. Accepts their waiting connections first. The caller owns *ret, an array of
 * the addresses and ports of these listeners. Returns their number or -ENOMEM. */
int serving_make_way(Egress *egress, const ListenerPlan *any, ListenerPlan **ret);
