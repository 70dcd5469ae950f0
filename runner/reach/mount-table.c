/* SPDX-License-Identifier: Apache-2.0 */
#include "reach/mount-table.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/paths.h"
#include "base/strings.h"
#include "base/sys.h"

enum { MOUNTS_TEXT_MAX = 64 << 20 }; /* Bytes. By default, a host has at most 100,000 mounts. */

struct MountTable {
        char *text; /* The entries point into it. */
        MountEntry *entries;
        size_t count;
};

/* The part of statx(2)'s struct statx that is used here. The original is in linux/stat.h, which
 * cannot be included together with musl's sys/stat.h since musl 1.2.5. */
typedef struct MountStatx {
        uint32_t mask, block_size;
        uint64_t attributes;
        uint32_t links, owner, group;
        uint16_t mode, padding;
        uint64_t inode;
        uint8_t before[96];
        uint32_t device_major, device_minor;
        uint64_t mount_id;
        uint8_t rest[104];
} MountStatx;
static_assert(sizeof(MountStatx) == 256, "the kernel writes the whole struct");

#ifndef STATX_BASIC_STATS
#define STATX_BASIC_STATS 0x7ffU
#endif
#ifndef STATX_NLINK
#define STATX_NLINK 0x4U
#endif
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

MountTable *mount_table_free(MountTable *table) {
        if (!table)
                return NULL;
        free(table->text);
        free(table->entries);
        free(table);
        return NULL;
}

size_t mount_table_count(const MountTable *table) {
        return table->count;
}

const MountEntry *mount_table_entry(const MountTable *table, size_t i) {
        return &table->entries[i];
}

/* --- parsing --- */

void mount_table_unescape(char *text) {
        char *out = text;

        for (const char *in = text; *in; in++) {
                if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' &&
                    in[3] >= '0' && in[3] <= '7') {
                        *out++ = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
                        in += 3;
                } else {
                        *out++ = *in;
                }
        }
        *out = '\0';
}

/* Parses the fields after "-": TYPE SOURCE OPTIONS. The fields before it are optional. */
static void parse_file_system(char **state, MountEntry *entry) {
        enum { TYPE, SOURCE, OPTIONS, FIELDS };
        char *fields[FIELDS] = { NULL }, *field;

        do
                field = strtok_r(NULL, " ", state);
        while (field && !streq(field, "-"));
        for (int i = 0; field && i < FIELDS; i++)
                field = fields[i] = strtok_r(NULL, " ", state);
        entry->type = fields[TYPE] ? fields[TYPE] : "";
        /* If the source is empty, there is one field less. */
        entry->options = fields[OPTIONS] ? fields[OPTIONS] : fields[SOURCE] ? fields[SOURCE] : "";
}

/* Format of a line: ID PARENT MAJOR:MINOR ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS */
static int parse_line(char *line, MountEntry *ret) {
        enum { ID, PARENT, DEVICE, ROOT, POINT, OPTIONS, FIELDS };
        char *fields[FIELDS], *state = NULL;
        unsigned major, minor;

        for (int i = 0; i < FIELDS; i++) {
                fields[i] = strtok_r(i == 0 ? line : NULL, " ", &state);
                if (!fields[i])
                        return -EBADMSG;
        }
        if (sscanf(fields[DEVICE], "%u:%u", &major, &minor) != 2)
                return -EBADMSG;
        mount_table_unescape(fields[ROOT]);
        mount_table_unescape(fields[POINT]);
        *ret = (MountEntry){
                .id = strtoull(fields[ID], NULL, 10),
                .device = makedev(major, minor),
                .root = fields[ROOT],
                .point = fields[POINT],
                .read_only = strncmp(fields[OPTIONS], "ro", 2) == 0 &&
                             (fields[OPTIONS][2] == ',' || fields[OPTIONS][2] == '\0'),
        };
        parse_file_system(&state, ret);
        return 0;
}

