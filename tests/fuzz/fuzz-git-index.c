/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of a repository's index, which a sandbox may have written. Results must keep
 * the bounds that the header promises. Reading the same bytes from a file must give the same
 * result. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "git/index.h"
#include "tests/fuzz/harness.h"

static void compare_file(const uint8_t *data, size_t size, bool every, int r,
                         const GitIndex *expected) {
        static int fd = -1;
        GitIndex index = { 0 };

        if (fd < 0)
                fd = memfd_create("index", MFD_CLOEXEC);
        if (ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size ||
            git_index_read_file(fd, size, GIT_EITHER, every, &index) != r ||
            index.links.count != expected->links.count ||
            index.trees.count != expected->trees.count ||
            strcmp(index.shared, expected->shared) != 0)
                __builtin_trap();
        git_index_clear(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        for (int every = 0; every < 2; every++) {
                GitIndex index = { 0 };
                int r = git_index_read(data, size, GIT_EITHER, every, &index);

                compare_file(data, size, every, r, &index);
                if (r == 0) {
                        if (index.links.count > GIT_INDEX_LINKS_MAX || strlen(index.shared) > 64)
                                __builtin_trap();
                        for (size_t i = 0; i < index.links.count; i++)
                                if (index.links.items[i][0] == '\0')
                                        __builtin_trap();
                } else if (index.links.count > 0) {
                        __builtin_trap();
                }
                git_index_clear(&index);
        }
        return 0;
}
