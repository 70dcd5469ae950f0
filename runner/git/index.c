/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. An index is a header, `count` entries, extensions (four letters, a length,
 * data) and a hash. The index does not tell the length of its hashes. If the repository's hash is
 * unknown, both lengths are tried, and exactly one must fit to the last byte.
 *
 * Each run reads the index, and a large repository has 50,000 entries. So a file is read once,
 * through a small window that stays in the processor's cache. An entry's name is compared with the
 * name before, and only the rest is checked. Both are compared in the window: a copy that was just
 * written byte by byte is slow to read again. */
#include "git/index.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "git/index-internal.h"

/* --- bytes --- */

/* Moves the window. If the file cannot be read or has become shorter, the window gets smaller. */
static void window_move(Window *window, size_t at) {
        ssize_t n = 1;

        window->at = at;
        window->size = 0;
        while (n > 0 && window->size < WINDOW_SIZE) {
                n = pread(window->fd, window->buffer + window->size, WINDOW_SIZE - window->size,
                          (off_t)(at + window->size));
                window->size += n > 0 ? (size_t)n : 0;
        }
        if (n < 0)
                window->errnum = errno;
}

static bool window_has(const Window *window, size_t at, size_t size) {
        return at >= window->at && at + size <= window->at + window->size;
}

/* Returns the bytes at an offset, which is at most `end`. *ret_size tells how many there are before
 * `end`: at least `wanted`, if the index has as many. The bytes are valid until the next call. */
static const uint8_t *window_bytes(Window *window, size_t at, size_t wanted, size_t end,
                                   size_t *ret_size) {
        size_t size;

        if (wanted > end - at)
                wanted = end - at;
        if (window->fd >= 0 && !window_has(window, at, wanted))
                window_move(window, at);
        size = window->size - (at - window->at);
        *ret_size = size < end - at ? size : end - at;
        return window->bytes + (at - window->at);
}

const uint8_t *git_index_bytes(Reader *reader, size_t at, size_t size) {
        const uint8_t *bytes;
        size_t there;

        if (at > reader->end)
                return NULL;
        bytes = window_bytes(&reader->window, at, size, reader->end, &there);
        return there < size ? NULL : bytes;
}

static int reader_open(Reader *reader, const Window *window, size_t size, size_t hash_size) {
        const uint8_t *header;
        bool blocks;

        reader->window = *window;
        if (size < HEADER_SIZE + hash_size || size > GIT_INDEX_SIZE_MAX)
                return -EBADMSG;
        reader->hash_size = hash_size;
        reader->end = size - hash_size;
        blocks = git_index_eoie(reader) != NULL;
        header = git_index_bytes(reader, 0, HEADER_SIZE);
        if (!header || memcmp(header, "DIRC", 4) != 0)
                return -EBADMSG;
        reader->version = git_index_number(header + 4);
        reader->count = git_index_number(header + 8);
        reader->at = HEADER_SIZE;
        reader->name = reader->copy;
        if (reader->version < 2 || reader->version > 4 || reader->count > size / ENTRY_MIN)
                return -EBADMSG;
        if (!blocks)
                return 0;
        reader->starts = malloc((reader->count + 1) * sizeof(*reader->starts));
        return reader->starts ? 0 : -ENOMEM;
}

/* --- entries --- */

/* Takes a name whose first `kept` bytes are those of the name before. The rest of most names is
 * short, so one loop is faster than two searches. */
static void reader_set_name(Reader *reader, const char *name, size_t kept, size_t length) {
        const char *slash = kept < reader->last ? memrchr(name, '/', kept) : NULL;
        size_t last = slash ? (size_t)(slash - name) + 1 : kept < reader->last ? 0 : reader->last;

        reader->from = last;
        reader->zero = false;
        for (size_t i = kept; i < length; i++) {
                reader->zero |= name[i] == '\0';
                if (name[i] == '/')
                        last = i + 1;
        }
        reader->name = name;
        reader->last = last;
        reader->kept = kept;
        reader->length = length;
}

/* Returns how many bytes both have in common at their beginnings. */
static size_t git_index_common(const char *a, const uint8_t *b, size_t max) {
        size_t n = 0;

        for (uint64_t x, y; n + sizeof(x) <= max; n += sizeof(x)) {
                memcpy(&x, a + n, sizeof(x));
                memcpy(&y, b + n, sizeof(y));
                if (x != y) /* Both architectures are little-endian. */
                        return n + (size_t)__builtin_ctzll(x ^ y) / 8;
        }
        while (n < max && (uint8_t)a[n] == b[n])
                n++;
        return n;
}

