/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/full.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/paths.h"
#include "base/programs.h"
#include "base/strings.h"

int full_execute(char *const *argv) {
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        Error error;
        char *slash;

        self[n < 0 ? 0 : n] = '\0';
        slash = strrchr(self, '/');
        if (slash)
                *slash = '\0';
        for (size_t i = 0; i < ELEMENTSOF(programs_full); i++) {
                _cleanup_free_ char *path = path_join(slash ? self : "/", programs_full[i]);

                if (path && (slash || programs_full[i][0] == '/'))
                        (void)execv(path, argv);
        }
        (void)error_set(&error, ERROR_SETUP, errno,
                        "cannot execute " HOLT_LIBEXEC "/holt-full, which this verb needs");
        (void)error_cure(&error, 0, "Install holt completely: meson install -C build");
        error_print(&error, stderr);
        return error_exit_code(&error);
}
