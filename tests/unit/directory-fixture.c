/* SPDX-License-Identifier: Apache-2.0 */
#include "directory-fixture.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int enter_directory(void **state) {
        char *path = strdup("/tmp/holt-unit-XXXXXX");

        *state = path;
        return path && mkdtemp(path) && chdir(path) == 0 ? 0 : -1;
}

int remove_directory(const char *path) {
        char command[2 * PATH_MAX + 32];

        (void)snprintf(command, sizeof(command), "chmod -R u+rwX %s; rm -rf %s", path, path);
        return chdir("/") == 0 ? system(command) : -1;
}

int leave_directory(void **state) {
        int r = remove_directory(*state);

        free(*state);
        return r;
}
