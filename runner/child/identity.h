/* SPDX-License-Identifier: Apache-2.0 */
/* The command's identity on the host.
 *
 * An ordinary user keeps their uid. So does root of a user namespace (a rootless container, unshare
 * -r): on the host, that uid is an ordinary user's. If the workspace belongs to another id of the
 * namespace, holt changes to that id.
 *
 * The host's root gives root up for good before it starts any process, and takes a uid that no
 * other user has. The directories of the policy are id-mapped (Linux 5.12). Inside, agent owns
 * them, and files that agent writes belong to their owner. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "child/child.h"

/* Fills launch->identity, but changes nothing yet. Returns 0 or a negative errno. */
int identity_choose(Launch *launch, Error *reterr);

/* Takes the workspace owner's id. This is for root of a user namespace, which cannot id-map the
 * host's mounts, so the command could otherwise not write to the workspace. Returns whether the id
 * was taken. It is not taken if it belongs to root's group, or without CAP_SETUID. */
bool identity_adopt(Launch *launch, const struct stat *owner);

/* Turns mount->fd and tree_fd into detached mounts, because the new uid may not reach the path
 * again. Only for
 * root, before identity_take(). If identity.id_mapped is set, writable mounts are id-mapped; a
 * mount that is only shown (--ro) shows files that anybody may read. Returns 0, or an ERROR_LAYER
 * of LAYER_IDMAP if the file system has no id maps or the host's root has no CAP_SYS_ADMIN. */
int identity_map_mount(const Launch *launch, PlanMount *mount, Error *reterr);

/* Changes to identity.uid for good, without supplementary groups. Only if identity.taken. Returns 0
 * or a negative errno. */
int identity_take(const Launch *launch, Error *reterr);

/* Used around the start of a sandbox if other processes may have the uid that holt takes. Until
 * identity_leave_maps(), only root can trace this process, and the maps in its /proc/self belong to
 * root. The child can still write them, because it shares this process's memory. The child calls
 * identity_leave_maps() with its own uid, and the launcher with identity.uid. */
int identity_reach_maps(const Launch *launch, Error *reterr);
void identity_leave_maps(uid_t uid);
