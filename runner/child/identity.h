/* SPDX-License-Identifier: Apache-2.0 */
/* Who the command is on the host.
 *
 * An ordinary user, and root of a user namespace (a rootless container, unshare -r), is mapped as
 * it is: that uid is no more than an ordinary user's. In a workspace of another id of its namespace
 * such a root becomes that one. Root of the host gives root up for good
 * before anything is started, for a uid that nobody else has, and the directories that the policy
 * mounts are id-mapped (Linux 5.12), so that their owner shows as agent and what agent writes
 * belongs to that owner. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "child/child.h"

/* Fills launch->identity; changes nothing yet. */
int identity_choose(Launch *launch, Error *reterr);

/* For root of a user namespace, which can't id-map what its host has mounted: where owner, of the
 * workspace, is another id of the namespace, the command is to be that one, or it could write
 * nothing there. Whether it is; not for an id of root's group, nor without CAP_SETUID. */
bool identity_adopt(Launch *launch, const struct stat *owner);

/* For root only, before identity_take(): turns mount->fd into a detached mount, since the uid
 * that is taken may not be able to reach the path again. What the command is to work in
 * (identity.id_mapped) is id-mapped; what it is only shown (--ro) shows it what anybody may see. 0,
 * or an ERROR_LAYER of LAYER_IDMAP (the file system can't, or the host's root lacks CAP_SYS_ADMIN).
 */
int identity_map_mount(const Launch *launch, PlanMount *mount, Error *reterr);

/* For an identity that is taken: the process becomes identity.uid, irrevocably, without
 * supplementary groups.
 */
int identity_take(const Launch *launch, Error *reterr);

/* Around the start of a sandbox, once, where processes of others may have the uid that is taken: so
 * that nobody but root can trace this one, the maps in its /proc/self are root's to write, and the
 * child, which shares its memory, can write them none the less, up to identity_leave_maps(). It is
 * called with the child's own uid there, and with identity.uid here. */
int identity_reach_maps(const Launch *launch, Error *reterr);
void identity_leave_maps(uid_t uid);
