/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation. Nearly every entry of a large index is a file in the directory of the
 * previous entry. Only the last bytes of its name differ. For such an entry, the checks of index.c
 * are short. The name must have a part after the same directory that does not begin with a dot. Its
 * new bytes must not be slashes or zeros. These checks take half the time of the full ones. */
#include "git/index-internal.h"

#include <sys/stat.h>

static uint64_t eight_bytes(const char *bytes) {
        uint64_t value;

        memcpy(&value, bytes, sizeof(value));
        return value;
}

/* Does the same as memcmp(3) == 0, but eight bytes at a time: musl compares single bytes. The last
 * eight may overlap with those before. */
static bool same_bytes(const char *a, const char *b, size_t size) {
        size_t i = 0;

        while (size < 8 && i < size && a[i] == b[i])
                i++;
        if (size < 8)
                return i == size;
        for (; i < size - 8; i += 8)
                if (eight_bytes(a + i) != eight_bytes(b + i))
                        return false;
        return eight_bytes(a + size - 8) == eight_bytes(b + size - 8);
}

/* Sets a bit for each byte of `value` that is zero, and perhaps for others above such a byte. */
static uint64_t zero_bytes(uint64_t value) {
        return (value - 0x0101010101010101) & ~value & 0x8080808080808080;
}

/* Whether `count` (1 to 8) bytes are neither zero nor a slash. Reads eight bytes. */
static bool is_plain(const char *bytes, size_t count) {
        const uint64_t unused = count < 8 ? UINT64_MAX << (8 * count) : 0;
        const uint64_t value = eight_bytes(bytes) | unused;

        return (zero_bytes(value) | zero_bytes(value ^ 0x2f2f2f2f2f2f2f2f)) == 0;
}

uint32_t git_index_read_siblings(Reader *reader, uint32_t i) {
        const Window *window = &reader->window;
        const size_t before = STAT_SIZE + reader->hash_size + 2, last = reader->last;
        const size_t end = window->at + window->size;
        const size_t stop = end < reader->end ? end : reader->end;
        const char *known = reader->name;
        size_t known_length = reader->length, at = reader->at;

        while (i < reader->count && at + ENTRY_MAX <= stop) {
                const char *entry = (const char *)window->bytes + (at - window->at);
                const char *name = entry + before;
                const size_t length = (size_t)(uint8_t)name[-2] << 8 | (uint8_t)name[-1];
                const size_t tail = length > last + 8 ? length - 8 : last;
                const size_t next = (before + length + 8) & ~(size_t)7;

                if (length <= last || length >= NAME_LENGTH || name[last] == '.' ||
                    tail > known_length || !S_ISREG((uint8_t)entry[MODE_AT + 2] << 8))
                        break;
                if (!same_bytes(known, name, tail) || !is_plain(name + tail, length - tail) ||
                    !git_index_ends_with_zeros((const uint8_t *)entry, next,
                                               next - before - length))
                        break;
                known = name;
                known_length = length;
                if (reader->starts)
                        reader->starts[i] = (uint32_t)at;
                i++;
                at += next;
        }
        reader->name = known;
        reader->length = known_length;
        reader->at = at;
        return i;
}
