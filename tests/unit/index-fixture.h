/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes the index of a git repository, byte by byte, and reads it. */

#include <stddef.h>
#include <stdint.h>

#include "git/index.h"

typedef struct Bytes {
        uint8_t data[16384];
        size_t size;
        size_t hash_size;
        size_t entries_end;
} Bytes;

void bytes_put(Bytes *bytes, const void *data, size_t size);
void bytes_put_number(Bytes *bytes, uint32_t value);
void bytes_put_zeros(Bytes *bytes, size_t size);
Bytes index_make_header(uint32_t version, uint32_t count, size_t hash_size);
void index_put_stat(Bytes *bytes, uint32_t mode, size_t length);
/* Writes an entry of versions 2 and 3. */
void index_put_entry(Bytes *bytes, uint32_t mode, const char *name);
void index_put_compressed(Bytes *bytes, uint32_t mode, uint8_t cut, const char *rest,
                          size_t length);
void index_put_extension(Bytes *bytes, const char *name, const void *data, size_t size);
/* Writes so many bytes behind the entries that the entries are read in the faster way of a large
 * index. */
void index_put_more(Bytes *bytes);
/* Writes EOIE, which has the end of the entries. Its hash is not checked. */
void index_put_end(Bytes *bytes, uint32_t offset);
/* Reads the bytes as a file. `size` may be larger than the file. */
int index_read_file(const void *bytes, size_t there, size_t size, GitIndex *ret);
/* Reads the bytes from memory and as a file, which must give the same. */
int index_read_both(const void *bytes, size_t size, GitIndex *ret);
