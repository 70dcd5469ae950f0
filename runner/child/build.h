/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of building share: build.c makes the tree, build-mounts.c attaches what the
 * policy asked for. All of it runs in the child (launch.h); each returns 0 or a negative errno with
 * *error set. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "child/step.h"

#define MS_PRIVATE_FLAG                                                                            \
        (1UL << 18) /* MS_PRIVATE; sys/mount.h and linux/mount.h exclude each other */

/* Attaches a detached mount at target, relative to dir_fd. */
int build_attach(int mount_fd, int dir_fd, const char *target, Error *error);

/* mkdirat(2); one that is there already is fine. */
int build_directory(int dir_fd, const char *path, mode_t mode, Error *error);

/* Makes path (relative, normal form) below the new root with its parents, through mounts but
 * through no link, which could lead to the host; the last part is a directory or an empty file. */
int build_target(int root_fd, const char *path, bool directory, Error *error);

/* value in decimal, in buf; a pointer into it. */
const char *build_decimal(uint64_t value, char buf[24]);

/* Steps. */
int build_network_begin(Launch *launch, Error *error);
void build_network_wait(void); /* for what has been begun; build_network() does */
int build_network(Launch *launch, Error *error);
int build_sources(Launch *launch, Error *error);
int build_private(Launch *launch, Error *error);
int build_lasting(Launch *launch, Error *error);
int build_mounts(Launch *launch, Error *error);
int build_guards(Launch *launch, Error *error);
int build_hidden(Launch *launch, Error *error);
