/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the patterns of hidden files. The first line of the input is a pattern, and the next one
 * is a path that is matched part by part. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "tests/fuzz/harness.h"

enum { PATTERNS_MAX = 64 };

/* No braces are left to expand in a pattern that glob_expand() has added. */
static void expand_again(const char *pattern) {
        StrList again = { 0 };

        REQUIRE(glob_expand(pattern, 1, &again) == 0);
        REQUIRE(again.count == 1 && streq(again.items[0], pattern));
        strlist_clear(&again);
}

static void walk_path(const char *pattern, unsigned flags, const char *path) {
        _cleanup_(glob_freep) Glob *glob = NULL;
        _cleanup_free_ char *copy = strdup(path);
        char *rest = copy;
        uint64_t state;

        if (glob_new(pattern, flags, &glob) < 0)
                return;
        state = glob_start(glob);
        for (const char *name; state && (name = strsep(&rest, "/"));) {
                state = glob_step(glob, state, name);
                (void)glob_matches(glob, state, rest != NULL);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = strndup((const char *)data, size);
        char *path = text;
        const char *pattern = strsep(&path, "\n");
        StrList patterns = { 0 };
        int r = glob_expand(pattern, PATTERNS_MAX, &patterns);

        REQUIRE(r == 0 || r == -E2BIG || r == -ENAMETOOLONG);
        REQUIRE(r != 0 || (patterns.count > 0 && patterns.count <= PATTERNS_MAX));
        REQUIRE(patterns.count <= 1 || glob_is_pattern(pattern));
        for (size_t i = 0; r == 0 && i < patterns.count; i++) {
                REQUIRE(strlen(patterns.items[i]) <= strlen(pattern));
                expand_again(patterns.items[i]);
                walk_path(patterns.items[i], 0, path ? path : "");
                walk_path(patterns.items[i], GLOB_ANYWHERE | GLOB_DOTS, path ? path : "");
        }
        strlist_clear(&patterns);
        return 0;
}
