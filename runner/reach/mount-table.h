/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of this mount namespace, as listed in /proc/self/mountinfo (proc_pid_mountinfo(5)). */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct MountEntry {
        uint64_t id;
        /* Device of the file system; on btrfs it differs from the st_dev of its files. */
        dev_t device;
        const char *root;    /* Directory of the file system that is mounted. */
        const char *point;   /* Mount point. */
        bool read_only;      /* The mount is read-only; the file system may not be. */
        const char *type;    /* Type of the file system, such as "ext4". */
        const char *options; /* Options of the file system, separated by commas; not unescaped. */
} MountEntry;

typedef struct MountTable MountTable;

/* Keeps /proc/self/mountinfo open for later tables. A process that confines itself cannot open
 * files in /proc afterwards. Returns 0 or a negative errno. */
int mount_table_keep(void);

int mount_table_read(MountTable **ret, Error *reterr);
/* NULL is legal. Returns NULL. */
MountTable *mount_table_free(MountTable *table);
size_t mount_table_count(const MountTable *table);
const MountEntry *mount_table_entry(const MountTable *table, size_t i);

/* Replaces the kernel's escapes, such as \040 for a space, in place. */
void mount_table_unescape(char *text);

/* Finds the file system of an open file and the file's path in it. The path starts at the root of
 * the file system, wherever that is mounted. Returns -ENOENT if the file has no such path, because
 * it was removed or its mount is in no table; *ret_device is set nevertheless. Returns another
 * negative errno if a call fails. Needs statx(2) with the mount's id (Linux 5.8). */
int mount_table_locate(const MountTable *table, int fd, dev_t *ret_device, char ret_path[PATH_MAX]);

/* Facts about an open file from one call of statx(2). */
typedef struct MountFacts {
        dev_t device;
        ino_t inode;
        /* The mount through which the fd was opened; 0 if the kernel does not tell. */
        uint64_t mount_id;
        uid_t owner;
        mode_t mode;
} MountFacts;

/* Returns 0 or a negative errno. */
int mount_facts(int fd, MountFacts *ret);
