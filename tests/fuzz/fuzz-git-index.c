/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of a repository's index, which a sandbox may have written. Results must keep
 * the bounds that the header promises. */
#include <string.h>

#include "guards/git-index.h"
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        for (int every = 0; every < 2; every++) {
                GitIndex index = { 0 };

                if (git_index_read(data, size, GIT_EITHER, every, &index) == 0) {
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
