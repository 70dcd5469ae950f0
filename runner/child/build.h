/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of building the tree (build.c has their order), and the functions that they share
 * (build-parts.c). All of them run in the child (child.h). Each returns 0 or a negative errno with
 * *error set. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/sys.h"
#include "child/step.h"

#define MS_PRIVATE_FLAG                                                                            \
        (1UL << 18) /* MS_PRIVATE; sys/mount.h and linux/mount.h cannot be included together. */

/* Attaches a detached mount at target, relative to dir_fd. */
int build_attach(int mount_fd, int dir_fd, const char *target, Error *error);

/* Calls mkdirat(2). An existing directory is no error. */
int build_directory(int dir_fd, const char *path, mode_t mode, Error *error);

/* Makes an empty file, for a mount. An existing one is no error. */
int build_stub(int dir_fd, const char *path, mode_t mode, Error *error);

/* Makes a symlink. An existing one is no error. */
int build_link(int dir_fd, const char *path, const char *target, Error *error);

/* Makes path below the new root, with its parents. path is relative and in normal form; its last
 * part is a directory or an empty file. Mounts on the way are entered, but symlinks are refused,
 * because they could lead to the host. */
int build_target(int root_fd, const char *path, bool directory, Error *error);

/* Whether the target of a mount lies in a session's own root. A target in /etc does not, because
 * /etc is new in each sandbox, and read-only. */
bool build_lasts(const LaunchPlan *plan, const PlanMount *mount);

/* Writes value in decimal to buf; returns a pointer into buf. */
const char *build_decimal(uint64_t value, char buf[24]);

/* Makes a new file system of the given type. It is not attached. options are pairs of names and
 * values, and end with NULL. The caller owns *ret_fd. */
int build_filesystem(const char *type, const char *const *options, unsigned attributes, int *ret_fd,
                     Layer layer, Error *error);

/* Writes a new file with mode 0644. */
int build_write_text(int dir_fd, const char *path, const char *text, size_t size, Error *error);
/* The same, with several parts of the text. */
struct iovec;
int build_write_parts(int dir_fd, const char *path, const struct iovec *parts, int count,
                      Error *error);

/* Clones source, relative to source_fd, and attaches the clone at target, relative to target_fd.
 * attr may be NULL. */
int build_clone_to(int source_fd, const char *source, int target_fd, const char *target,
                   const MountAttr *attr, Error *error);

/* Shows the hierarchies of cgroup v2 in /proc/cgroups, if the sandbox has limits to show. */
int build_limits_of_proc(const Launch *launch, int proc_fd, Error *error);

/* Makes root_fd the root and the working directory. The host's tree stays on top of it, where no
 * path leads. */
int build_pivot(Error *error);
/* Unmounts the host's tree. locked: the mounts belong to a new user namespace. */
int build_leave(bool locked, Error *error);

/* Whether the host refused the layer, and the caller allowed it to be missing. */
static inline bool build_degraded(const Launch *launch, Layer layer) {
        return launch->layers.missing & LAYER_BIT(layer);
}

/* Steps. */
int build_network_begin(Launch *launch, Error *error);
/* Waits for the thread of build_network_begin(). build_network() does so too. */
void build_network_wait(void);
/* In place of build_network_begin(): the child makes the namespace itself. The first function must
 * come before the tree changes. The others need no libc, and build_network() reports a failure. */
void build_network_prepare(const Launch *launch);
bool build_network_here(void);
void build_network_set(void);
int build_network(Launch *launch, Error *error);
int build_scratch(Launch *launch, Error *error);
int build_skeleton(Launch *launch, Error *error);
int build_system(Launch *launch, Error *error);
int build_trust(Launch *launch, Error *error);
int build_proc(Launch *launch, Error *error);
int build_devices(Launch *launch, Error *error);
int build_limits(Launch *launch, Error *error);
int build_sources(Launch *launch, Error *error);
int build_private(Launch *launch, Error *error);
int build_lasting(Launch *launch, Error *error);
int build_mounts(Launch *launch, Error *error);
int build_guards(Launch *launch, Error *error);
int build_hidden(Launch *launch, Error *error);
