/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the readers of git's config and attributes, which an attacker may have written. Results
 * must keep the bounds that the headers promise. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "git/attributes.h"
#include "git/config.h"
#include "tests/fuzz/harness.h"

static void read_attributes(const uint8_t *data, size_t size) {
        char *text = strndup((const char *)data, size);
        StrList filters = { 0 };

        if (text && git_attributes_filters(text, &filters) == 0 &&
            filters.count > GIT_ATTRIBUTES_FILTERS_MAX)
                __builtin_trap();
        strlist_clear(&filters);
        free(text);
}

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
        read_attributes(data, size);
        return 0;
}
