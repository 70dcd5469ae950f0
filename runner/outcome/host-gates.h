/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the host's kernel (sysctl) that refuse a system call whatever the policy says. */
#pragma once

/* Reads the settings, for a process that confines itself later and could not read them then. */
void host_gates_note(void);

/* Returns why a grant of call nr would not help on this host, or NULL. Static. If a setting cannot
 * be read, it counts as open. */
const char *host_gate_why(unsigned nr);
