/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of git's config, which an attacker may have written. Results must keep the
 * bounds that the header promises. */
#include <limits.h>
#include <string.h>

#include "git/config.h"
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        GitConfig config = { 0 };

        (void)git_config_read((const char *)data, size, &config);
        if (config.hooks.count + config.includes.count + config.worktrees.count >
            GIT_CONFIG_PATHS_MAX)
                __builtin_trap();
        for (size_t i = 0; i < config.hooks.count; i++)
                if (strlen(config.hooks.items[i]) >= PATH_MAX)
                        __builtin_trap();
        git_config_clear(&config);
        return 0;
}
