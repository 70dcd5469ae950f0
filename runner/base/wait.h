/* SPDX-License-Identifier: Apache-2.0 */
/* How long holt waits for a process that may never answer: init, a keeper, a client, a reader. */
#pragma once

/* The share of the usual waiting time, in percent. Test builds wait less (the Meson option
 * "waits"). */
#ifndef HOLT_WAITS
#define HOLT_WAITS 100
#endif

/* Scales a time, in any unit, for this build. The result is a constant expression. */
#define HOLT_WAIT(time) ((time)*HOLT_WAITS / 100)
