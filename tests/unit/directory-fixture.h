/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for one test, which is also its working directory. */
#pragma once

/* Setup and teardown of cmocka. *state is the path of the directory. Return 0 or -1. */
int enter_directory(void **state);
int leave_directory(void **state);

/* Leaves and removes a directory with everything in it. Returns 0, or another value on failure. */
int remove_directory(const char *path);
