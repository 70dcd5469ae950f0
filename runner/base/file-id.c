/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file-id.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/ioctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/sys.h"
#include "base/util.h"

/* Magic numbers of file systems that linux/magic.h does not define. */
enum {
        MAGIC_FUSE = 0x65735546,
        MAGIC_FAT = 0x4d44,
        MAGIC_EXFAT = 0x2011bab0,
        MAGIC_XFS = 0x58465342,
        MAGIC_TMPFS = 0x01021994
};

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200 /* Since Linux 6.5; allows handles that cannot be opened */
#endif

#ifndef STATX_BTIME
#define STATX_BTIME 0x800U
#endif

/* From linux/fs.h of Linux 6.9. */
typedef struct SystemUuid {
        uint8_t length, uuid[16];
} SystemUuid;
#define IOC_GET_UUID _IOR(0x15, 0, SystemUuid)

/* struct xfs_fsop_geom_v1 of xfs/xfs_fs.h. */
typedef struct XfsGeometry {
        uint8_t before[64], uuid[16], rest[32];
} XfsGeometry;
static_assert(sizeof(XfsGeometry) == 112, "the kernel writes all of it");
#define IOC_XFS_GEOMETRY _IOR('X', 100, XfsGeometry)

/* struct file_handle of name_to_handle_at(2), with room for the handle. */
typedef struct KernelHandle {
        uint32_t size;
        int32_t type;
        uint8_t bytes[FILE_HANDLE_MAX];
} KernelHandle;

/* The start of struct statx of statx(2), up to the last member used here. linux/stat.h defines it,
 * but cannot be included next to musl's sys/stat.h since musl 1.2.5. */
typedef struct BirthStatx {
        uint32_t mask;
        uint8_t before[76];
        int64_t born_sec;
        uint32_t born_nsec;
        uint8_t rest[164];
} BirthStatx;
static_assert(sizeof(BirthStatx) == 256, "the kernel writes all of it");

/* --- reading an identity --- */

/* Opens fd again for reading, because ioctl(2) refuses an O_PATH fd. Only directories and regular
 * files are opened: opening anything else may have side effects. */
static int open_readable(int fd, mode_t mode) {
        char path[40];

        if (S_ISDIR(mode))
                return openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (!S_ISREG(mode))
                return -1;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void get_uuid(int path_fd, mode_t mode, FileId *id) {
        _cleanup_close_ int fd = open_readable(path_fd, mode);
        SystemUuid found = { 0 };
        XfsGeometry geometry = { 0 };

        if (fd < 0)
                return;
        if (ioctl(fd, IOC_GET_UUID, &found) == 0 && found.length == sizeof(found.uuid))
                memcpy(id->uuid, found.uuid, sizeof(id->uuid));
        else if (id->system_type == MAGIC_XFS && ioctl(fd, IOC_XFS_GEOMETRY, &geometry) == 0)
                memcpy(id->uuid, geometry.uuid, sizeof(id->uuid));
}

static void get_handle(int fd, FileId *id) {
        KernelHandle handle = { .size = FILE_HANDLE_MAX };
        int mount_id;

        if (syscall(SYS_name_to_handle_at, fd, "", &handle, &mount_id, AT_EMPTY_PATH) < 0) {
                handle.size = FILE_HANDLE_MAX;
                if (syscall(SYS_name_to_handle_at, fd, "", &handle, &mount_id,
                            AT_EMPTY_PATH | AT_HANDLE_FID) < 0)
                        return;
        }
        if (handle.size > FILE_HANDLE_MAX)
                return;
        id->handle_type = (uint32_t)handle.type;
        id->handle_size = handle.size;
        memcpy(id->handle, handle.bytes, handle.size);
}

static void get_birth(int fd, FileId *id) {
        BirthStatx st = { 0 };

        if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) == 0 &&
            st.mask & STATX_BTIME)
                id->born = (uint64_t)st.born_sec * 1000000000 + st.born_nsec;
}

int file_id_get(int fd, FileId *ret) {
        FileId id = { 0 };
        struct statfs fs;
        struct stat st;

        if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
                return -errno;
        id.system_type = (uint64_t)fs.f_type;
        memcpy(&id.system, &fs.f_fsid,
               sizeof(fs.f_fsid) < sizeof(id.system) ? sizeof(fs.f_fsid) : sizeof(id.system));
        id.mode = st.st_mode & S_IFMT;
        id.uid = st.st_uid;
        if (id.system_type != MAGIC_FAT && id.system_type != MAGIC_EXFAT) {
                id.inode = st.st_ino;
                /* A FUSE server numbers its files only for its own lifetime. */
                if (id.system_type != MAGIC_FUSE)
                        get_handle(fd, &id);
        }
        get_birth(fd, &id);
        get_uuid(fd, st.st_mode, &id);
        *ret = id;
        return 0;
}

