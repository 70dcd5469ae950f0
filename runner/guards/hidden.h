/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/plan.h"

/* Hides the host's file of each absolute path to hide, too (hidden.c). */
int hidden_prepare(LaunchPlan *plan, Error *reterr);
