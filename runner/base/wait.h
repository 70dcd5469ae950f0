/* SPDX-License-Identifier: Apache-2.0 */
/* How long holt waits for a process that may never answer: init, a keeper, a client, a reader. */
#pragma once

/* The share of the usual waiting time, in percent. Test builds wait less (the Meson option
 * "waits"). */
#ifndef HOLT_WAITS
#define HOLT_WAITS 100
#endif

/* Scales a time, in any unit, for this build. The result is a constant expression. The product of
 * 30 seconds in usec has more than 32 bits. */
#define HOLT_WAIT(time) ((int)((long long)(time)*HOLT_WAITS / 100))
