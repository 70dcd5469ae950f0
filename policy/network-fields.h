/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the table of fields (fields.c) about the network: checks, options, and the rule of a
 * project's file. */
#pragma once

#include "policy/policy.h"

/* The names of the values of network.mode and network.sni, up to NULL, and their ranks. */
extern const char *const network_modes[];
extern const unsigned char network_ranks[];
extern const char *const network_sni[];
extern const unsigned char network_sni_ranks[];

/* Handles --ask. The mode becomes "allow". Returns like policy_set_option(). */
int network_set_ask(Policy *policy, const char *value, Error *reterr);
/* Handles --network MODE. Refuses to combine --net with a mode that does not read rules. */
int network_set_mode(Policy *policy, const char *value, Error *reterr);
/* Handles --net RULE[,RULE...]. The mode becomes "allow". A value that is a mode sets the mode, as
 * docker's --net does. */
int network_set_rules(Policy *policy, const char *value, Error *reterr);

/* Called after the caller's policy got a rule: the mode becomes "allow", unless the caller has
 * chosen another one. */
int network_imply_mode(Policy *policy, const char *where, Error *reterr);
/* The same after the caller's policy got network.ask. */
int network_imply_ask_mode(Policy *policy, const char *where, Error *reterr);
/* Called before a project's file changes the mode. If the caller's mode is "host", the project's
 * rules need no rule of the caller. */
void network_note_host(Policy *policy);
/* Adds to ret the part of a project's rule that the caller's rules cover. Returns 0, -E2BIG (too
 * many rules) or -ENOMEM. */
int network_narrow(Policy *policy, const char *text, StrList *ret);
