/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies a file or directory, also in a later process and after a reboot.
 *
 * Theory of operation. An inode number becomes free when its file is deleted, and the next file may
 * get it. A file handle (name_to_handle_at(2)) also contains the inode's generation, which differs
 * for each file that had the number. A handle is unique only within its file system. So the
 * identity of the file system is stored beside it: its UUID if the kernel tells it, otherwise
 * f_fsid of statfs(2). The device number is not used, because it may change with every boot.
 *
 * Some file systems give no lasting handle (FUSE, overlayfs before Linux 6.5). There the inode
 * number and the creation time are compared. No process can set the creation time. FAT and exFAT
 * renumber their inodes whenever they read them, so only the creation time remains. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
        FILE_HANDLE_MAX = 128,  /* bytes; the kernel's MAX_HANDLE_SZ */
        FILE_ID_TEXT_MAX = 512, /* bytes of file_id_print(), including its NUL */
};

typedef struct FileId {
        uint64_t system_type, system; /* f_type and f_fsid of statfs(2) */
        uint8_t uuid[16];             /* UUID of the file system; zero if unknown */
        uint32_t mode;                /* only the file type: S_IFMT of inode(7) */
        uint32_t uid;                 /* the owner; file_id_compare() does not compare it */
        uint64_t inode;               /* 0 if the number does not last */
        uint64_t born;                /* nsec since the epoch; 0 if unknown */
        uint32_t handle_type;
        uint32_t handle_size; /* bytes; 0 if there is no handle */
        uint8_t handle[FILE_HANDLE_MAX];
} FileId;

typedef enum FileIdChange {
        FILE_ID_SAME,
        FILE_ID_TYPE,   /* another type, such as a file that was a directory */
        FILE_ID_SYSTEM, /* another file system */
        FILE_ID_OTHER,
} FileIdChange;

/* Reads the identity of fd, which may be O_PATH. A directory or regular file is opened again for
 * reading, to ask for the UUID. Returns 0, or a negative errno of fstat(2) or fstatfs(2). */
int file_id_get(int fd, FileId *ret);

FileIdChange file_id_compare(const FileId *before, const FileId *now);

/* Whether both have the same type and owner and are on different tmpfs instances. Each boot creates
 * a tmpfs and its contents anew. */
bool file_id_is_anew(const FileId *before, const FileId *now);

/* Writes the identity as one ASCII word without blanks. Returns buf. */
const char *file_id_print(const FileId *id, char buf[FILE_ID_TEXT_MAX]);
/* Returns 0, or -EINVAL for text that file_id_print() never writes. */
int file_id_parse(const char *text, FileId *ret);
