/* SPDX-License-Identifier: Apache-2.0 */
/* Live grants: rules that holt adds while the sandbox runs.
 *
 * Theory of operation. Only holt can send a grant, over its end of the control socket; no process
 * inside has that end. First the maker makes all routes and listeners for the new rules. If a
 * program inside listens on one of these ports itself, the grant fails. Otherwise holt stores the
 * rules, and decides whether they hold. If they do not, the listeners stay as before. Grants are
 * carried out one after another. */
#pragma once

#include "egress/egress.h"

/* A command of holt: adds the rules in value, one a line. The reply is EGRESS_GRANTED. */
void grants_add(Egress *egress, const char *value);
/* The same for one-time grants (once.h). The first line is the number of the first grant; the
 * others get the numbers after it. */
void grants_add_once(Egress *egress, const char *value);
/* A command of holt: decides about the grant whose parts are made. The reply is EGRESS_GRANTED,
 * too. */
void grants_decide(Egress *egress, const char *value);
