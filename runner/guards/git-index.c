/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. An index is a header, `count` entries, extensions (four letters, a length,
 * data) and a hash. The index does not tell the length of its hashes. If the repository's hash is
 * unknown, both lengths are tried, and exactly one must fit to the last byte. By two
 * extensions, git's threads may start to read in the middle. EOIE tells the end of the entries, and
 * IEOT the start of each block of entries. Both must agree with the result of reading from the
 * start. */
#include "guards/git-index.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

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
};

typedef struct Reader {
        const uint8_t *bytes;
        size_t hash_size;
        size_t end; /* Offset of the closing hash. */
        uint32_t version, count;

        /* The entry that was read last, and the offset of the next one. */
        size_t at;
        uint32_t mode;
        char name[PATH_MAX];
        size_t length;
        size_t kept; /* Bytes of the name that come from the name before (version 4). */

        bool nameless; /* An entry has no name. Only a split index may have such entries. */
} Reader;

static uint32_t git_index_number(const uint8_t *at) {
        return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int reader_open(Reader *reader, const uint8_t *bytes, size_t size, size_t hash_size) {
        if (size < HEADER_SIZE + hash_size || size > GIT_INDEX_SIZE_MAX ||
            memcmp(bytes, "DIRC", 4) != 0)
                return -EBADMSG;
        reader->bytes = bytes;
        reader->hash_size = hash_size;
        reader->end = size - hash_size;
        reader->version = git_index_number(bytes + 4);
        reader->count = git_index_number(bytes + 8);
        reader->at = HEADER_SIZE;
        reader->length = reader->kept = 0;
        reader->nameless = false;
        return reader->version >= 2 && reader->version <= 4 ? 0 : -EBADMSG;
}

/* --- entries --- */

static bool is_zero(const uint8_t *bytes, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (bytes[i] != 0)
                        return false;
        return true;
}

/* Reads a name of version 2 or 3: it is followed by one to eight zero bytes, up to a multiple of
 * eight. Without these bytes, git would read a longer name than the length says. */
static int read_name(Reader *reader, size_t entry, size_t at, size_t length) {
        if (length == NAME_LENGTH)
                length = strnlen((const char *)reader->bytes + at, reader->end - at);
        if (length >= sizeof(reader->name) || at + length >= reader->end)
                return -EBADMSG;
        memcpy(reader->name, reader->bytes + at, length);
        reader->length = length;
        reader->at = entry + ((at - entry + length + 8) & ~(size_t)7);
        if (reader->at > reader->end ||
            !is_zero(reader->bytes + at + length, reader->at - at - length))
                return -EBADMSG;
        return 0;
}

/* Reads git's own variable length: seven bits a byte, most significant first, with one added at
 * each step. */
static int read_varint(const Reader *reader, size_t *at, size_t *ret) {
        size_t value = 0;

        for (int i = 0; i < 4 && *at < reader->end; i++) {
                uint8_t byte = reader->bytes[(*at)++];

                value = (value << 7) + (byte & 0x7f);
                if (!(byte & 0x80)) {
                        *ret = value;
                        return 0;
                }
                value++;
        }
        return -EBADMSG;
}

/* Reads a name of version 4: the number of bytes to cut from the end of the name before, and the
 * bytes to append. */
static int read_compressed_name(Reader *reader, size_t at, size_t length) {
        size_t cut, rest;
        int r = read_varint(reader, &at, &cut);

        if (r < 0 || cut > reader->length)
                return -EBADMSG;
        reader->kept = reader->length - cut;
        rest = strnlen((const char *)reader->bytes + at, reader->end - at);
        if (at + rest >= reader->end || reader->kept + rest >= sizeof(reader->name))
                return -EBADMSG;
        if (length != (reader->kept + rest < NAME_LENGTH ? reader->kept + rest : NAME_LENGTH))
                return -EBADMSG;
        memcpy(reader->name + reader->kept, reader->bytes + at, rest);
        reader->length = reader->kept + rest;
        reader->at = at + rest + 1;
        return 0;
}

static int read_entry(Reader *reader) {
        const size_t entry = reader->at;
        size_t name = entry + STAT_SIZE + reader->hash_size + 2;
        unsigned flags;
        int r;

        if (name + 2 > reader->end)
                return -EBADMSG;
        reader->mode = git_index_number(reader->bytes + entry + MODE_AT);
        flags = (unsigned)reader->bytes[name - 2] << 8 | reader->bytes[name - 1];
        name += flags & FLAG_MORE ? 2 : 0;
        r = reader->version == 4 ? read_compressed_name(reader, name, flags & NAME_LENGTH)
                                 : read_name(reader, entry, name, flags & NAME_LENGTH);
        reader->name[reader->length] = '\0';
        return r;
}

static bool is_mode(uint32_t mode) {
        /* Only a sparse index has directories. */
        return S_ISREG(mode) || S_ISLNK(mode) || S_ISDIR(mode) || mode == MODE_GITLINK;
}

static bool git_index_is_part(const char *part, size_t length) {
        return length > 0 && !(length == 1 && part[0] == '.') &&
               !(length == 2 && part[0] == '.' && part[1] == '.') &&
               !(length == 4 && strncasecmp(part, ".git", 4) == 0);
}

/* Whether the name is a path that git itself would write. git also follows other paths: "./sub"
 * leads to sub, "." recurses without end, and `git checkout .` writes "../file", "/file" and
 * ".git/hooks/post-checkout".
 *
 * Checks only the part of the name that differs from the name before, which was checked already.
 * Millions of entries may share thousands of bytes. */
static bool git_index_is_path(const Reader *reader) {
        const char *slash = memrchr(reader->name, '/', reader->kept);

        for (const char *part = slash ? slash + 1 : reader->name;; part++) {
                const size_t length = (size_t)(strchrnul(part, '/') - part);

                if (!git_index_is_part(part, length))
                        return false;
                part += length;
                if (*part == '\0')
                        return true;
        }
}

/* Whether the new part of the name contains a zero byte. */
static bool has_zero(const Reader *reader) {
        return memchr(reader->name + reader->kept, '\0', reader->length - reader->kept);
}

/* Whether a file system could hold a repository of this name. */
static bool can_be_there(const char *name) {
        for (const char *part = name; *part; part += *part == '/') {
                const size_t length = strcspn(part, "/");

                if (length > NAME_MAX)
                        return false;
                part += length;
        }
        return strlen(name) < PATH_MAX - sizeof("/.git");
}

/* Number of parts of a path. Each part makes looking at the path slower. */
static size_t git_index_depth(const char *name) {
        size_t parts = 1;

        for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/'))
                parts++;
        return parts;
}

/* Adds the name to one of the lists. */
static int git_index_take_path(const Reader *reader, GitIndex *ret, StrList *list, size_t max) {
        if (!can_be_there(reader->name))
                return -EBADMSG;
        ret->bytes += strlen(reader->name) + 1;
        if (list->count == max || ret->bytes > GIT_INDEX_PATHS_MAX ||
            git_index_depth(reader->name) > GIT_INDEX_DEPTH_MAX)
                return -E2BIG;
        return strlist_add(list, reader->name);
}

static void write_hash(const uint8_t *hash, size_t size, char ret[2 * SHA256_SIZE + 1]) {
        for (size_t i = 0; i < size; i++)
                (void)snprintf(ret + 2 * i, 3, "%02x", hash[i]);
}

/* Takes a sparse directory; its name ends in a slash. */
static int take_tree(Reader *reader, GitIndex *ret) {
        int r;

        if (reader->length < 2 || reader->name[reader->length - 1] != '/' || has_zero(reader))
                return -EBADMSG;
        /* The slash is put back afterwards, because the next name of version 4 builds on this
         * one. */
        reader->name[reader->length - 1] = '\0';
        r = git_index_is_path(reader)
                    ? git_index_take_path(reader, ret, &ret->trees, GIT_INDEX_TREES_MAX)
                    : -EBADMSG;
        reader->name[reader->length - 1] = '/';
        return r;
}

static int take_entry(Reader *reader, bool every, GitIndex *ret) {
        const bool link = reader->mode == MODE_GITLINK;

        if (!is_mode(reader->mode))
                return -EBADMSG;
        if (S_ISDIR(reader->mode))
                return take_tree(reader, ret);
        if (reader->length == 0) {
                reader->nameless = true;
                ret->nameless |= link;
                return 0;
        }
        if (has_zero(reader) || !git_index_is_path(reader))
                return -EBADMSG;
        return link || every ? git_index_take_path(reader, ret, &ret->links, GIT_INDEX_LINKS_MAX)
                             : 0;
}

static int read_entries(Reader *reader, bool every, GitIndex *ret) {
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < reader->count; i++) {
                r = read_entry(reader);
                if (r == 0)
                        r = take_entry(reader, every, ret);
        }
        return r;
}

