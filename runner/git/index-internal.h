/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of git_index_read(). index.c reads headers and entries, index-siblings.c reads the most
 * common entries faster, and index-extensions.c reads all that follows the entries. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "git/index.h"

enum {
        HEADER_SIZE = 12,   /* "DIRC", version, count. */
        MODE_AT = 24,       /* Offset of the mode in an entry. */
        STAT_SIZE = 40,     /* Times, device, inode, mode, owner and size. */
        FLAG_MORE = 0x4000, /* Two more bytes of flags follow. */
        NAME_LENGTH = 0xfff,
        MODE_GITLINK = 0160000,
        EXTENSION_HEADER = 8,
        SHA1_SIZE = 20,
        SHA256_SIZE = 32,
        ENTRY_MIN = STAT_SIZE + SHA1_SIZE + 4, /* Flags, and a name of no bytes with its end. */
        ENTRY_MAX = STAT_SIZE + SHA256_SIZE + 16 + PATH_MAX,
        WINDOW_SIZE = 64 * 1024,

        START_BUILDS = 1 << 30, /* An entry of version 4 whose name builds on the one before. */
};
static_assert(ENTRY_MAX < WINDOW_SIZE, "an entry fits the window");
static_assert(START_BUILDS > (int)GIT_INDEX_SIZE_MAX, "the mark is no part of an offset");

/* The part of an index that is in memory. */
typedef struct Window {
        int fd;          /* FD_NONE: the whole index is in memory. */
        int errnum;      /* Why the file could not be read, or 0. */
        uint8_t *buffer; /* WINDOW_SIZE bytes, for a file. */
        const uint8_t *bytes;
        size_t at, size; /* The part's offset and size. */
} Window;

typedef struct Reader {
        Window window;
        size_t hash_size;
        size_t end; /* Offset of the closing hash. */
        uint32_t version, count;

        /* The entry that was read last, and the offset of the next one. */
        size_t at;
        uint32_t mode;
        const char *name; /* In the window, or in `copy`. A zero byte follows it. */
        size_t length;
        char copy[PATH_MAX];
        size_t kept; /* Bytes of the name that come from the name before. */
        size_t from; /* Offset of the first part that differs from the name before. */
        size_t last; /* Offset of the last part. */
        bool zero;   /* The new bytes contain a zero byte. */

        /* The offset of each entry, with START_BUILDS, and of their end. NULL without EOIE: then
         * nothing reads them, and git ignores IEOT. */
        uint32_t *starts;

        bool nameless; /* An entry has no name. Only a split index may have such entries. */
} Reader;

static inline uint32_t git_index_number(const uint8_t *at) {
        return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Returns `size` bytes at an offset, or NULL if the index ends before. The bytes are valid until
 * the next call. */
const uint8_t *git_index_bytes(Reader *reader, size_t at, size_t size);

/* Whether the last `count` (1 to 8) of `size` bytes are zero. Nearly every index has names of all
 * lengths, so the end of a loop would be mispredicted for most entries. */
static inline bool git_index_ends_with_zeros(const uint8_t *bytes, size_t size, size_t count) {
        uint64_t last = 0;

        if (size < sizeof(last))
                memcpy((uint8_t *)&last + sizeof(last) - size, bytes, size);
        else
                memcpy(&last, bytes + size - sizeof(last), sizeof(last));
        return last >> (64 - 8 * count) == 0; /* Both architectures are little-endian. */
}

/* Returns the EOIE extension, or NULL if the index does not end with one. git looks for it at this
 * offset, whatever comes before it. */
const uint8_t *git_index_eoie(Reader *reader);

/* Takes entries of the most common kind for as long as they follow. Returns the index of the first
 * other entry, beginning with i, or the number of entries. */
uint32_t git_index_read_siblings(Reader *reader, uint32_t i);

/* Reads from the end of the entries to the closing hash. Returns 0 or -EBADMSG. */
int git_index_read_extensions(Reader *reader, GitIndex *ret);
