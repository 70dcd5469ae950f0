/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a live session, and the keeper's reactions. */
#pragma once

#include "keeper/keeper.h"

/* Each function makes a part of the keeper whose events events.c handles. Returns 0 or a negative
 * errno. */
int keeper_watch_all(Keeper *keeper, Error *reterr);
int keeper_make_processes(Keeper *keeper, Error *reterr);
int keeper_make_interpreters(Keeper *keeper, Error *reterr);
int keeper_make_server(Keeper *keeper, Error *reterr);
/* Call it for every process once the process or a run of its code has ended and protected paths
 * have been checked. */
void keeper_interpreters_swept(const Keeper *keeper, Process *process);
