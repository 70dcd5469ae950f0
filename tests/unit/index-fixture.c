/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "index-fixture.h"

void bytes_put(Bytes *bytes, const void *data, size_t size) {
        assert_true(bytes->size + size <= sizeof(bytes->data));
        memcpy(bytes->data + bytes->size, data, size);
        bytes->size += size;
}

void bytes_put_number(Bytes *bytes, uint32_t value) {
        const uint8_t data[] = { (uint8_t)(value >> 24), (uint8_t)(value >> 16),
                                 (uint8_t)(value >> 8), (uint8_t)value };

        bytes_put(bytes, data, sizeof(data));
}

void bytes_put_zeros(Bytes *bytes, size_t size) {
        static const uint8_t zeros[64];

        bytes_put(bytes, zeros, size);
}

Bytes index_make_header(uint32_t version, uint32_t count, size_t hash_size) {
        Bytes bytes = { .hash_size = hash_size };

        bytes_put(&bytes, "DIRC", 4);
        bytes_put_number(&bytes, version);
        bytes_put_number(&bytes, count);
        bytes.entries_end = bytes.size;
        return bytes;
}

void index_put_stat(Bytes *bytes, uint32_t mode, size_t length) {
        const uint8_t flags[] = { (uint8_t)(length >> 8), (uint8_t)length };

        bytes_put_zeros(bytes, 24);
        bytes_put_number(bytes, mode);
        bytes_put_zeros(bytes, 12 + bytes->hash_size);
        bytes_put(bytes, flags, sizeof(flags));
}

void index_put_entry(Bytes *bytes, uint32_t mode, const char *name) {
        const size_t start = bytes->size;

        index_put_stat(bytes, mode, strlen(name));
        bytes_put(bytes, name, strlen(name));
        bytes_put_zeros(bytes, 8 - (bytes->size - start) % 8);
        bytes->entries_end = bytes->size;
}

void index_put_compressed(Bytes *bytes, uint32_t mode, uint8_t cut, const char *rest,
                          size_t length) {
        index_put_stat(bytes, mode, length);
        bytes_put(bytes, &cut, 1);
        bytes_put(bytes, rest, strlen(rest) + 1);
        bytes->entries_end = bytes->size;
}

void index_put_extension(Bytes *bytes, const char *name, const void *data, size_t size) {
        bytes_put(bytes, name, 4);
        bytes_put_number(bytes, (uint32_t)size);
        bytes_put(bytes, data, size);
}

void index_put_more(Bytes *bytes) {
        static const uint8_t zeros[8192];

        index_put_extension(bytes, "TREE", zeros, sizeof(zeros));
}

void index_put_end(Bytes *bytes, uint32_t offset) {
        Bytes data = { 0 };

        bytes_put_number(&data, offset);
        bytes_put_zeros(&data, bytes->hash_size);
        index_put_extension(bytes, "EOIE", data.data, data.size);
}

int index_read_file(const void *bytes, size_t there, size_t size, GitIndex *ret) {
        _cleanup_close_ int fd = memfd_create("index", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, bytes, there), there);
        return git_index_read_file(fd, size, GIT_EITHER, false, ret);
}

int index_read_both(const void *bytes, size_t size, GitIndex *ret) {
        GitIndex from_file = { 0 };
        int r = git_index_read(bytes, size, GIT_EITHER, false, ret);

        assert_int_equal(index_read_file(bytes, size, size, &from_file), r);
        assert_int_equal(from_file.links.count, ret->links.count);
        for (size_t i = 0; i < ret->links.count; i++)
                assert_string_equal(from_file.links.items[i], ret->links.items[i]);
        assert_int_equal(from_file.trees.count, ret->trees.count);
        assert_string_equal(from_file.shared, ret->shared);
        git_index_clear(&from_file);
        return r;
}
