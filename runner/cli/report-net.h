/* SPDX-License-Identifier: Apache-2.0 */
/* Tells people about the network of a command: hosts that were refused or not reached, and the end
 * of holt-egress. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "network/denials.h"
#include "network/gateway.h"

/* Prints one refused name or connection. grant: the option that allows it, or ""; then why_not is
 * printed. */
void report_net_denial(const char *peer, uint64_t count, const char *answer, const char *reason,
                       const char *grant, const char *why_not, const char *who_allows, FILE *out);
/* Prints a host that is allowed, but was not found or reached. answer: as net_denial_answer() gives
 * it. reason: "" if no more is known. */
void report_net_failure(const char *peer, const char *answer, const char *reason, FILE *out);
/* Prints how many refused and failed connections have no line of their own; nothing if count is
 * 0. */
void report_net_omitted(uint64_t count, FILE *out);
/* Prints that the sandbox lost its network or its routes, because this program of holt has ended.
 * session: its name, or NULL for holt run. */
void report_lost(const char *session, const char *what, const char *program, FILE *out);
/* Prints a refused or failed request of a route. */
void report_gateway_denial(const char *what, uint64_t count, const char *answer, const char *reason,
                           FILE *out);
/* Prints all of these for a failed command of holt run. denials may be NULL. */
void report_gateway_denials(const GatewayDenials *denials, FILE *out);
void report_net_denials(const NetDenials *denials, FILE *out);