/* Reads a name of version 2 or 3: it is followed by one to eight zero bytes, up to a multiple of
 * eight. Without these bytes, git would read a longer name than the length says. `before` is the
 * size of the entry's part before the name. `size` bytes follow there. */
static int read_name(Reader *reader, size_t before, const uint8_t *name, size_t size,
                     size_t length) {
        size_t next, kept;

        if (length == NAME_LENGTH)
                length = strnlen((const char *)name, size);
        next = (before + length + 8) & ~(size_t)7;
        if (length >= sizeof(reader->copy) || next - before > size ||
            !git_index_ends_with_zeros(name, next - before, next - before - length))
                return -EBADMSG;
        reader->at += next;
        kept = git_index_common(reader->name, name,
                                length < reader->length ? length : reader->length);
        reader_set_name(reader, (const char *)name, kept, length);
        return 0;
}

/* Reads git's own variable length: seven bits a byte, most significant first, with one added at
 * each step. Returns its size in bytes, or 0. */
static size_t read_varint(const uint8_t *bytes, size_t size, size_t *ret) {
        size_t value = 0;

        for (size_t i = 0; i < 4 && i < size; i++) {
                value = (value << 7) + (bytes[i] & 0x7f);
                if (!(bytes[i] & 0x80)) {
                        *ret = value;
                        return i + 1;
                }
                value++;
        }
        return 0;
}

/* Reads a name of version 4: the number of bytes to cut from the end of the name before, and the
 * bytes to append. */
static int read_compressed_name(Reader *reader, size_t before, const uint8_t *name, size_t size,
                                size_t length) {
        size_t cut, kept, rest, n = read_varint(name, size, &cut);

        if (n == 0 || cut > reader->length)
                return -EBADMSG;
        kept = reader->length - cut;
        rest = strnlen((const char *)name + n, size - n);
        if (n + rest >= size || kept + rest >= sizeof(reader->copy))
                return -EBADMSG;
        if (length != (kept + rest < NAME_LENGTH ? kept + rest : NAME_LENGTH))
                return -EBADMSG;
        memcpy(reader->copy + kept, name + n, rest + 1);
        reader_set_name(reader, reader->copy, kept, kept + rest);
        reader->at += before + n + rest + 1;
        return 0;
}

/* Returns the bytes of the next entry, of which nearly all are in the window. Copies the previous
 * name before the window moves: the file may contain another name by now, which was not checked. */
static const uint8_t *reader_entry(Reader *reader, size_t *ret_size) {
        Window *window = &reader->window;

        if (window_has(window, reader->at, ENTRY_MAX) && reader->end - reader->at >= ENTRY_MAX) {
                *ret_size = ENTRY_MAX;
                return window->bytes + (reader->at - window->at);
        }
        if (reader->name != reader->copy) {
                memcpy(reader->copy, reader->name, reader->length + 1);
                reader->name = reader->copy;
        }
        return window_bytes(window, reader->at, ENTRY_MAX, reader->end, ret_size);
}

