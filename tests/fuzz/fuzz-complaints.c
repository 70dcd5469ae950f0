/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the search for paths in a command's error messages. Results must keep the bounds that the
 * header promises. */
#include <string.h>

#include "outcome/complaints.h"
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static Complaints found;

        complaints_find((const char *)data, size, &found);
        REQUIRE(found.count <= COMPLAINTS_MAX);
        for (size_t i = 0; i < found.count; i++) {
                const size_t length = strlen(found.items[i].path);

                REQUIRE(length > 0 && length <= COMPLAINTS_PATH_MAX);
                REQUIRE(found.items[i].errnum > 0);
        }
        return 0;
}
