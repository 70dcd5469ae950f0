/* SPDX-License-Identifier: Apache-2.0 */
/* launch_prepare() in parts; see prepare.c. */
#pragma once

#include "sandbox/launch.h"

/* Fds 0 to 2: opens /dev/null where one is closed, refuses directories and block devices. */
int prepare_stdio(Error *reterr);

/* Fills the launch from its plan and the host; as root nothing has been given up yet. */
int prepare_all(Launch *launch, Error *reterr);