static int read_entry(Reader *reader) {
        size_t before = STAT_SIZE + reader->hash_size + 2, size;
        const uint8_t *entry = reader_entry(reader, &size);
        unsigned flags;

        if (size < before + 2)
                return -EBADMSG;
        reader->mode = git_index_number(entry + MODE_AT);
        flags = (unsigned)entry[before - 2] << 8 | entry[before - 1];
        before += flags & FLAG_MORE ? 2 : 0;
        entry += before;
        size -= before;
        return reader->version == 4
                       ? read_compressed_name(reader, before, entry, size, flags & NAME_LENGTH)
                       : read_name(reader, before, entry, size, flags & NAME_LENGTH);
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
 * Checks only the parts from an offset, because the others were checked with the name before.
 * Millions of entries may share thousands of bytes. */
static bool git_index_is_path(const char *name, size_t from) {
        for (const char *part = name + from;; part++) {
                const size_t length = (size_t)(strchrnul(part, '/') - part);

                if (!git_index_is_part(part, length))
                        return false;
                part += length;
                if (*part == '\0')
                        return true;
        }
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
static int git_index_take_path(const char *name, GitIndex *ret, StrList *list, size_t max) {
        if (!can_be_there(name))
                return -EBADMSG;
        ret->bytes += strlen(name) + 1;
        if (list->count == max || ret->bytes > GIT_INDEX_PATHS_MAX ||
            git_index_depth(name) > GIT_INDEX_DEPTH_MAX)
                return -E2BIG;
        return strlist_add(list, name);
}

/* Takes a sparse directory; its name ends in a slash. All parts are checked, because the last one
 * is before the slash. */
static int take_tree(const Reader *reader, GitIndex *ret) {
        char path[PATH_MAX];

        if (reader->length < 2 || reader->name[reader->length - 1] != '/' || reader->zero)
                return -EBADMSG;
        memcpy(path, reader->name, reader->length - 1);
        path[reader->length - 1] = '\0';
        return git_index_is_path(path, 0)
                       ? git_index_take_path(path, ret, &ret->trees, GIT_INDEX_TREES_MAX)
                       : -EBADMSG;
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
        if (reader->zero ||
            !(reader->from == reader->last ? git_index_is_part(reader->name + reader->last,
                                                               reader->length - reader->last)
                                           : git_index_is_path(reader->name, reader->from)))
                return -EBADMSG;
        return link || every
                       ? git_index_take_path(reader->name, ret, &ret->links, GIT_INDEX_LINKS_MAX)
                       : 0;
}

/* Notes where an entry begins. */
static void reader_note_start(Reader *reader, uint32_t i, size_t start) {
        if (!reader->starts)
                return;
        reader->starts[i] = (uint32_t)start;
        if (reader->version == 4 && reader->kept > 0)
                reader->starts[i] |= START_BUILDS;
}

static int read_entries(Reader *reader, bool every, GitIndex *ret) {
        const bool simple = !every && reader->version != 4;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < reader->count; i++) {
                size_t start;

                if (simple)
                        i = git_index_read_siblings(reader, i);
                if (i == reader->count)
                        break;
                start = reader->at;
                r = read_entry(reader);
                if (r == 0)
                        r = take_entry(reader, every, ret);
                reader_note_start(reader, i, start);
        }
        if (reader->starts)
                reader->starts[reader->count] = (uint32_t)reader->at;
        return r;
}

static int read_as(const Window *window, size_t size, size_t hash_size, bool every, GitIndex *ret) {
        Reader reader = { 0 };
        int r = reader_open(&reader, window, size, hash_size);

        if (r == 0)
                r = read_entries(&reader, every, ret);
        if (r == 0)
                r = git_index_read_extensions(&reader, ret);
        free(reader.starts);
        return reader.window.errnum ? -reader.window.errnum : r;
}

static int read_window(const Window *window, size_t size, GitHash hash, bool every, GitIndex *ret) {
        GitIndex sha1 = { 0 }, sha256 = { 0 };
        const int as_sha1 = hash == GIT_SHA256 ? -EBADMSG
                                               : read_as(window, size, SHA1_SIZE, every, &sha1);
        const int as_sha256 = hash == GIT_SHA1 ? -EBADMSG
                                               : read_as(window, size, SHA256_SIZE, every, &sha256);
        const bool is_sha1 = as_sha256 == -EBADMSG;
        const int r = is_sha1 ? as_sha1 : as_sha1 == -EBADMSG ? as_sha256 : -EBADMSG;

        git_index_clear(is_sha1 && r == 0 ? &sha256 : &sha1);
        if (r == 0)
                *ret = is_sha1 ? sha1 : sha256;
        else
                git_index_clear(&sha256);
        return r;
}

int git_index_read(const void *bytes, size_t size, GitHash hash, bool every, GitIndex *ret) {
        const Window window = { .fd = FD_NONE, .bytes = bytes, .size = size };

        return read_window(&window, size, hash, every, ret);
}

int git_index_read_file(int fd, size_t size, GitHash hash, bool every, GitIndex *ret) {
        _cleanup_free_ uint8_t *buffer = malloc(WINDOW_SIZE);
        const Window window = { .fd = fd, .buffer = buffer, .bytes = buffer };

        return buffer ? read_window(&window, size, hash, every, ret) : -ENOMEM;
}

void git_index_clear(GitIndex *index) {
        strlist_clear(&index->links);
        strlist_clear(&index->trees);
        *index = (GitIndex){ 0 };
}
