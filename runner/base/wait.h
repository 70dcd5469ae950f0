/* SPDX-License-Identifier: Apache-2.0 */
/* How long holt waits for somebody who may never come: init, a keeper, a client, a reader. */
#pragma once

/* Percent; less is for builds that tests use (the Meson option "waits"). */
#ifndef HOLT_WAITS
#define HOLT_WAITS 100
#endif

/* time, in any unit, as this build waits. It is a constant expression. */
#define HOLT_WAIT(time) ((time)*HOLT_WAITS / 100)