static int table_parse(MountTable *table) {
        size_t lines = 0;
        char *state = NULL;

        for (const char *p = table->text; *p; p++)
                lines += *p == '\n';
        table->entries = calloc(lines + 1, sizeof(*table->entries));
        if (!table->entries)
                return -ENOMEM;
        for (char *line = strtok_r(table->text, "\n", &state); line;
             line = strtok_r(NULL, "\n", &state)) {
                int r = parse_line(line, &table->entries[table->count]);

                if (r < 0)
                        return r;
                table->count++;
        }
        return 0;
}

static int kept_fd = FD_NONE;

int mount_table_keep(void) {
        kept_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        return kept_fd < 0 ? -errno : 0;
}

/* Returns an fd at the beginning of the file. */
static int open_text(void) {
        if (kept_fd < 0)
                return open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        return lseek(kept_fd, 0, SEEK_SET) < 0 ? -1 : fcntl(kept_fd, F_DUPFD_CLOEXEC, 3);
}

/* Returns the whole file, whose size the kernel does not tell. NULL with errno on failure. */
static char *table_read_text(void) {
        _cleanup_close_ int fd = open_text();
        _cleanup_free_ char *text = NULL;
        size_t length = 0, size = 0;

        if (fd < 0)
                return NULL;
        for (;;) {
                ssize_t n;

                if (length + 1 >= size) {
                        char *more;

                        size = size ? size * 2 : 16 << 10;
                        more = size > MOUNTS_TEXT_MAX ? NULL : realloc(text, size);
                        if (!more) {
                                errno = ENOMEM;
                                return NULL;
                        }
                        text = more;
                }
                n = read(fd, text + length, size - length - 1);
                if (n < 0)
                        return NULL;
                if (n == 0)
                        break;
                length += (size_t)n;
        }
        text[length] = '\0';
        return TAKE_PTR(text);
}

static int table_read(MountTable *table) {
        table->text = table_read_text();
        return table->text ? table_parse(table) : -errno;
}

int mount_table_read(MountTable **ret, Error *reterr) {
        MountTable *table = calloc(1, sizeof(*table));
        int r = table ? table_read(table) : -ENOMEM;

        if (r == 0) {
                *ret = table;
                return 0;
        }
        mount_table_free(table);
        r = error_set(reterr, ERROR_SETUP, -r, "cannot read /proc/self/mountinfo");
        return error_cure(reterr, r, "Mount /proc; holt needs it.");
}

/* --- looking up --- */

int mount_table_locate(const MountTable *table, int fd, dev_t *ret_device,
                       char ret_path[PATH_MAX]) {
        char path[PATH_MAX];
        MountStatx st = { 0 };
        int r;

        if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID | STATX_NLINK, &st) < 0)
                return -errno;
        if (!(st.mask & STATX_MNT_ID))
                return -ENOSYS;
        *ret_device = makedev(st.device_major, st.device_minor);
        r = path_of_fd(fd, path);
        if (r < 0)
                return r;
        for (size_t i = 0; i < table->count; i++) {
                const MountEntry *entry = &table->entries[i];
                const char *rest;

                if (entry->id != st.mount_id)
                        continue;
                *ret_device = entry->device;
                rest = path[0] == '/' ? path_rest(path, entry->point) : NULL;
                if (!rest || !(st.mask & STATX_NLINK) || st.links == 0)
                        return -ENOENT;
                if (snprintf(ret_path, PATH_MAX, "%s%s%s",
                             streq(entry->root, "/") ? "" : entry->root,
                             rest[0] || streq(entry->root, "/") ? "/" : "", rest) >= PATH_MAX)
                        return -ENAMETOOLONG;
                return 0;
        }
        return -ENOENT;
}

/* --- one file --- */

int mount_facts(int fd, MountFacts *ret) {
        MountStatx st = { 0 };
        struct stat ordinary;

        if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &st) == 0) {
                *ret = (MountFacts){ makedev(st.device_major, st.device_minor), st.inode,
                                     st.mask & STATX_MNT_ID ? st.mount_id : 0, st.owner, st.mode };
                return 0;
        }
        /* A container's filter may refuse statx(2). */
        if (fstat(fd, &ordinary) < 0)
                return -errno;
        *ret = (MountFacts){ ordinary.st_dev, ordinary.st_ino, 0, ordinary.st_uid,
                             ordinary.st_mode };
        return 0;
}
