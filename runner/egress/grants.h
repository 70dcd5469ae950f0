/* SPDX-License-Identifier: Apache-2.0 */
/* Live grants: rules that holt adds while the sandbox runs.
 *
 * Theory of operation. Only holt can send a grant, over its end of the control socket; no process
 * inside has that end. The new rules hold once the maker has made all routes and listeners for
 * them. If a program inside listens on one of these ports itself, the grant fails, and the
 * listeners stay as before. Grants are carried out one after another. */
#pragma once

#include "egress/egress.h"

/* A command of holt: adds the rules in value, one a line. The reply is EGRESS_GRANTED. */
void grants_add(Egress *egress, const char *value);
