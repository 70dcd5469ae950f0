/* SPDX-License-Identifier: Apache-2.0 */
/* File systems that show the files of another one. The mount table names the layers of overlayfs.
 * Others, such as FUSE, do not tell their layers. */
#pragma once

#include "reach/mount-table.h"

/* A layer of an overlay: one of the directories whose files it shows. */
typedef struct MountLayer {
        dev_t device;
        char *path; /* Path in the file system of `device`. */
        bool upper; /* Writing to the overlay writes to this layer. */
} MountLayer;

/* The layers of one file system. */
typedef struct MountStack {
        dev_t device;
        MountLayer *layers; /* The layers, if it is an overlay. */
        size_t count;
        bool lost;   /* A layer was mounted elsewhere and cannot be found from here. */
        bool opaque; /* It may show files of another file system without naming it. */
} MountStack;

/* Caches the layers of each file system that was asked for. A container's overlay has a hundred
 * layers, and a host of many containers has many overlays. */
typedef struct MountStacks MountStacks;

/* table is borrowed. Returns NULL if memory is out. */
MountStacks *mount_stacks_new(const MountTable *table);
/* NULL is legal. Returns NULL. */
MountStacks *mount_stacks_free(MountStacks *stacks);
/* *ret is borrowed and lives as long as stacks. It is NULL if the file system is neither an overlay
 * nor opaque. Returns 0 or -ENOMEM. */
int mount_stacks_find(MountStacks *stacks, dev_t device, const MountStack **ret);
