/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. Extensions follow the entries. Two of them let git's threads start to read
 * in the middle. EOIE has the end of the entries, and IEOT the start of each block of entries. Both
 * must agree with the result of reading from the start. git reads IEOT only if there is an EOIE. */
#include "git/index-internal.h"

#include <errno.h>
#include <stdio.h>

static bool is_zero(const uint8_t *bytes, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (bytes[i] != 0)
                        return false;
        return true;
}

static void write_hash(const uint8_t *hash, size_t size, char ret[2 * SHA256_SIZE + 1]) {
        for (size_t i = 0; i < size; i++)
                (void)snprintf(ret + 2 * i, 3, "%02x", hash[i]);
}

/* Checks IEOT, whose `size` bytes are at an offset: a version, and then the offset and the number
 * of entries of each block. The first name of a block must not build on another, because git's
 * thread knows no name before it. Without EOIE, git reads no block. */
static int check_blocks(Reader *reader, size_t at, size_t size) {
        uint64_t total = 0;

        if (!reader->starts)
                return 0;
        if (size < 4 || (size - 4) % 8 != 0)
                return -EBADMSG;
        for (size_t block = 4; block < size; block += 8) {
                const uint8_t *bytes = git_index_bytes(reader, at + block, 8);

                if (!bytes || total > reader->count ||
                    git_index_number(bytes) != reader->starts[total])
                        return -EBADMSG;
                total += git_index_number(bytes + 4);
        }
        return total == reader->count ? 0 : -EBADMSG;
}

static int take_shared(Reader *reader, size_t at, size_t size, GitIndex *ret) {
        const uint8_t *hash = size < reader->hash_size
                                      ? NULL
                                      : git_index_bytes(reader, at, reader->hash_size);

        if (!hash)
                return -EBADMSG;
        write_hash(hash, reader->hash_size, ret->shared);
        if (is_zero(hash, reader->hash_size))
                ret->shared[0] = '\0';
        return 0;
}

/* Reads the two extensions that matter. git writes each of them once, so a repeated one is refused:
 * it would only take time. `at` is the offset of the extension's `size` bytes. */
static int take_extension(Reader *reader, const uint8_t *name, size_t at, size_t size, bool seen[2],
                          GitIndex *ret) {
        const bool link = memcmp(name, "link", 4) == 0;

        if (!link && memcmp(name, "IEOT", 4) != 0)
                return 0;
        if (seen[link])
                return -EBADMSG;
        seen[link] = true;
        return link ? take_shared(reader, at, size, ret) : check_blocks(reader, at, size);
}

static size_t eoie_size(const Reader *reader) {
        return EXTENSION_HEADER + 4 + reader->hash_size;
}

const uint8_t *git_index_eoie(Reader *reader) {
        const size_t size = eoie_size(reader);
        const uint8_t *bytes = reader->end < size
                                       ? NULL
                                       : git_index_bytes(reader, reader->end - size, size);

        return bytes && memcmp(bytes, "EOIE", 4) == 0 ? bytes : NULL;
}

/* Checks EOIE. `last` is the offset of the last extension. */
static int check_eoie(Reader *reader, size_t last) {
        const uint8_t *bytes = git_index_eoie(reader);

        if (!bytes)
                return 0;
        if (!reader->starts || last != reader->end - eoie_size(reader))
                return -EBADMSG;
        return git_index_number(bytes + EXTENSION_HEADER) == reader->at ? 0 : -EBADMSG;
}

int git_index_read_extensions(Reader *reader, GitIndex *ret) {
        size_t at = reader->at, last = 0;
        bool seen[2] = { false };
        int r = 0;

        while (r == 0 && at < reader->end) {
                const uint8_t *extension = git_index_bytes(reader, at, EXTENSION_HEADER);
                size_t size;

                if (!extension)
                        return -EBADMSG;
                size = git_index_number(extension + 4);
                last = at;
                at += EXTENSION_HEADER;
                if (size > reader->end - at)
                        return -EBADMSG;
                r = take_extension(reader, extension, at, size, seen, ret);
                at += size;
        }
        if (r == 0 && reader->nameless && !ret->shared[0])
                return -EBADMSG;
        return r < 0 ? r : check_eoie(reader, last);
}
