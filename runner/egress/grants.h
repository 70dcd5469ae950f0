/* SPDX-License-Identifier: Apache-2.0 */
/* Live grants: rules that holt adds while the sandbox runs.
 *
 * Theory of operation. Only holt's end of the control socket can send a grant; no process inside
 * has it. The new rules count once the maker has made all routes and listeners that they need. A
 * program inside may listen on such a port itself. Then the grant fails, and the listeners are as
 * before. Grants are carried out one after another. */
#pragma once

#include "egress/egress.h"

/* A command of holt: adds the rules in value, one a line. The reply is EGRESS_GRANTED. */
void grants_add(Egress *egress, const char *value);