/* --- comparing --- */

static bool same_system(const FileId *before, const FileId *now) {
        static const uint8_t unknown[sizeof(before->uuid)];
        const size_t size = sizeof(before->uuid);

        if (before->system_type != now->system_type)
                return false;
        if (memcmp(before->uuid, unknown, size) == 0 || memcmp(now->uuid, unknown, size) == 0)
                return before->system == now->system;
        return memcmp(before->uuid, now->uuid, size) == 0;
}

/* Either identity may come from another kernel, so only the parts that both have are compared. */
static bool same_file(const FileId *before, const FileId *now) {
        if (before->handle_size && now->handle_size)
                return before->handle_type == now->handle_type &&
                       before->handle_size == now->handle_size &&
                       memcmp(before->handle, now->handle, now->handle_size) == 0;
        if (before->inode && now->inode && before->inode != now->inode)
                return false;
        return !before->born || !now->born || before->born == now->born;
}

FileIdChange file_id_compare(const FileId *before, const FileId *now) {
        if (before->mode != now->mode)
                return FILE_ID_TYPE;
        if (!same_system(before, now))
                return FILE_ID_SYSTEM;
        return same_file(before, now) ? FILE_ID_SAME : FILE_ID_OTHER;
}

bool file_id_is_anew(const FileId *before, const FileId *now) {
        return file_id_compare(before, now) == FILE_ID_SYSTEM && before->uid == now->uid &&
               before->system_type == MAGIC_TMPFS && now->system_type == MAGIC_TMPFS;
}

/* --- text form --- */

static void file_id_print_bytes(const uint8_t *bytes, size_t size, char *out) {
        for (size_t i = 0; i < size; i++)
                (void)sprintf(out + 2 * i, "%02x", bytes[i]);
        out[2 * size] = '\0';
}

const char *file_id_print(const FileId *id, char buf[FILE_ID_TEXT_MAX]) {
        char uuid[2 * sizeof(id->uuid) + 1], handle[2 * FILE_HANDLE_MAX + 1];

        file_id_print_bytes(id->uuid, sizeof(id->uuid), uuid);
        file_id_print_bytes(id->handle, id->handle_size, handle);
        (void)snprintf(buf, FILE_ID_TEXT_MAX,
                       "%" PRIx64 ":%" PRIx64 ":%s:%" PRIo32 ":%" PRIu32 ":%" PRIu64 ":%" PRIu64
                       ":%" PRIu32 ":%s",
                       id->system_type, id->system, uuid, id->mode, id->uid, id->inode, id->born,
                       id->handle_type, handle);
        return buf;
}

/* Reads hexadecimal digits up to the end of text. */
static int parse_bytes(const char *text, uint8_t *ret, size_t most, size_t *ret_size) {
        size_t length = strspn(text, "0123456789abcdef");

        if (length % 2 || length / 2 > most)
                return -EINVAL;
        for (size_t i = 0; i < length / 2; i++) {
                unsigned byte;

                if (sscanf(text + 2 * i, "%2x", &byte) != 1)
                        return -EINVAL;
                ret[i] = (uint8_t)byte;
        }
        *ret_size = length / 2;
        return text[length] == '\0' ? 0 : -EINVAL;
}

int file_id_parse(const char *text, FileId *ret) {
        char uuid[2 * sizeof(ret->uuid) + 1];
        FileId id = { 0 };
        int at = -1;
        size_t size;

        (void)sscanf(text,
                     "%" SCNx64 ":%" SCNx64 ":%32[0-9a-f]:%" SCNo32 ":%" SCNu32 ":%" SCNu64
                     ":%" SCNu64 ":%" SCNu32 ":%n",
                     &id.system_type, &id.system, uuid, &id.mode, &id.uid, &id.inode, &id.born,
                     &id.handle_type, &at);
        if (at < 0 || parse_bytes(uuid, id.uuid, sizeof(id.uuid), &size) < 0 ||
            size != sizeof(id.uuid) ||
            parse_bytes(text + at, id.handle, sizeof(id.handle), &size) < 0)
                return -EINVAL;
        id.handle_size = (uint32_t)size;
        *ret = id;
        return 0;
}
