/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a live session, and what the keeper does about it. */
#pragma once

#include "keeper/keeper.h"

/* Each makes a part of the keeper whose events are handled in events.c. 0 or a negative errno. */
int keeper_watch_all(Keeper *keeper, Error *reterr);
int keeper_make_processes(Keeper *keeper, Error *reterr);
int keeper_make_interpreters(Keeper *keeper, Error *reterr);
int keeper_make_server(Keeper *keeper, Error *reterr);
