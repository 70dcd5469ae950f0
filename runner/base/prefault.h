/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Maps the pages that a run uses anyway: the program, its small variables, and the stack. Three
 * system calls replace 18 page faults. A page fault costs as much as ten system calls in many
 * virtual machines. Call it early; before Linux 5.14, it does nothing. */
void prefault(void);
