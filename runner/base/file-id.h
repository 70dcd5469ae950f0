/* SPDX-License-Identifier: Apache-2.0 */
/* What tells a file or directory from all others, in a later process and after a reboot, too.
 *
 * Theory of operation. An inode number is free again once its file is gone, and the next file may
 * get it. A file handle (name_to_handle_at(2)) has the inode's generation as well, which is another
 * one for each file that ever had the number. It is unique in one file system, so the file system's
 * own identity stands beside it: its UUID where the kernel tells that, otherwise f_fsid of
 * statfs(2). The number of the device says nothing: it may change with every boot.
 *
 * Some file systems give no handle that lasts (FUSE, overlayfs before Linux 6.5). There the inode
 * number and the time at which the file was made are compared, which no process can set. FAT and
 * exFAT number their inodes anew each time they read them, so that only the time remains. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
        FILE_HANDLE_MAX = 128,  /* bytes; MAX_HANDLE_SZ of the kernel */
        FILE_ID_TEXT_MAX = 512, /* bytes of file_id_print(), with its NUL */
};

typedef struct FileId {
        uint64_t system_type, system; /* f_type and f_fsid of statfs(2) */
        uint8_t uuid[16];             /* of the file system; zero if unknown */
        uint32_t mode;                /* the type alone: S_IFMT of inode(7) */
        uint32_t uid;                 /* the owner, which is not compared */
        uint64_t inode;               /* 0 if it does not last */
        uint64_t born;                /* nsec since the epoch; 0 if unknown */
        uint32_t handle_type;
        uint32_t handle_size; /* bytes; 0 for no handle */
        uint8_t handle[FILE_HANDLE_MAX];
} FileId;

typedef enum FileIdChange {
        FILE_ID_SAME,
        FILE_ID_TYPE,   /* for example, it was a directory and is a file */
        FILE_ID_SYSTEM, /* it is on another file system */
        FILE_ID_OTHER,
} FileIdChange;

/* fd may be O_PATH. A directory or regular file is opened once more, for reading, to ask for the
 * UUID. 0 or a negative errno of fstat(2), fstatfs(2). */
int file_id_get(int fd, FileId *ret);

FileIdChange file_id_compare(const FileId *before, const FileId *now);

/* Whether both are of one type and owner, and each on a tmpfs, but not on the same: a tmpfs is made
 * anew with each boot, and what is in it with it. */
bool file_id_is_anew(const FileId *before, const FileId *now);

/* One word of ASCII, without a blank. Returns buf. */
const char *file_id_print(const FileId *id, char buf[FILE_ID_TEXT_MAX]);
/* 0, or -EINVAL for what file_id_print() does not write. */
int file_id_parse(const char *text, FileId *ret);
