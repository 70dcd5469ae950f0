/* SPDX-License-Identifier: Apache-2.0 */
/* File systems whose files are those of another one: overlayfs, whose layers the mount table names,
 * and those that say nothing about it, such as FUSE. */
#pragma once

#include "reach/mount-table.h"

/* A directory that an overlay shows a part of. */
typedef struct MountLayer {
        dev_t device;
        char *path; /* in the file system of device */
        bool upper; /* what is written to the overlay is written here */
} MountLayer;

/* What is known of one file system. */
typedef struct MountStack {
        dev_t device;
        MountLayer *layers; /* of an overlay */
        size_t count;
        bool lost;   /* a layer can't be found from here: it was mounted elsewhere */
        bool opaque; /* it may show files of another file system without saying which */
} MountStack;

/* What is known of each file system that was asked for: a container's overlay has a hundred layers,
 * and the host of many containers has many overlays. */
typedef struct MountStacks MountStacks;

/* table is borrowed. NULL when memory is out. */
MountStacks *mount_stacks_new(const MountTable *table);
/* NULL is legal; returns NULL. */
MountStacks *mount_stacks_free(MountStacks *stacks);
/* *ret is borrowed and lasts as long as stacks; NULL for a file system that is neither an overlay
 * nor opaque. 0 or -ENOMEM. */
int mount_stacks_find(MountStacks *stacks, dev_t device, const MountStack **ret);
