/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of this mount namespace, as /proc/self/mountinfo lists them (proc_pid_mountinfo(5)).
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct MountEntry {
        uint64_t id;
        dev_t device;        /* of the file system: not always the st_dev of its files (btrfs) */
        const char *root;    /* which directory of the file system is mounted */
        const char *point;   /* where */
        bool read_only;      /* the mount, whatever the file system is */
        const char *type;    /* of the file system, such as "ext4" */
        const char *options; /* of the file system, divided by commas; not unescaped */
} MountEntry;

typedef struct MountTable MountTable;

/* Keeps /proc/self/mountinfo open for the tables to come, in a process that confines itself and can
 * open nothing in /proc after that. 0 or a negative errno. */
int mount_table_keep(void);

int mount_table_read(MountTable **ret, Error *reterr);
/* NULL is legal; returns NULL. */
MountTable *mount_table_free(MountTable *table);
size_t mount_table_count(const MountTable *table);
const MountEntry *mount_table_entry(const MountTable *table, size_t i);

/* Undoes the kernel's \040 of a space, and the like, in place. */
void mount_table_unescape(char *text);

/* Says which file system an open file is on, and its path there, which starts at the file system's
 * own root and does not depend on where that is mounted. -ENOENT if it has no such path, because it
 * was removed or its mount is in no table: *ret_device is set nevertheless. Or another negative
 * errno. Needs statx(2) with the mount's id (Linux 5.8). */
int mount_table_locate(const MountTable *table, int fd, dev_t *ret_device, char ret_path[PATH_MAX]);

/* What statx(2) says of an open file in one call. */
typedef struct MountFacts {
        dev_t device;
        ino_t inode;
        uint64_t mount_id; /* the mount that the fd was opened through; 0 if the kernel says none */
        uid_t owner;
        mode_t mode;
} MountFacts;

/* 0 or a negative errno. */
int mount_facts(int fd, MountFacts *ret);
