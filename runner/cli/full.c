/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/full.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "base/strings.h"
#include "version.h"

/* Where holt-full may be, from the directory that this program was started from: a build tree, then
 * a prefix. Nothing of the environment decides what is executed. */
static const char *const places[] = { "/holt-full", "/../libexec/holt/holt-full" };

int full_execute(char *const *argv) {
        char self[PATH_MAX], path[PATH_MAX + 32];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        Error error;
        char *slash;

        self[n < 0 ? 0 : n] = '\0';
        slash = strrchr(self, '/');
        if (slash)
                *slash = '\0';
        for (size_t i = 0; slash && i < ELEMENTSOF(places); i++) {
                (void)strcpy(path, self);
                (void)strcat(path, places[i]);
                (void)execv(path, argv);
        }
        (void)execv(HOLT_LIBEXEC "/holt-full", argv);
        (void)error_set(&error, ERROR_SETUP, errno,
                        "cannot execute " HOLT_LIBEXEC "/holt-full, which this needs");
        (void)error_cure(&error, 0, "Install holt completely: meson install -C build");
        error_print(&error, stderr);
        return error_exit_code(&error);
}