/* --- extensions --- */

/* Checks IEOT. A block consists of its offset and its number of entries. The first name in a block
 * does not build on another name. */
static int check_blocks(const Reader *whole, const uint8_t *data, size_t size) {
        Reader reader = *whole;
        uint64_t total = 0;

        if (size < 4 || (size - 4) % 8 != 0)
                return -EBADMSG;
        reader.at = HEADER_SIZE;
        reader.length = 0;
        for (size_t block = 4; block < size; block += 8) {
                const uint32_t count = git_index_number(data + block + 4);

                total += count;
                if (git_index_number(data + block) != reader.at || total > whole->count)
                        return -EBADMSG;
                for (uint32_t i = 0; i < count; i++)
                        if (read_entry(&reader) < 0 || (i == 0 && reader.kept > 0))
                                return -EBADMSG;
        }
        return total == whole->count ? 0 : -EBADMSG;
}

static int take_shared(const Reader *reader, const uint8_t *data, size_t size, GitIndex *ret) {
        if (size < reader->hash_size)
                return -EBADMSG;
        write_hash(data, reader->hash_size, ret->shared);
        if (is_zero(data, reader->hash_size))
                ret->shared[0] = '\0';
        return 0;
}

/* Reads the two extensions that matter. git writes each of them once, so a repeated one is refused:
 * it would only take time. */
static int take_extension(const Reader *reader, const uint8_t *name, const uint8_t *data,
                          size_t size, bool seen[2], GitIndex *ret) {
        const bool link = memcmp(name, "link", 4) == 0;

        if (!link && memcmp(name, "IEOT", 4) != 0)
                return 0;
        if (seen[link])
                return -EBADMSG;
        seen[link] = true;
        return link ? take_shared(reader, data, size, ret) : check_blocks(reader, data, size);
}

/* Reads from the end of the entries to the closing hash. */
static int read_extensions(const Reader *reader, GitIndex *ret) {
        /* git looks for EOIE at this offset, whatever comes before it. */
        const size_t eoie_size = 4 + reader->hash_size;
        size_t at = reader->at, last = 0;
        bool seen[2] = { false };
        int r = 0;

        while (r == 0 && at < reader->end) {
                const uint8_t *extension = reader->bytes + at;
                size_t size;

                if (reader->end - at < EXTENSION_HEADER)
                        return -EBADMSG;
                size = git_index_number(extension + 4);
                if (size > reader->end - at - EXTENSION_HEADER)
                        return -EBADMSG;
                r = take_extension(reader, extension, extension + EXTENSION_HEADER, size, seen,
                                   ret);
                last = at;
                at += EXTENSION_HEADER + size;
        }
        if (r == 0 && reader->nameless && !ret->shared[0])
                return -EBADMSG;
        if (r == 0 && reader->end >= EXTENSION_HEADER + eoie_size &&
            memcmp(reader->bytes + reader->end - eoie_size - EXTENSION_HEADER, "EOIE", 4) == 0 &&
            (last != reader->end - eoie_size - EXTENSION_HEADER ||
             git_index_number(reader->bytes + last + EXTENSION_HEADER) != reader->at))
                return -EBADMSG;
        return r;
}

static int read_as(const uint8_t *bytes, size_t size, size_t hash_size, bool every, GitIndex *ret) {
        Reader reader;
        int r = reader_open(&reader, bytes, size, hash_size);

        if (r == 0)
                r = read_entries(&reader, every, ret);
        return r < 0 ? r : read_extensions(&reader, ret);
}

int git_index_read(const void *bytes, size_t size, GitHash hash, bool every, GitIndex *ret) {
        GitIndex sha1 = { 0 }, sha256 = { 0 };
        const int as_sha1 = hash == GIT_SHA256 ? -EBADMSG
                                               : read_as(bytes, size, SHA1_SIZE, every, &sha1);
        const int as_sha256 = hash == GIT_SHA1 ? -EBADMSG
                                               : read_as(bytes, size, SHA256_SIZE, every, &sha256);
        const bool is_sha1 = as_sha256 == -EBADMSG;
        const int r = is_sha1 ? as_sha1 : as_sha1 == -EBADMSG ? as_sha256 : -EBADMSG;

        git_index_clear(is_sha1 && r == 0 ? &sha256 : &sha1);
        if (r == 0)
                *ret = is_sha1 ? sha1 : sha256;
        else
                git_index_clear(&sha256);
        return r;
}

void git_index_clear(GitIndex *index) {
        strlist_clear(&index->links);
        strlist_clear(&index->trees);
        *index = (GitIndex){ 0 };
}
